package counter_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
)

func TestMemory(t *testing.T) {
	suite(t, func(*testing.T) subject { return subject{Counter: counter.NewMemory(nil)} })
}

func TestMemoryTakesWithoutAllocating(t *testing.T) {
	m := counter.NewMemory(nil)
	s := subject{Counter: m}
	limits := []counter.Limit{s.rate("k", 100, 50*time.Millisecond), s.quota("k", 1<<40, time.Hour), s.quota("spent", 0, time.Hour)}
	counts := make([]counter.Count, 3)
	for name, used := range map[string][]counter.Limit{"admitted": limits[:2], "refused": limits} {
		run := func() { m.Take(t.Context(), used, 1, counts) }
		for range 10_000 {
			run()
		}
		if n := testing.AllocsPerRun(2000, run); n != 0 {
			t.Errorf("%s call: %v allocations, want 0", name, n)
		}
	}
}

// A day of a quota of 10 per hour, on a false clock: it renews one hour after
// its first call, not on the clock.
func TestMemoryQuotaRenewsAfterItsFirstCallNotOnTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subject{Counter: counter.NewMemory(nil)}
		q := s.quota("k", 10, time.Hour)
		for range 24 {
			time.Sleep(17 * time.Minute) // synctest's clock: nobody uses the key
			_, first := s.take(t, q)
			want(t, "reset", first[0].ResetAt, time.Now().Add(time.Hour).UnixMilli())
			want(t, "admitted more", s.admitted(t, 20, q), int64(9))
			time.Sleep(time.Hour - time.Millisecond)
			want(t, "admitted one millisecond early", s.admitted(t, 3, q), int64(0))
			time.Sleep(time.Millisecond)
		}
	})
}

// The window slides: after 5 calls at 0 s and 5 at 6 s under 10 per 10 s,
// exactly 5 are free at 10 s and 5 more at 16 s.
func TestMemoryRateSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subject{Counter: counter.NewMemory(nil)}
		r := s.rate("k", 10, 10*time.Second)
		want(t, "at 0 s", s.admitted(t, 5, r), int64(5))
		time.Sleep(6 * time.Second)
		want(t, "at 6 s", s.admitted(t, 9, r), int64(5))
		time.Sleep(4*time.Second - time.Millisecond)
		want(t, "at 9.999 s", s.admitted(t, 9, r), int64(0))
		time.Sleep(time.Millisecond)
		want(t, "at 10 s", s.admitted(t, 9, r), int64(5))
		time.Sleep(6 * time.Second)
		want(t, "at 16 s", s.admitted(t, 9, r), int64(5))
	})
}

// A clock set back must not refuse a key for the length of the step.
func TestMemoryRateSurvivesAClockSetBack(t *testing.T) {
	var clock atomic.Int64
	clock.Store(1_800_000_000_000_000)
	s := subject{Counter: counter.NewMemory(func() time.Time { return time.UnixMicro(clock.Load()) })}
	r := s.rate("k", 2, 10*time.Second)
	want(t, "admitted", s.admitted(t, 3, r), int64(2))
	clock.Add(-int64(time.Hour / time.Microsecond))
	want(t, "admitted just after the step", s.admitted(t, 3, r), int64(0))
	clock.Add(10_000_000)
	want(t, "admitted one period after the step", s.admitted(t, 3, r), int64(2))
}

// Expired cells make room for new ones: a million keys that each live one
// second never need more room than what lives at once.
func TestMemoryForgetsCellsWhosePeriodIsOver(t *testing.T) {
	var clock atomic.Int64
	m := counter.NewMemory(func() time.Time { return time.UnixMicro(clock.Add(100)) })
	s := subject{Counter: m}
	most := 0
	for i := range 200_000 {
		s.take(t, s.quota(fmt.Sprint(i), 5, 100*time.Millisecond))
		if i%5000 == 0 {
			most = max(most, m.Len())
		}
	}
	if most > 12_000 { // 1000 alive; 256 shards keep at least 32 each
		t.Errorf("%d cells held at most, with 1000 alive", most)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	good := counter.Limit{Key: "a", Kind: counter.Rate, Max: 1, Period: time.Second}
	change := func(f func(*counter.Limit)) []counter.Limit {
		l := good
		f(&l)
		return []counter.Limit{l}
	}
	for _, c := range []struct {
		limits []counter.Limit
		want   string
	}{
		{[]counter.Limit{good}, ""},
		{change(func(l *counter.Limit) { l.Kind, l.Period = counter.Quota, 0 }), ""},
		{change(func(l *counter.Limit) { l.Key = "" }), `limit 0: key is empty`},
		{change(func(l *counter.Limit) { l.Kind = 9 }), `limit 0: kind 9 is neither Quota nor Rate`},
		{change(func(l *counter.Limit) { l.Max = -1 }), `limit 0: max -1 is not in 0..2147483647`},
		{change(func(l *counter.Limit) { l.Max = 1 << 31 }), `limit 0: max 2147483648 is not in 0..2147483647`},
		{change(func(l *counter.Limit) { l.Kind, l.Max = counter.Quota, 1<<53 }), `limit 0: max 9007199254740992 is not in 0..9007199254740991`},
		{change(func(l *counter.Limit) { l.Period = 0 }), `limit 0: period of a rate is 0: at least 1ms`},
		{change(func(l *counter.Limit) { l.Period = time.Microsecond }), `limit 0: period 1µs is not a whole number of milliseconds in 0..1752000h0m0s`},
		{[]counter.Limit{good, good}, `limit 1: key is also that of limit 0`},
		{make([]counter.Limit, 17), `17 limits on one call: at most 16: more limits than one call may have`},
	} {
		got := ""
		if err := counter.Check(c.limits); err != nil {
			got = err.Error()
		}
		want(t, "Check", got, c.want)
	}
}

func TestNamingFollowsTheWireNames(t *testing.T) {
	one, cluster := counter.Naming{}, counter.Naming{Tagged: true}
	for _, c := range []struct{ got, want string }{
		{one.Quota("", "h"), "quota-h"},
		{one.Quota("api1", "h"), "quota-api1-h"},
		{one.Rate("", "h", "9"), "rate-h-9"},
		{one.Rate("api1", "h", ""), "rate-api1-h"},
		{one.APIRate("api1"), "rate-api-api1"},
		{cluster.Quota("api1", "h"), "quota-api1-{h}"},
		{cluster.Rate("api1", "h", "9"), "rate-api1-{h}-9"},
		{cluster.APIRate("api1"), "rate-api-{api1}"},
	} {
		want(t, "name", c.got, c.want)
	}
}

func BenchmarkMemoryTake(b *testing.B) {
	for _, keys := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("rate and quota, keys=%d", keys), func(b *testing.B) {
			m := counter.NewMemory(nil)
			s := subject{Counter: m}
			sets := make([][]counter.Limit, keys)
			for i := range sets {
				name := fmt.Sprint(i)
				sets[i] = []counter.Limit{s.rate(name, 1_000_000, time.Second), s.quota(name, 1<<40, time.Hour)}
				m.Take(b.Context(), sets[i], 1, make([]counter.Count, 2))
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				counts := make([]counter.Count, 2)
				for i := 0; pb.Next(); i++ {
					m.Take(b.Context(), sets[i%keys], 1, counts)
				}
			})
		})
	}
}
