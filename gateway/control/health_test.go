package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// healthOf starts a gateway API that remembers no findings.
func healthOf(t *testing.T, components ...Component) *bench {
	b := onFiles(t, func(d *Deps) { d.Health = components })
	b.reload()
	return b
}

func (b *bench) health() (overall Health, details map[string]finding, ready response) {
	b.t.Helper()
	b.api.health.mu.Lock()
	b.api.health.at = time.Time{}
	b.api.health.mu.Unlock()
	got := b.send("GET", "/hello", "", nil)
	if got.status != 200 {
		b.t.Fatalf("hello: %d %s", got.status, got.body)
	}
	said := decoded[report](b.t, got)
	return said.Status, said.Details, b.send("GET", "/ready", "", nil)
}

func TestHealthNeedsNoSecret(t *testing.T) {
	b := onFiles(t)
	b.reload()
	got := b.send("GET", "/hello?probe=1", "", nil)
	said := decoded[report](t, got)
	conf := said.Details["configuration"]
	if got.status != 200 || said.Status != Pass || said.Version != "1.2.3" || said.Description == "" || len(said.Details) != 1 {
		t.Errorf("hello: %d %s", got.status, got.body)
	}
	if _, err := time.Parse(time.RFC3339, conf.Time); err != nil || conf.Status != Pass || conf.ComponentType != "system" || conf.Output != "from files, in force for 0s" {
		t.Errorf("configuration: %+v", conf)
	}
	b.want("GET", "/live", "", 200, `{"status":"ok","message":"alive"}`)
	b.want("GET", "/ready", "", 200, `{"status":"ok","message":"ready"}`)
}

func TestAGatewayIsNotReadyBeforeItsFirstConfiguration(t *testing.T) {
	b := onFiles(t)
	b.live.bundle.Store(nil)
	overall, details, ready := b.health()
	if overall != Fail || details["configuration"].Status != Fail {
		t.Errorf("hello: %s %v", overall, details)
	}
	if ready.status != 503 || ready.body != failed("not ready; configuration: no configuration was loaded yet") {
		t.Errorf("ready: %d %s", ready.status, ready.body)
	}
	b.want("GET", "/live", "", 200, `{"status":"ok","message":"alive"}`)
}

func TestAGatewayThatStopsIsAliveAndNotReady(t *testing.T) {
	var stopping atomic.Bool
	b := onFiles(t, func(d *Deps) { d.Stopping = stopping.Load })
	b.reload()
	b.want("GET", "/ready", "", 200, `{"status":"ok","message":"ready"}`)
	stopping.Store(true)
	b.want("GET", "/ready", "", 503, failed("not ready; the gateway stops"))
	b.want("GET", "/live", "", 200, `{"status":"ok","message":"alive"}`)
	if got := b.send("GET", "/health", "", nil); got.status != 503 || decoded[report](t, got).Status != Pass {
		t.Errorf("health: %d %s", got.status, got.body)
	}
	if got := b.send("GET", "/hello", "", nil); got.status != 200 {
		t.Errorf("hello: %d %s", got.status, got.body)
	}
}

func TestHealthDecidesWithItsStatus(t *testing.T) {
	b := healthOf(t, KeyStore(lost{}, nil))
	if got := b.send("GET", "/health", "", nil); got.status != 503 || decoded[report](t, got).Details["key_store"].Status != Fail {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestTroubleWithTheConfigurationIsAWarning(t *testing.T) {
	b := healthOf(t)
	b.live.stale.Store(true)
	if overall, details, ready := b.health(); overall != Warn || ready.status != 200 || details["configuration"].Output != "from files, in force for 0s; its source is away" {
		t.Errorf("stale: %s %v %d", overall, details, ready.status)
	}
	b.live.put(&definition.Bundle{Revision: "2", Skipped: []definition.Skipped{{Source: "secret-name", Reason: "x"}}})
	if overall, details, ready := b.health(); overall != Warn || ready.status != 200 || details["configuration"].Output != "from files, in force for 0s; 1 definitions are not served as written" {
		t.Errorf("skipped: %s %v %d", overall, details, ready.status)
	}
}

// lost is a key store that is away.
type lost struct{ keystore.Store }

func (lost) Get(context.Context, string) (*definition.Session, error) {
	return nil, fmt.Errorf("%w: dial 10.0.0.1", keystore.ErrUnavailable)
}

// empty is a key store that answers.
type empty struct{ keystore.Store }

func (empty) Get(context.Context, string) (*definition.Session, error) {
	return nil, keystore.ErrNotFound
}

func TestHealthOfComponents(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	counters := func(away bool) Component {
		return CounterStore(func() counter.State { return counter.State{Away: away, Cause: errors.New("dial 10.0.0.1")} })
	}
	const stored, system = "datastore", "system"
	for _, c := range []struct {
		name      string
		component Component
		kind      string
		want      Health
		ready     int
	}{
		{"calls as many as can be served", Load(no), system, Pass, 200},
		{"calls that are too many", Load(yes), system, Warn, 200},
		{"keys there", KeyStore(empty{}, no), stored, Pass, 200},
		{"keys away, some in memory", KeyStore(lost{}, yes), stored, Warn, 200},
		{"keys away, none in memory", KeyStore(lost{}, no), stored, Fail, 503},
		{"keys away, no memory", KeyStore(lost{}, nil), stored, Fail, 503},
		{"counters there", counters(false), stored, Pass, 200},
		{"counters away", counters(true), stored, Warn, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := healthOf(t, c.component)
			overall, details, ready := b.health()
			f := details[c.component.Name]
			if overall != c.want || f.Status != c.want || f.ComponentType != c.kind || ready.status != c.ready {
				t.Errorf("%s %+v, ready %d %s", overall, f, ready.status, ready.body)
			}
			if (f.Output == "") != (c.want == Pass) || strings.Contains(f.Output+ready.body, "10.0.0.1") {
				t.Errorf("output %q, ready %s", f.Output, ready.body)
			}
		})
	}
}

func TestProbesCostTheStoresOneCheckASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		h := newHealth([]Component{{Name: "slow", Check: func(ctx context.Context) (Health, string) {
			checks++
			<-ctx.Done()
			return Fail, "slow"
		}}})
		began := time.Now()
		for range 100 {
			if overall, details := h.check(); overall != Fail || details["slow"].Output != "slow" {
				t.Errorf("got %s %v", overall, details)
			}
		}
		if took := time.Since(began); checks != 1 || took != checkWithin {
			t.Errorf("%d checks in %s for 100 callers", checks, took)
		}
		time.Sleep(checkEvery)
		if h.check(); checks != 2 {
			t.Errorf("%d checks a while later, want 2", checks)
		}
	})
}
