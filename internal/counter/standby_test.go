package counter

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/counter/script"
)

// away asks a standby so many times and returns how many it admitted.
func away(t *testing.T, s *standby, asked int, o *outage, limits ...Limit) (admitted int) {
	t.Helper()
	for range asked {
		refused, err := s.count(limits, make([]Count, len(limits)), 1, o)
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
		r := newQuotaCache(100)
		s := newStandby(&ValkeyOptions{Gateways: func() int { return gateways }}, r, &Stats{})
		unsent := &outage{cause: errors.New("refused")}
		q := Limit{Key: "q", Max: 21, Period: time.Minute}
		reset := time.Now().Add(10 * time.Second).UnixMilli()
		r.record(q.Key, report{used: 8, reset: reset, asked: true, batch: 1})
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

// A quota that did not renew when the store opened its period does not renew
// here either, whatever its limit says by now, and what it owes is of that period.
func TestStandbyDoesNotRenewWhatTheStoreDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaCache(100)
		s := newStandby(&ValkeyOptions{}, r, &Stats{})
		unsent := &outage{cause: errors.New("refused")}
		q := Limit{Key: "q", Max: 20, Period: time.Minute}
		r.record(q.Key, report{used: 8, asked: true, batch: 1})
		expect(t, "what was free", away(t, s, 20, unsent, q), 12)
		expect(t, "debt", s.debts[q.Key], debt{calls: 12})
		time.Sleep(time.Minute)
		expect(t, "after the period that the limit has now", away(t, s, 20, unsent, q), 0)
	})
}

func TestStandbyOwesEachCallOfABatch(t *testing.T) {
	s := newStandby(&ValkeyOptions{}, newQuotaCache(100), &Stats{})
	q, r := Limit{Key: "q", Max: 8, Period: time.Minute}, Limit{Key: "r", Kind: Rate, Max: 9, Period: time.Minute}
	counts := make([]Count, 2)
	for i, c := range []struct {
		calls, refused int32
		left, owed     int64
	}{{5, -1, 3, 5}, {4, 0, 3, 5}, {0, -1, 3, 5}, {3, -1, 0, 8}} {
		refused, err := s.count([]Limit{q, r}, counts, c.calls, &outage{cause: errors.New("refused")})
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
	s := newStandby(&ValkeyOptions{}, newQuotaCache(100), &Stats{})
	q := Limit{Key: "q", Max: 3, Period: time.Minute}
	expect(t, "admitted", away(t, s, 2, &outage{cause: errors.New("time-out"), unknown: true}, q), 2)
	expect(t, "has debts", s.hasDebts(), false)
	expect(t, "admitted, surely not counted", away(t, s, 5, &outage{cause: errors.New("refused")}, q), 1)
	expect(t, "debt", s.debts[q.Key].calls, int64(1))
	if debts := s.takeDebts(); len(debts) != 1 || s.hasDebts() {
		t.Errorf("debts taken: %v, has more: %v", debts, s.hasDebts())
	}
	expect(t, "admitted before the store knows", away(t, s, 5, &outage{cause: errors.New("refused")}, q), 0)
	s.keepDebts([]script.Adjustment{{What: script.Debt, Key: q.Key, Calls: 1}})
	expect(t, "a debt that did not arrive is kept", s.debts[q.Key].calls, int64(1))
}
