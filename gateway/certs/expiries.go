package certs

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// Expiries raises an event once a day for each certificate that expires soon or has
// expired: of those that clients get to see for the process, and of those that a
// definition names for its API (behaviour F.1). All fields but Server are required.
type Expiries struct {
	Server *Server // nil: TLS is not spoken
	Store  *Store
	APIs   func() []*definition.API
	Raise  func(event.Event)

	raised map[expiring]time.Time // the last events
}

// expiring identifies the events about one certificate.
type expiring struct {
	name event.Name
	api  string // "" is the process
	sum  string
}

// expiriesEvery is how often certificates are looked at.
const expiriesEvery = time.Minute

// Run looks at the certificates until ctx ends.
func (e *Expiries) Run(ctx context.Context) {
	tick := time.NewTicker(expiriesEvery)
	defer tick.Stop()
	for {
		e.look(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Expiries) look(now time.Time) {
	before := e.raised
	e.raised = make(map[expiring]time.Time)
	if e.Server != nil {
		for _, c := range e.Server.index.Load().all {
			e.check("", c.Certificate, before, now)
		}
	}
	for _, api := range e.APIs() {
		if !handlesExpiry(api.EventHandlers) {
			continue
		}
		ids := slices.AppendSeq(slices.Clone(api.ClientCertificates), maps.Values(api.UpstreamCertificates))
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if c := e.Store.Find(id); c != nil {
				e.check(api.ID, c, before, now)
			}
		}
	}
}

// handlesExpiry reports whether an API has handlers for these events.
func handlesExpiry(h *definition.EventHandlers) bool {
	return h != nil && len(h.Events[string(event.CertificateExpired)])+len(h.Events[string(event.CertificateExpiringSoon)]) > 0
}

func (e *Expiries) check(api string, c *certs.Certificate, before map[expiring]time.Time, now time.Time) {
	left := c.Leaf.NotAfter.Sub(now)
	if left >= certs.WarnWithin {
		return
	}
	one := expiring{event.CertificateExpiringSoon, api, c.Sum}
	detail := "Certificate expires soon"
	if left < 0 {
		one.name, detail = event.CertificateExpired, "Certificate has expired"
	}
	if last, known := before[one]; known && now.Sub(last) < warnEvery {
		e.raised[one] = last
		return
	}
	e.raised[one] = now
	e.Raise(event.Event{
		Name: one.name, At: now, API: api, Detail: detail + ": " + c.Sum[:12] + ", on " + c.Leaf.NotAfter.UTC().Format(time.RFC3339),
		Certificate: &event.Certificate{Sum: c.Sum, Names: c.Names(), NotAfter: c.Leaf.NotAfter},
	})
}
