package limit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// A shelf is a store that counts how often it is asked, and may be away.
type shelf struct {
	*keystore.Memory
	away  atomic.Bool
	asked atomic.Int32
}

func (s *shelf) Get(ctx context.Context, hash string) (*definition.Session, error) {
	s.asked.Add(1)
	if s.away.Load() {
		return nil, keystore.ErrUnavailable
	}
	return s.Memory.Get(ctx, hash)
}

func (s *shelf) put(t *testing.T, text string) {
	t.Helper()
	session := new(definition.Session)
	if err := json.Unmarshal([]byte(text), session); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "org:acme", session); err != nil {
		t.Fatal(err)
	}
}

// An office is what counts calls for organisations, over a store.
type office struct {
	*Orgs
	store *shelf
	stage pipeline.Stage
}

func openOffice(t *testing.T, closed bool, m *Monitor) *office {
	t.Helper()
	o := &office{store: &shelf{Memory: keystore.NewMemory()}}
	l := New(Options{Counter: counter.NewMemory(nil), Monitor: m, Log: quiet()})
	o.Orgs = l.Orgs(OrgOptions{Store: o.store, TTL: 10 * time.Second, StaleTTL: time.Minute, Timeout: time.Second, Closed: closed})
	o.stage = o.Compile(&definition.API{ID: "sample", OrgID: "acme"})
	return o
}

// call tells the outcome of a call: "" or a refusal.
func (o *office) call() string {
	ex := now(nil)
	if o.stage.Handle(ex) == pipeline.Next {
		return ""
	}
	return fmt.Sprintf("%d %s", ex.Rejection.Status, ex.Rejection.Message)
}

// run watches the store until the test ends.
func (o *office) run(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { o.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	synctest.Wait()
}

func TestOrganisationsAreHeldToTheirLimits(t *testing.T) {
	for _, c := range []struct {
		name, session string
		passes        int
		then          string
	}{
		{"quota", `{"quota_max": 2, "quota_renewal_rate": 60}`, 2, "403 This organisation quota has been exceeded, please contact your API administrator"},
		{"quota of the calendar", `{"quota_max": 2, "quota_renewal_calendar": "month"}`, 2, "403 This organisation quota has been exceeded, please contact your API administrator"},
		{"rate", `{"rate": 3, "per": 60}`, 3, "403 This organisation rate limit has been exceeded, please contact your API administrator"},
		{"inactive", `{"is_inactive": true, "rate": 3, "per": 60}`, 0, "403 this organisation access has been disabled, please contact your API administrator"},
		{"nothing set", `{}`, 5, ""},
		{"unlimited", `{"quota_max": -1, "rate": -1}`, 5, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := openOffice(t, true, nil)
			o.store.put(t, c.session)
			for i := range c.passes {
				if got := o.call(); got != "" {
					t.Fatalf("call %d: %s", i, got)
				}
			}
			if got := o.call(); got != c.then {
				t.Errorf("then %q, want %q", got, c.then)
			}
			if n := o.store.asked.Load(); n != 1 {
				t.Errorf("the store was asked %d times", n)
			}
		})
	}
}

func TestAPIsOfOneOrganisationCountTogether(t *testing.T) {
	o := openOffice(t, true, nil)
	o.store.put(t, `{"quota_max": 3, "quota_renewal_rate": 60}`)
	other := o.Compile(&definition.API{ID: "other", OrgID: "acme"})
	for range 2 {
		if other.Handle(now(nil)) != pipeline.Next {
			t.Fatal("refused")
		}
	}
	if first, second := o.call(), o.call(); first != "" || second == "" {
		t.Errorf("%q, %q", first, second)
	}
}

func TestWithoutASessionNothingIsLimited(t *testing.T) {
	o := openOffice(t, true, nil)
	for range 5 {
		if got := o.call(); got != "" {
			t.Fatal(got)
		}
	}
	if n := o.store.asked.Load(); n != 1 {
		t.Errorf("the store was asked %d times", n)
	}
	var none *Orgs
	if o.Compile(&definition.API{ID: "a"}) != nil || none.Compile(&definition.API{ID: "a", OrgID: "acme"}) != nil {
		t.Error("there is a stage for nothing")
	}
}

func TestChangesOfASessionHoldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, true, nil)
		o.run(t)
		if got := o.call(); got != "" {
			t.Fatal(got)
		}
		o.store.put(t, `{"is_inactive": true}`)
		synctest.Wait()
		if got := o.call(); got == "" {
			t.Error("passes after it was switched off")
		}
		if err := o.store.Delete(t.Context(), "org:acme"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := o.call(); got != "" {
			t.Errorf("after it was deleted: %s", got)
		}
	})
}

// Without a word of the store what was known last holds for a while. Then, and
// when nothing ever was known, it is a matter of configuration.
func TestAStoreThatIsAway(t *testing.T) {
	const exceeded, unknown = "403 This organisation quota has been exceeded, please contact your API administrator", "503 Organisations cannot be checked at the moment, please try again"
	for closed, without := range map[bool]string{true: unknown, false: ""} {
		t.Run(fmt.Sprint("closed ", closed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOffice(t, closed, nil)
				o.store.away.Store(true)
				for range 5 {
					if got := o.call(); got != without {
						t.Fatalf("never known: %q, want %q", got, without)
					}
				}
				if n := o.store.asked.Load(); n != 1 {
					t.Errorf("the store was asked %d times at once", n)
				}
				o.store.away.Store(false)
				o.store.put(t, `{"quota_max": 1}`)
				time.Sleep(2 * time.Second)
				if got := o.call(); got != "" {
					t.Fatalf("the store is back: %q", got)
				}
				o.store.away.Store(true)
				for _, c := range []struct {
					after time.Duration
					want  string
				}{{9 * time.Second, exceeded}, {20 * time.Second, exceeded}, {30 * time.Second, exceeded}, {30 * time.Second, without}} {
					time.Sleep(c.after)
					if got := o.call(); got != c.want {
						t.Errorf("%q, want %q", got, c.want)
					}
				}
			})
		})
	}
}

// A session that is known to have changed is not used, whatever the store says.
func TestAChangedSessionIsNotUsedWhenTheStoreIsAway(t *testing.T) {
	o := openOffice(t, true, nil)
	o.store.put(t, `{"quota_max": 5}`)
	if got := o.call(); got != "" {
		t.Fatal(got)
	}
	o.store.away.Store(true)
	o.changed("org:acme")
	o.changed("0123456789abcdef") // of a key
	if got := o.call(); got != "503 Organisations cannot be checked at the moment, please try again" {
		t.Errorf("%q", got)
	}
}

func TestThresholdsOfOrganisationsAreTold(t *testing.T) {
	to := &heard{}
	o := openOffice(t, true, &Monitor{Events: to, Global: 50, Orgs: true})
	o.store.put(t, `{"quota_max": 4, "monitor": {"trigger_limits": [75]}}`)
	for range 6 {
		o.call()
	}
	if got := to.triggers(); !slices.Equal(got, []string{"50 at 50", "75 at 75"}) {
		t.Errorf("told %q", got)
	}
	if e := to.all[0]; e.Org != "acme" || e.Key != "" || e.API != "sample" {
		t.Errorf("told %+v", e)
	}
}

func TestCallsOfOrganisationsDoNotAllocate(t *testing.T) {
	for _, session := range []string{`{"quota_max": 1000000, "rate": 1000000, "per": 1}`, `{"quota_max": 1000000, "quota_renewal_calendar": "day"}`, `{"quota_max": 1}`} {
		o := openOffice(t, true, nil)
		o.store.put(t, session)
		ex := now(nil)
		o.stage.Handle(ex)
		if n := testing.AllocsPerRun(1000, func() { o.stage.Handle(ex) }); n != 0 {
			t.Errorf("%s: %v allocations", session, n)
		}
	}
}

func BenchmarkOrg(b *testing.B) {
	o := &shelf{Memory: keystore.NewMemory()}
	if err := o.Put(b.Context(), "org:acme", &definition.Session{Limits: definition.Limits{QuotaMax: 1 << 40, QuotaRenewalRate: 3600}}); err != nil {
		b.Fatal(err)
	}
	l := New(Options{Counter: counter.NewMemory(nil), Log: quiet()})
	s := l.Orgs(OrgOptions{Store: o, TTL: time.Hour, Timeout: time.Second}).Compile(&definition.API{OrgID: "acme"})
	ex := now(nil)
	b.ReportAllocs()
	for b.Loop() {
		s.Handle(ex)
	}
}
