package recall

import (
	"fmt"
	"testing"
	"time"
)

func (r *Recall) tell(key string, used, reset int64, flight uint64, doubt bool) {
	t := Told{Used: used, Before: used - 1, Reset: reset, Asked: true, Flight: flight, Now: time.Now().UnixMilli(), Doubt: doubt}
	r.Note(nil, key, r.Hash(key), t)
}

func TestStoreInDoubtIsNotBelievedToHaveCountedLess(t *testing.T) {
	now := time.Now().UnixMilli()
	r := New(Keys)
	r.tell("open", 90, now+60_000, 1, false)
	r.tell("open", 1, now+70_000, 2, true) // what an empty store says
	if used, reset, _ := r.Find("open", now); used != 90 || reset != now+60_000 {
		t.Errorf("%d used until %d", used, reset-now)
	}
	r.tell("open", 91, now+60_000, 3, true)
	if used, _, _ := r.Find("open", now); used != 91 {
		t.Errorf("%d used after a higher count", used)
	}
	r.tell("over", 90, now-1, 1, false)
	r.tell("over", 1, now+60_000, 2, true)
	if used, _, _ := r.Find("over", now); used != 1 {
		t.Errorf("%d used in a new period", used)
	}
}

// The keys used latest are remembered, whatever else passes by.
func TestRecallForgetsTheKeysNotUsedForLongest(t *testing.T) {
	const most, hot = 16_000, 1000
	r := New(most)
	now := time.Now().UnixMilli()
	for i := range 10 * most {
		r.tell(fmt.Sprint("cold", i), 1, now+60_000, uint64(i), false)
		r.tell(fmt.Sprint("hot", i%hot), int64(i), now+60_000, uint64(i), false)
	}
	for i := range hot {
		if used, _, ok := r.Find(fmt.Sprint("hot", i), now); !ok || used < 9*most {
			t.Fatalf("hot key %d: used %d, known %v", i, used, ok)
		}
	}
	if all := len(r.Open(now)); all > most || all < most/2 {
		t.Errorf("%d keys remembered, want up to %d", all, most)
	}
	r.tell("hot1", 5, now+60_000, 3, false) // landed late
	if used, _, _ := r.Find("hot1", now); used == 5 {
		t.Error("a reply that landed late replaced a newer one")
	}
	r.Forget("hot1")
	if _, _, ok := r.Find("hot1", now); ok {
		t.Error("a key that was reset is still known")
	}
	if _, _, ok := r.Find("hot2", now+60_000); ok {
		t.Error("a period that is over is still known")
	}
	for i := range 2 * most { // forgotten entries make room once, and only once
		r.tell(fmt.Sprint("later", i), 1, now+60_000, uint64(20*most+i), false)
	}
	if all := len(r.Open(now)); all > most {
		t.Errorf("%d keys remembered, want up to %d", all, most)
	}
}

// The end of a period is asked for when it is not known, over, or told a while
// ago, and after someone reset the quota.
func TestEndOfAPeriodIsAskedForWhenItMayBeAnotherOne(t *testing.T) {
	r := New(100)
	h := r.Hash("q")
	const now, end = 1_000_000, 2_000_000
	asks := func(what string, at int64, want bool) {
		t.Helper()
		if _, _, ask := r.Look("q", h, at); ask != want {
			t.Errorf("%s: asks %v, want %v", what, ask, want)
		}
	}
	asks("a key not seen", now, true)
	r.Note(nil, "q", h, Told{Used: 5, Before: 4, Reset: end, Asked: true, Flight: 1, Now: now})
	asks("just told", now, false)
	asks("told a second ago", now+freshFor, false)
	asks("told longer ago", now+freshFor+1, true)
	asks("told later than now: the clock was set back", now-1, true)
	asks("over", end, true)
	e, reset, _ := r.Look("q", h, now)
	if reset != end {
		t.Errorf("reset %d, want %d", reset, end)
	}
	r.Note(e, "q", h, Told{Used: 6, Before: 5, Reset: end, Flight: 2, Now: now + 10})
	asks("counted on", now+10, false)
	r.Note(e, "q", h, Told{Used: 3, Before: 2, Reset: end, Flight: 1, Now: now + 10})
	asks("told by a flight that landed late", now+10, false)
	r.Note(e, "q", h, Told{Used: 3, Before: 2, Reset: end, Flight: 3, Now: now + 20})
	asks("reset by someone else", now+20, true)
	r.Note(e, "q", h, Told{Used: 4, Before: 3, Reset: end + 20, Asked: true, Flight: 4, Now: now + 30})
	asks("told of the new period", now+30, false)
	r.Forget("q")
	r.Note(e, "q", h, Told{Used: 5, Before: 4, Reset: end + 20, Flight: 5, Now: now + 40})
	asks("forgotten while a flight was away", now+40, true)
	if used, reset, ok := r.Find("q", now+40); used != 5 || reset != end+20 || !ok {
		t.Errorf("known of it: %d used until %d, %v", used, reset, ok)
	}
}
