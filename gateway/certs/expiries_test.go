package certs

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// TestCertificatesThatExpireRaiseEvents: for the APIs that name them and handle such
// events, once a day.
func TestCertificatesThatExpireRaiseEvents(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const soon, over, later = "aaaaaaaaaaaa-soon", "bbbbbbbbbbbb-over", "cccccccccccc-later"
	ends := map[string]time.Duration{soon: 24 * time.Hour, over: -time.Minute, later: 60 * 24 * time.Hour}
	stored := make(map[string]*certs.Certificate)
	for id, left := range ends {
		stored[id] = &certs.Certificate{Sum: id, Leaf: &x509.Certificate{NotAfter: now.Add(left)}}
	}
	store := new(Store)
	store.Replace(stored)
	handled := &definition.EventHandlers{Events: map[string][]definition.EventHandler{"CertificateExpired": {{Name: definition.LogHandler}}}}
	var raised []string
	e := Expiries{
		Store: store,
		APIs: func() []*definition.API {
			return []*definition.API{
				{ID: "handled", EventHandlers: handled, ClientCertificates: []string{soon, over, "gone"}, UpstreamCertificates: map[string]string{"*": later, "x": over}},
				{ID: "silent", ClientCertificates: []string{soon}},
			}
		},
		Raise: func(e event.Event) { raised = append(raised, e.API+" "+string(e.Name)+" "+e.Certificate.Sum) },
	}
	want := []string{"handled CertificateExpiringSoon " + soon, "handled CertificateExpired " + over}
	for _, c := range []struct {
		after time.Duration
		want  []string
	}{{0, want}, {time.Hour, nil}, {23 * time.Hour, want}, {24 * time.Hour, []string{"handled CertificateExpired " + soon, want[1]}}} {
		raised = nil
		now = now.Add(c.after)
		e.look(now)
		if !slices.Equal(raised, c.want) {
			t.Errorf("after %s: %q, want %q", c.after, raised, c.want)
		}
	}
}
