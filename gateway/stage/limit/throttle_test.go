package limit

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
)

func throttled(rate, quota int64, retries int) *pipeline.Grant {
	g := grantOf(rate, quota) // per 10 seconds
	g.Special = &pipeline.Special{Throttle: pipeline.Throttle{Interval: 2 * time.Second, Retries: retries}}
	return g
}

func now(grant *pipeline.Grant) *pipeline.Exchange {
	ex := request(grant, "GET", "/")
	ex.Started = time.Now()
	ex.Call = &wire.Call{Method: []byte("GET"), Started: ex.Started}
	return ex
}

// A call over its rate waits until the rate has room, and counts once.
func TestACallOverItsRateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := counter.NewMemory(nil)
		s := compiled(t, memory)
		grant := throttled(1, 10, 9)
		s.Handle(now(grant))
		began := time.Now()
		ex := now(grant)
		if v := s.Handle(ex); v != pipeline.Next || ex.Rejection != nil {
			t.Fatalf("refused: %+v", ex.Rejection)
		}
		if took := time.Since(began).Round(time.Second); took != 10*time.Second {
			t.Errorf("it waited %s", took)
		}
		if _, quota := free(t, memory, grant); quota != 8 {
			t.Errorf("%d left of the quota, want 8", quota)
		}
	})
}

func TestACallIsRefusedWhenItHasTriedAsOftenAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(counter.NewMemory(nil))
		s, grant := stageOf(t, l), throttled(1, 10, 3)
		s.Handle(now(grant))
		for name, handle := range map[string]func(*pipeline.Exchange) pipeline.Verdict{"limit": s.Handle, "rate": l.chargeRate} {
			began, ex := time.Now(), now(grant)
			if v := handle(ex); v != pipeline.Rejected || ex.Rejection != rateExceeded {
				t.Fatalf("%s: verdict %d", name, v)
			}
			if took := time.Since(began).Round(time.Second); took != 6*time.Second {
				t.Errorf("%s: refused after %s, want 6s", name, took)
			}
			if l.Waiting() != 0 {
				t.Errorf("%s: %d still wait", name, l.Waiting())
			}
			time.Sleep(20 * time.Second) // of the test's own clock
			s.Handle(now(grant))
		}
	})
}

func TestNobodyWaitsForMoreThanTheRateEverAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(counter.NewMemory(nil))
		s, grant := stageOf(t, l), throttled(2, 10, 9)
		for name, handle := range map[string]func(*pipeline.Exchange) pipeline.Verdict{"limit": s.Handle, "rate": l.chargeRate} {
			began, ex := time.Now(), now(grant)
			ex.Charge.Calls = 3
			if handle(ex) != pipeline.Rejected || time.Since(began) != 0 {
				t.Errorf("%s: %+v after %s", name, ex.Rejection, time.Since(began))
			}
		}
	})
}

// A late refusal tells how long it is from then on.
func TestALateRefusalTellsFromWhenItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, grant := compiled(t, counter.NewMemory(nil)), throttled(1, 0, 3) // waits 6 of 10 seconds
		s.Handle(now(grant))
		ex := now(grant)
		if s.Handle(ex) != pipeline.Rejected || ex.RetryAfter != 4 {
			t.Errorf("Retry-After %d, want 4", ex.RetryAfter)
		}
	})
}

// An exhausted quota does not get better by waiting.
func TestNobodyWaitsForAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, grant := compiled(t, counter.NewMemory(nil)), throttled(100, 1, 9)
		s.Handle(now(grant))
		began, ex := time.Now(), now(grant)
		if s.Handle(ex) != pipeline.Rejected || ex.Rejection != quotaExceeded || time.Since(began) != 0 {
			t.Errorf("%+v after %s", ex.Rejection, time.Since(began))
		}
	})
}

func TestOnlySoManyWaitAndTheOthersAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Counter: counter.NewMemory(nil), Waiting: 2, Log: quiet()})
		s, grant := stageOf(t, l), throttled(1, 0, 2)
		s.Handle(now(grant))
		key := 0
		now := func(grant *pipeline.Grant) *pipeline.Exchange {
			ex := now(grant)
			ex.KeyHash = strconv.Itoa(key)
			return ex
		}
		began := time.Now()
		var all sync.WaitGroup
		atOnce := make(chan bool, 5)
		for key = range 5 {
			ex := now(grant)
			all.Go(func() {
				s.Handle(ex)
				atOnce <- time.Since(began) == 0
			})
		}
		synctest.Wait()
		if l.Waiting() != 2 {
			t.Errorf("%d wait", l.Waiting())
		}
		all.Wait()
		close(atOnce)
		refused := 0
		for once := range atOnce {
			if once {
				refused++
			}
		}
		if refused != 3 {
			t.Errorf("%d were refused at once, want 3", refused)
		}
	})
}

func TestOneKeyLeavesOthersRoomToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Counter: counter.NewMemory(nil), Waiting: 4, Log: quiet()})
		s, grant := stageOf(t, l), throttled(1, 0, 2)
		s.Handle(now(grant))
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { s.Handle(now(grant)) })
		}
		synctest.Wait()
		if l.Waiting() != 2 {
			t.Errorf("%d of one key wait", l.Waiting())
		}
		other := now(grant)
		other.KeyHash = "another"
		all.Go(func() { s.Handle(other) })
		synctest.Wait()
		if l.Waiting() != 3 {
			t.Errorf("with one of another key %d wait", l.Waiting())
		}
		all.Wait()
		if l.Waiting() != 0 {
			t.Errorf("%d wait when all are over", l.Waiting())
		}
	})
}

func TestAStopEndsAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(counter.NewMemory(nil))
		s, grant := stageOf(t, l), throttled(1, 0, 100)
		s.Handle(now(grant))
		began := time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if ex := now(grant); s.Handle(ex) != pipeline.Rejected || ex.Rejection != rateExceeded {
					t.Errorf("%+v", ex.Rejection)
				}
			})
		}
		synctest.Wait()
		l.Stop()
		l.Stop()
		all.Wait()
		if s.Handle(now(grant)) != pipeline.Rejected || time.Since(began) != 0 || l.Waiting() != 0 {
			t.Errorf("it took %s, and %d still wait", time.Since(began), l.Waiting())
		}
	})
}
