package counter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
)

// A subject is one counter under test; all stores must behave alike.
type subject struct {
	counter.Counter
	naming counter.Naming
}

// suite is what every Counter must do, whatever store is behind it.
func suite(t *testing.T, open func(*testing.T) subject) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, subject)
	}{
		{"quota admits exactly its maximum and leaves gapless remaining values", quotaExact},
		{"quota opens its period with its first call and renews when it is over", quotaRenews},
		{"quota without a period never renews until reset", quotaNeverRenews},
		{"raising a quota admits exactly the difference, lowering refuses at once", quotaRaiseLower},
		{"a changed renewal rate applies to the next period", quotaRenewalChange},
		{"reset opens a fresh period", quotaReset},
		{"rate admits its maximum, and again one period after each call", rateWindow},
		{"rate above 32 never exceeds its maximum in a window", rateBound},
		{"a refused call changes no counter and names the first exhausted limit", firstExhausted},
		{"several calls at once are counted all or nothing", batches},
		{"peek shows what take would see and counts nothing", peek},
		{"concurrent calls over limits of one subject admit exactly each maximum", oneSubject},
		{"concurrent calls over limits of several subjects admit exactly each maximum", manySubjects},
		{"concurrent batches over limits of one subject admit exactly each maximum", oneSubjectBatches},
		{"concurrent batches over limits of several subjects admit exactly each maximum", manySubjectsBatches},
		{"a batch is refused exactly when there is no room for all of it", batchesFill},
		{"a key of another kind is an error and nothing is counted", otherKind},
		{"more limits than one call may have are refused", tooMany},
		{"no calls, or more than one take may count, are refused", noCalls},
		{"a call without limits is admitted", noLimits},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

var serial atomic.Int64

// quota and rate make limits under a key of their own in each test.
func (s subject) quota(name string, most int64, period time.Duration) counter.Limit {
	return counter.Limit{Key: s.naming.Quota("", name), Kind: counter.Quota, Max: most, Period: period}
}

func (s subject) rate(name string, most int64, period time.Duration) counter.Limit {
	return counter.Limit{Key: s.naming.Rate("", name, "7"), Kind: counter.Rate, Max: most, Period: period}
}

func unique(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("t%d-%d", time.Now().UnixNano(), serial.Add(1))
}

func (s subject) take(t *testing.T, limits ...counter.Limit) (int, []counter.Count) {
	t.Helper()
	return s.takeCalls(t, 1, limits...)
}

func (s subject) takeCalls(t *testing.T, calls int, limits ...counter.Limit) (int, []counter.Count) {
	t.Helper()
	counts := make([]counter.Count, len(limits))
	refused, err := s.Take(t.Context(), limits, calls, counts)
	if err != nil {
		t.Fatalf("take %d calls under %v: %v", calls, limits, err)
	}
	return refused, counts
}

func (s subject) peek(t *testing.T, limits ...counter.Limit) []counter.Count {
	t.Helper()
	counts := make([]counter.Count, len(limits))
	if err := s.Peek(t.Context(), limits, counts); err != nil {
		t.Fatalf("peek %v: %v", limits, err)
	}
	return counts
}

func (s subject) admitted(t *testing.T, calls int, limits ...counter.Limit) (n int64) {
	t.Helper()
	for range calls {
		if refused, _ := s.take(t, limits...); refused < 0 {
			n++
		}
	}
	return n
}

// until polls a condition; it is the only way these tests wait for time.
func until(t *testing.T, what string, within time.Duration, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-tick.C {
		if cond() {
			return
		}
	}
	t.Fatalf("not within %s: %s", within, what)
}

func want(t *testing.T, what string, got, expected any) {
	t.Helper()
	if got != expected {
		t.Fatalf("%s: got %v, want %v", what, got, expected)
	}
}

func quotaExact(t *testing.T, s subject) {
	q := s.quota(unique(t), 10, time.Minute)
	for i := range int64(15) {
		refused, counts := s.take(t, q)
		if i < 10 {
			want(t, "refused", refused, -1)
			want(t, "remaining", counts[0].Remaining, 9-i)
		} else {
			want(t, "refused", refused, 0)
			want(t, "remaining", counts[0].Remaining, int64(0))
		}
		if left := counts[0].ResetAt - time.Now().UnixMilli(); left < 50_000 || left > 60_500 {
			t.Fatalf("reset in %d ms, want about 60000", left)
		}
	}
}

// inTime repeats steps, which begin with fresh keys, until all of them took less
// than a period: a machine may be held up at any of them for longer.
func inTime(t *testing.T, period time.Duration, steps func()) {
	t.Helper()
	for range 50 {
		start := time.Now()
		if steps(); time.Since(start) < period {
			return
		}
	}
	t.Fatalf("50 times not within %s", period)
}

func quotaRenews(t *testing.T, s subject) {
	const period = 300 * time.Millisecond
	var q counter.Limit
	var before int64
	var first, second []counter.Count
	var refused int
	inTime(t, period, func() {
		q = s.quota(unique(t), 2, period)
		before = time.Now().UnixMilli()
		_, first = s.take(t, q)
		until(t, "some of the period passed", time.Second, func() bool { return time.Now().UnixMilli() > before+20 })
		_, second = s.take(t, q)
		refused, _ = s.take(t, q)
	})
	if at := first[0].ResetAt; at < before+290 || at > time.Now().UnixMilli()+310 {
		t.Fatalf("reset at %d, first call at %d: want the period of the first call", at, before)
	}
	want(t, "reset of the second call", second[0].ResetAt, first[0].ResetAt)
	want(t, "refused when used up", refused, 0)
	var counts []counter.Count
	until(t, "quota renewed", 2*time.Second, func() bool {
		refused, counts = s.take(t, q)
		return refused < 0
	})
	if now := time.Now().UnixMilli(); now < first[0].ResetAt-2 {
		t.Fatalf("renewed at %d, before %d", now, first[0].ResetAt)
	}
	want(t, "remaining in the new period", counts[0].Remaining, int64(1))
	if counts[0].ResetAt <= first[0].ResetAt {
		t.Fatalf("new period ends at %d, not after %d", counts[0].ResetAt, first[0].ResetAt)
	}
}

func quotaNeverRenews(t *testing.T, s subject) {
	q := s.quota(unique(t), 3, 0)
	want(t, "admitted", s.admitted(t, 5, q), int64(3))
	want(t, "reset time", s.peek(t, q)[0], counter.Count{})
	if err := s.Reset(t.Context(), q.Key); err != nil {
		t.Fatal(err)
	}
	want(t, "admitted after reset", s.admitted(t, 5, q), int64(3))
}

func quotaRaiseLower(t *testing.T, s subject) {
	q := s.quota(unique(t), 5, time.Minute)
	want(t, "admitted", s.admitted(t, 9, q), int64(5))
	q.Max = 8
	want(t, "admitted after raising by 3", s.admitted(t, 9, q), int64(3))
	q.Max = 6
	want(t, "admitted after lowering below used", s.admitted(t, 2, q), int64(0))
	want(t, "remaining after lowering", s.peek(t, q)[0].Remaining, int64(0))
	q.Max = 9
	want(t, "admitted after raising again", s.admitted(t, 9, q), int64(1))
}

func quotaRenewalChange(t *testing.T, s subject) {
	const period = 250 * time.Millisecond
	var q counter.Limit
	var first, counts []counter.Count
	var refused int
	inTime(t, period, func() {
		q = s.quota(unique(t), 1, period)
		_, first = s.take(t, q)
		q.Period = time.Minute
		refused, counts = s.take(t, q)
	})
	want(t, "refused in the old period", refused, 0)
	want(t, "reset of the old period", counts[0].ResetAt, first[0].ResetAt)
	until(t, "old period over at its old end", 2*time.Second, func() bool {
		refused, counts = s.take(t, q)
		return refused < 0
	})
	if left := counts[0].ResetAt - time.Now().UnixMilli(); left < 50_000 {
		t.Fatalf("next period lasts %d ms, want the new renewal rate", left)
	}
}

func quotaReset(t *testing.T, s subject) {
	name := unique(t)
	q, other := s.quota(name, 2, time.Minute), s.quota(name+"x", 2, time.Minute)
	s.take(t, q)
	s.take(t, other)
	if err := s.Reset(t.Context(), q.Key, s.naming.Quota("", name+"-never-seen")); err != nil {
		t.Fatal(err)
	}
	counts := s.peek(t, q, other)
	want(t, "after reset", counts[0], counter.Count{Remaining: 2})
	want(t, "neighbour's remaining", counts[1].Remaining, int64(1))
	if err := s.Reset(t.Context()); err != nil {
		t.Fatalf("reset of nothing: %v", err)
	}
}

func rateWindow(t *testing.T, s subject) {
	const period = 200 * time.Millisecond
	var r counter.Limit
	var start time.Time
	var counts []counter.Count
	var told []string
	inTime(t, period, func() {
		r, told = s.rate(unique(t), 5, period), nil
		start = time.Now()
		for range 6 {
			var refused int
			refused, counts = s.take(t, r)
			told = append(told, fmt.Sprint(refused, ":", counts[0].Remaining))
		}
	})
	want(t, "refused and remaining", strings.Join(told, " "), "-1:4 -1:3 -1:2 -1:1 -1:0 0:0")
	if left := counts[0].ResetAt - start.UnixMilli(); left < 100 || left > 500 {
		t.Fatalf("next call is freed %d ms after the first, want about 200", left)
	}
	until(t, "the first call left the window", 2*time.Second, func() bool {
		return s.peek(t, r)[0].Remaining > 0
	})
	if passed := time.Since(start); passed < period-5*time.Millisecond {
		t.Fatalf("a call left the window after %s", passed)
	}
}

// rateBound floods a rate, until it has refused calls and admitted those of some
// windows, and checks every window of what was admitted, with the times seen by
// the caller: a call was counted between its start and its end.
func rateBound(t *testing.T, s subject) {
	const most, period = 100, 100 * time.Millisecond
	r := s.rate(unique(t), most, period)
	type admission struct{ from, to time.Time }
	var mu sync.Mutex
	var log []admission
	refusals := 0
	note := func(from time.Time, refused int) (enough bool) {
		mu.Lock()
		defer mu.Unlock()
		if refused < 0 {
			log = append(log, admission{from, time.Now()})
		} else {
			refusals++
		}
		return len(log) >= 4*most && refusals >= most
	}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			counts := make([]counter.Count, 1)
			for stop := time.Now().Add(20 * time.Second); time.Now().Before(stop); {
				from := time.Now()
				refused, err := s.Take(t.Context(), []counter.Limit{r}, 1, counts)
				if err != nil {
					t.Errorf("take: %v", err)
					return
				}
				if note(from, refused) {
					return
				}
			}
		})
	}
	group.Wait()
	if len(log) < 4*most || refusals < most {
		t.Fatalf("%d calls admitted and %d refused, want at least %d and %d", len(log), refusals, 4*most, most)
	}
	for _, first := range log { // all calls surely inside the window that begins with first's end
		inside := 0
		for _, a := range log {
			if !a.from.Before(first.to) && a.to.Before(first.to.Add(period)) {
				inside++
			}
		}
		if inside > most {
			t.Fatalf("%d calls in one window of %s, at most %d may be", inside, period, most)
		}
	}
}

func firstExhausted(t *testing.T, s subject) {
	name := unique(t)
	wide := s.quota(name, 10, time.Minute)
	narrow := s.quota(name+"b", 1, time.Minute)
	rate := s.rate(name, 1, time.Minute)
	want(t, "admitted", s.admitted(t, 1, narrow, rate), int64(1))
	for _, c := range []struct {
		limits []counter.Limit
		index  int
	}{
		{[]counter.Limit{wide, narrow, rate}, 1},
		{[]counter.Limit{wide, rate, narrow}, 1},
		{[]counter.Limit{rate, narrow}, 0},
		{[]counter.Limit{wide, rate}, 1},
	} {
		refused, counts := s.take(t, c.limits...)
		if !s.naming.Tagged { // a cluster asks slot by slot, so the first slot's first
			want(t, "index of the first exhausted limit", refused, c.index)
		}
		if refused < 0 || c.limits[refused].Key == wide.Key {
			t.Errorf("refused index %d of %v: not an exhausted limit", refused, c.limits)
		} else {
			want(t, "remaining of the exhausted limit", counts[refused].Remaining, int64(0))
		}
	}
	want(t, "what refused calls left", s.peek(t, wide)[0], counter.Count{Remaining: 10})
}

func batches(t *testing.T, s subject) {
	name := unique(t)
	q, r := s.quota(name, 100, time.Minute), s.rate(name, 70, time.Minute) // above 32 a rate has groups of several calls
	for i, c := range []struct {
		calls, refused int
		quota, rate    int64 // left afterwards
	}{
		{101, 0, 100, 70},
		{71, 1, 100, 70},
		{40, -1, 60, 30},
		{31, 1, 60, 30},
		{61, 0, 60, 30},
		{1, -1, 59, 29},
		{29, -1, 30, 0},
		{1, 1, 30, 0},
		{counter.MaxCalls, 0, 30, 0},
	} {
		refused, counts := s.takeCalls(t, c.calls, q, r)
		want(t, fmt.Sprintf("batch %d: refused", i), refused, c.refused)
		want(t, fmt.Sprintf("batch %d: quota told", i), counts[0].Remaining, c.quota)
		want(t, fmt.Sprintf("batch %d: rate told", i), counts[1].Remaining, c.rate)
		left := s.peek(t, q, r)
		want(t, fmt.Sprintf("batch %d: quota left", i), left[0].Remaining, c.quota)
		want(t, fmt.Sprintf("batch %d: rate left", i), left[1].Remaining, c.rate)
	}
	refused, counts := s.takeCalls(t, 30, q)
	want(t, "the rest of the quota: refused", refused, -1)
	want(t, "the rest of the quota: left", counts[0].Remaining, int64(0))
}

// batchesFill: callers who all want as many leave less than one of them wants,
// and what is left is what was not told to anybody.
func batchesFill(t *testing.T, s subject) {
	const most, calls = 100, 7
	q := s.quota(unique(t), most, time.Minute)
	var admitted atomic.Int64
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			counts := make([]counter.Count, 1)
			refused, err := s.Take(t.Context(), []counter.Limit{q}, calls, counts)
			switch {
			case err != nil:
				t.Errorf("take: %v", err)
			case refused < 0:
				admitted.Add(1)
			case counts[0].Remaining >= calls:
				t.Errorf("%d calls refused with %d remaining", calls, counts[0].Remaining)
			}
		})
	}
	group.Wait()
	want(t, "batches admitted", admitted.Load(), int64(most/calls))
	want(t, "left", s.peek(t, q)[0].Remaining, int64(most%calls))
}

func noCalls(t *testing.T, s subject) {
	q := s.quota(unique(t), 1<<40, time.Minute)
	for _, calls := range []int{-1, 0, counter.MaxCalls + 1} {
		if _, err := s.Take(t.Context(), []counter.Limit{q}, calls, make([]counter.Count, 1)); !errors.Is(err, counter.ErrCalls) {
			t.Errorf("%d calls: %v, want %v", calls, err, counter.ErrCalls)
		}
	}
	refused, counts := s.takeCalls(t, counter.MaxCalls, q)
	want(t, "as many as may be: refused", refused, -1)
	want(t, "as many as may be: left", counts[0].Remaining, int64(1<<40-counter.MaxCalls))
}

func peek(t *testing.T, s subject) {
	name := unique(t)
	q, r := s.quota(name, 4, time.Minute), s.rate(name, 3, time.Minute)
	for range 3 {
		counts := s.peek(t, q, r)
		want(t, "fresh quota", counts[0], counter.Count{Remaining: 4})
		want(t, "fresh rate", counts[1], counter.Count{Remaining: 3})
	}
	_, taken := s.take(t, q, r)
	counts := s.peek(t, q, r)
	want(t, "quota after a call", counts[0], taken[0])
	want(t, "rate after a call", counts[1].Remaining, int64(2))
}

func oneSubject(t *testing.T, s subject) { property(t, s, limitsOfOne(t, s), true, 1) }

func oneSubjectBatches(t *testing.T, s subject) { property(t, s, limitsOfOne(t, s), true, 4) }

func limitsOfOne(t *testing.T, s subject) []counter.Limit {
	name := unique(t)
	pool := make([]counter.Limit, 6)
	for i := range pool {
		pool[i] = counter.Limit{Key: s.naming.Quota(fmt.Sprint("api", i), name), Max: int64(20 + 13*i), Period: time.Minute}
		if i%2 == 1 {
			pool[i].Key, pool[i].Kind, pool[i].Max = s.naming.Rate(fmt.Sprint("api", i), name, "7"), counter.Rate, int64(8+5*i)
		}
	}
	return pool
}

// manySubjects crosses slots in a cluster, where a refused call's earlier
// counts are taken back: a remaining value can then be told twice, and a rate
// counts a little more than was admitted until its period is over.
func manySubjects(t *testing.T, s subject) { property(t, s, limitsOfMany(t, s), !s.naming.Tagged, 1) }

func manySubjectsBatches(t *testing.T, s subject) {
	property(t, s, limitsOfMany(t, s), !s.naming.Tagged, 4)
}

func limitsOfMany(t *testing.T, s subject) []counter.Limit {
	pool := make([]counter.Limit, 6)
	for i := range pool {
		if i%2 == 0 {
			pool[i] = s.quota(unique(t), int64(20+13*i), time.Minute)
		} else {
			pool[i] = s.rate(unique(t), int64(8+5*i), time.Minute)
		}
	}
	return pool
}

// property: sets of limits, many callers of up to so many calls at once.
// Whatever the interleaving, every limit's remaining values are distinct, what
// the store counted is what was admitted, and every set ends at a limit that is
// used up.
func property(t *testing.T, s subject, pool []counter.Limit, exact bool, most int) {
	sets := [][]counter.Limit{pool[:1], pool[:2], pool[1:4], pool[2:6], {pool[5], pool[0]}, {pool[3]}}
	seen := flood(t, s, sets, most)
	for _, l := range pool {
		values := seen[l.Key]
		slices.Sort(values)
		for i := 1; i < len(values) && exact; i++ {
			if values[i] == values[i-1] {
				t.Errorf("%s: remaining %d was told twice", l.Key, values[i])
			}
		}
		left := s.peek(t, l)[0].Remaining
		switch counted := l.Max - left; {
		case exact || l.Kind == counter.Quota:
			want(t, l.Key+": counted", counted, int64(len(values)))
		case counted < int64(len(values)):
			t.Errorf("%s: counted %d, admitted %d", l.Key, counted, len(values))
		}
		if len(values) > 0 && exact {
			want(t, l.Key+": smallest remaining told", values[0], left)
		}
	}
	for _, set := range sets {
		if refused, counts := s.take(t, set...); refused < 0 || counts[refused].Remaining != 0 {
			t.Errorf("set %v still admits: flood was too small or calls were lost", set)
		}
	}
}

// flood takes from all sets at once and returns the remaining values that
// admitted calls were told, by key. A batch is told that of its last call.
func flood(t *testing.T, s subject, sets [][]counter.Limit, most int) map[string][]int64 {
	var mu sync.Mutex
	seen := map[string][]int64{}
	var group sync.WaitGroup
	for worker := range 64 {
		group.Go(func() {
			counts := make([]counter.Count, 8)
			for i := range 24 {
				limits := sets[(worker+i)%len(sets)]
				calls := 1 + (worker/len(sets)+i)%most
				refused, err := s.Take(t.Context(), limits, calls, counts)
				if err != nil {
					t.Errorf("take: %v", err)
					return
				}
				if refused >= 0 {
					if counts[refused].Remaining >= int64(calls) {
						t.Errorf("%d calls refused for %s with %d remaining", calls, limits[refused].Key, counts[refused].Remaining)
					}
					continue
				}
				mu.Lock()
				for j, l := range limits {
					for k := range int64(calls) {
						seen[l.Key] = append(seen[l.Key], counts[j].Remaining+k)
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return seen
}

func otherKind(t *testing.T, s subject) {
	q := s.quota(unique(t), 5, time.Minute)
	other := s.quota(unique(t), 5, time.Minute)
	if !s.naming.Tagged { // both in one command, wherever they are
		s.take(t, q)
	}
	s.take(t, q)
	before := s.peek(t, q)
	wrong := q
	wrong.Kind = counter.Rate
	counts := make([]counter.Count, 2)
	if _, err := s.Take(context.Background(), []counter.Limit{wrong}, 1, counts); err == nil || !strings.Contains(err.Error(), counter.ErrNotCounter.Error()) {
		t.Fatalf("take of a quota as a rate: %v, want %v", err, counter.ErrNotCounter)
	}
	want(t, "after the error", s.peek(t, q)[0], before[0])
	want(t, "a neighbour", s.peek(t, other)[0].Remaining, int64(5))
}

func tooMany(t *testing.T, s subject) {
	limits := make([]counter.Limit, counter.MaxLimits+1)
	for i := range limits {
		limits[i] = s.quota(unique(t), 1, time.Minute)
	}
	if _, err := s.Take(t.Context(), limits, 1, make([]counter.Count, len(limits))); err == nil {
		t.Error("17 limits were accepted")
	}
	if err := s.Peek(t.Context(), limits[:2], make([]counter.Count, 1)); err == nil {
		t.Error("fewer counts than limits were accepted")
	}
	most := limits[:counter.MaxLimits]
	refused, _ := s.take(t, most...)
	want(t, "16 limits, first call", refused, -1)
}

func noLimits(t *testing.T, s subject) {
	refused, _ := s.take(t)
	want(t, "refused", refused, -1)
}
