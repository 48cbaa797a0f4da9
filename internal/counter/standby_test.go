package counter

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// away asks a standby so many times and returns how many it admitted.
func away(t *testing.T, s *standby, asked int, o *outage, limits ...Limit) (admitted int) {
	t.Helper()
	for range asked {
		refused, err := s.ask(limits, make([]Count, len(limits)), 1, o)
		if err != nil {
			t.Fatal(err)
		}
		if refused < 0 {
			admitted++
		}
	}
	return admitted
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A share is a part of what was free until the known renewal, and of the whole
// in each period after it, by as many gateways as there are at that moment.
func TestStandbyAdmitsItsShareInTheKnownPeriodAndInThoseAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateways := 2
		r := newRecall(100)
		s := newStandby(&ValkeyOptions{Gateways: func() int { return gateways }}, r, &Stats{})
		unsent := &outage{cause: errors.New("refused")}
		q := Limit{Key: "q", Max: 21, Period: time.Minute}
		reset := time.Now().Add(10 * time.Second).UnixMilli()
		r.note(q.Key, 8, reset, 1, false)
		expect(t, "half of 13", away(t, s, 20, unsent, q), 7)
		expect(t, "debt", s.debts[q.Key], debt{calls: 7, reset: reset})
		gateways = 1
		expect(t, "the other half, when the other gateway is gone", away(t, s, 20, unsent, q), 6)
		q.Max += 2
		expect(t, "a raise", away(t, s, 20, unsent, q), 2)
		time.Sleep(10 * time.Second) // synctest's clock
		gateways = 3
		expect(t, "a third of 23 in the next period", away(t, s, 20, unsent, q), 8)
		expect(t, "debt of the new period", s.debts[q.Key], debt{calls: 8, reset: reset + 60_000, opened: true})
		gateways = 0
		expect(t, "no gateway known means one", away(t, s, 20, unsent, q), 15)
		s.refund([]Limit{q}, 1)
		expect(t, "refunded debt", s.debts[q.Key].calls, int64(22))
		expect(t, "refunded call", away(t, s, 20, unsent, q), 1)
	})
}

func TestStandbyOwesEachCallOfABatch(t *testing.T) {
	s := newStandby(&ValkeyOptions{}, newRecall(100), &Stats{})
	q, r := Limit{Key: "q", Max: 8, Period: time.Minute}, Limit{Key: "r", Kind: Rate, Max: 9, Period: time.Minute}
	counts := make([]Count, 2)
	for i, c := range []struct {
		calls, refused int32
		left, owed     int64
	}{{5, -1, 3, 5}, {4, 0, 3, 5}, {0, -1, 3, 5}, {3, -1, 0, 8}} {
		refused, err := s.ask([]Limit{q, r}, counts, c.calls, &outage{cause: errors.New("refused")})
		if err != nil || c.calls > 0 && refused != int(c.refused) || counts[0].Remaining != c.left || s.debts[q.Key].calls != c.owed {
			t.Errorf("batch %d: refused %d, %v, left %d, owes %d, want %v", i, refused, err, counts[0].Remaining, s.debts[q.Key].calls, c)
		}
	}
	s.refund([]Limit{q, r}, 3)
	expect(t, "debt after a refund", s.debts[q.Key].calls, int64(5))
	expect(t, "admitted after a refund", away(t, s, 5, &outage{cause: errors.New("refused")}, q), 3)
	expect(t, "calls decided", s.stats.Standby.Load(), int64(17))
}

func TestStandbyOwesNothingForCallsOfUnknownOutcome(t *testing.T) {
	s := newStandby(&ValkeyOptions{}, newRecall(100), &Stats{})
	q := Limit{Key: "q", Max: 3, Period: time.Minute}
	expect(t, "admitted", away(t, s, 2, &outage{cause: errors.New("time-out"), unknown: true}, q), 2)
	expect(t, "owes", s.owes(), false)
	expect(t, "admitted, surely not counted", away(t, s, 5, &outage{cause: errors.New("refused")}, q), 1)
	expect(t, "debt", s.debts[q.Key].calls, int64(1))
	if handed := s.settle(); len(handed) != 1 || s.owes() {
		t.Errorf("debts handed over: %v, still owes: %v", handed, s.owes())
	}
	expect(t, "admitted before the store knows", away(t, s, 5, &outage{cause: errors.New("refused")}, q), 0)
	s.keep([]adjustment{{what: adjustDebt, key: q.Key, calls: 1}})
	expect(t, "a debt that did not arrive is kept", s.debts[q.Key].calls, int64(1))
}

// The keys used latest are remembered, whatever else passes by.
func TestStoreInDoubtIsNotBelievedToHaveCountedLess(t *testing.T) {
	now := time.Now().UnixMilli()
	r := newRecall(recallMost)
	r.note("open", 90, now+60_000, 1, false)
	r.note("open", 1, now+70_000, 2, true) // what an empty store says
	if used, reset, _ := r.find("open", now); used != 90 || reset != now+60_000 {
		t.Errorf("%d used until %d", used, reset-now)
	}
	r.note("open", 91, now+60_000, 3, true)
	if used, _, _ := r.find("open", now); used != 91 {
		t.Errorf("%d used after a higher count", used)
	}
	r.note("over", 90, now-1, 1, false)
	r.note("over", 1, now+60_000, 2, true)
	if used, _, _ := r.find("over", now); used != 1 {
		t.Errorf("%d used in a new period", used)
	}
}

func TestRecallForgetsTheKeysNotUsedForLongest(t *testing.T) {
	const most, hot = 16_000, 1000
	r := newRecall(most)
	now := time.Now().UnixMilli()
	for i := range 10 * most {
		r.note(fmt.Sprint("cold", i), 1, now+60_000, uint64(i), false)
		r.note(fmt.Sprint("hot", i%hot), int64(i), now+60_000, uint64(i), false)
	}
	for i := range hot {
		if used, _, ok := r.find(fmt.Sprint("hot", i), now); !ok || used < 9*most {
			t.Fatalf("hot key %d: used %d, known %v", i, used, ok)
		}
	}
	if all := len(r.open(now)); all > most || all < most/2 {
		t.Errorf("%d keys remembered, want up to %d", all, most)
	}
	r.note("hot1", 5, now+60_000, 3, false) // landed late
	if used, _, _ := r.find("hot1", now); used == 5 {
		t.Error("a reply that landed late replaced a newer one")
	}
	r.forget("hot1")
	if _, _, ok := r.find("hot1", now); ok {
		t.Error("a key that was reset is still known")
	}
	if _, _, ok := r.find("hot2", now+60_000); ok {
		t.Error("a period that is over is still known")
	}
	for i := range 2 * most { // forgotten entries make room once, and only once
		r.note(fmt.Sprint("later", i), 1, now+60_000, uint64(20*most+i), false)
	}
	if all := len(r.open(now)); all > most {
		t.Errorf("%d keys remembered, want up to %d", all, most)
	}
}
