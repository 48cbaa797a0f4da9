package counter

import (
	"fmt"
	"testing"
	"time"
)

func (q *quotaCache) recordCall(key string, used, reset int64, batch uint64, suspect bool) {
	q.record(key, report{used: used, before: used - 1, reset: reset, asked: true, batch: batch, now: time.Now().UnixMilli(), suspect: suspect})
}

func TestALowerCountOfAStoreThatMayHaveLostDataIsIgnored(t *testing.T) {
	now := time.Now().UnixMilli()
	r := newQuotaCache(quotasMost)
	r.recordCall("open", 90, now+60_000, 1, false)
	r.recordCall("open", 1, now+70_000, 2, true) // what an empty store says
	if used, reset, _ := r.find("open", now); used != 90 || reset != now+60_000 {
		t.Errorf("%d used until %d", used, reset-now)
	}
	r.recordCall("open", 91, now+60_000, 3, true)
	if used, _, _ := r.find("open", now); used != 91 {
		t.Errorf("%d used after a higher count", used)
	}
	r.recordCall("over", 90, now-1, 1, false)
	r.recordCall("over", 1, now+60_000, 2, true)
	if used, _, _ := r.find("over", now); used != 1 {
		t.Errorf("%d used in a new period", used)
	}
}

func TestTheQuotasUsedLatestStayCached(t *testing.T) {
	const most, hot = 16_000, 1000
	r := newQuotaCache(most)
	now := time.Now().UnixMilli()
	for i := range 10 * most {
		r.recordCall(fmt.Sprint("cold", i), 1, now+60_000, uint64(i), false)
		r.recordCall(fmt.Sprint("hot", i%hot), int64(i), now+60_000, uint64(i), false)
	}
	for i := range hot {
		if used, _, ok := r.find(fmt.Sprint("hot", i), now); !ok || used < 9*most {
			t.Fatalf("hot key %d: used %d, known %v", i, used, ok)
		}
	}
	if all := len(r.open(now)); all > most || all < most/2 {
		t.Errorf("%d keys remembered, want up to %d", all, most)
	}
	r.recordCall("hot1", 5, now+60_000, 3, false) // came late
	if used, _, _ := r.find("hot1", now); used == 5 {
		t.Error("a reply that came late replaced a newer one")
	}
	r.forget("hot1")
	if _, _, ok := r.find("hot1", now); ok {
		t.Error("a key that was reset is still known")
	}
	if _, _, ok := r.find("hot2", now+60_000); ok {
		t.Error("a period that is over is still known")
	}
	for i := range 2 * most { // forgotten entries make room once, and only once
		r.recordCall(fmt.Sprint("later", i), 1, now+60_000, uint64(20*most+i), false)
	}
	if all := len(r.open(now)); all > most {
		t.Errorf("%d keys remembered, want up to %d", all, most)
	}
}

// The end of a period is asked for when it is not known, over, or told a while
// ago, and after someone reset the quota.
func TestEndOfAPeriodIsAskedForWhenItMayBeAnotherOne(t *testing.T) {
	r := newQuotaCache(100)
	const now, end = 1_000_000, 2_000_000
	asks := func(what string, at int64, want bool) {
		t.Helper()
		if _, ask := r.reset("q", at); ask != want {
			t.Errorf("%s: asks %v, want %v", what, ask, want)
		}
	}
	asks("a key not seen", now, true)
	r.record("q", report{used: 5, before: 4, reset: end, asked: true, batch: 1, now: now})
	asks("just told", now, false)
	asks("told a second ago", now+resetFresh, false)
	asks("told longer ago", now+resetFresh+1, true)
	asks("told later than now: the clock was set back", now-1, true)
	asks("over", end, true)
	reset, _ := r.reset("q", now)
	if reset != end {
		t.Errorf("reset %d, want %d", reset, end)
	}
	r.record("q", report{used: 6, before: 5, reset: end, batch: 2, now: now + 10})
	asks("counted on", now+10, false)
	r.record("q", report{used: 3, before: 2, reset: end, batch: 1, now: now + 10})
	asks("told by a batch that came late", now+10, false)
	r.record("q", report{used: 3, before: 2, reset: end, batch: 3, now: now + 20})
	asks("reset by someone else", now+20, true)
	r.record("q", report{used: 4, before: 3, reset: end + 20, asked: true, batch: 4, now: now + 30})
	asks("told of the new period", now+30, false)
	r.forget("q")
	r.record("q", report{used: 5, before: 4, reset: end + 20, batch: 5, now: now + 40})
	asks("forgotten while a batch was in flight", now+40, true)
	if used, reset, ok := r.find("q", now+40); used != 5 || reset != end+20 || !ok {
		t.Errorf("known of it: %d used until %d, %v", used, reset, ok)
	}
}
