package rollup

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition/usage"
)

// The reasons of these tests.
const (
	rateLimit     = 1
	quotaExceeded = 2
)

// ReasonName implements Meter.
func (*clock) ReasonName(r uint8) string { return []string{"", "rate_limit", "quota_exceeded"}[r] }

// clock is a Meter that tests set.
type clock struct {
	mu  sync.Mutex
	now usage.Latencies
}

func (c *clock) Latencies() usage.Latencies {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(bucket int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[bucket]++
}

// total adds up rows that are alike.
type total map[usage.Row]usage.Row

func (t total) add(r usage.Row) {
	like := r
	like.Hits, like.Total, like.Upstream = 0, 0, 0
	sum := t[like]
	t[like] = usage.Row{Hits: sum.Hits + r.Hits, Total: sum.Total + r.Total, Upstream: sum.Upstream + r.Upstream}
}

// taken adds up what there is to take.
func taken(c *Counts) (t total, late []usage.Latency) {
	t = make(total)
	c.Take(t.add, func(l usage.Latency) { late = append(late, l) })
	return t, late
}

var noon = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

func TestCallsThatAreAlikeAreOneRow(t *testing.T) {
	c := New()
	api := NewAPI("shop", "org", &clock{})
	for range 3 {
		c.Count(&Call{API: api, Key: "k", Status: 200, End: noon, Total: 5 * time.Millisecond, Upstream: 3 * time.Millisecond})
	}
	c.Count(&Call{API: api, Key: "k", Status: 429, Reason: rateLimit, End: noon, Total: time.Millisecond})
	c.Count(&Call{API: api, Status: 200, End: noon.Add(time.Minute)})
	got, _ := taken(c)
	want := total{
		{Minute: noon.Unix() - 30, Org: "org", API: "shop", Key: "k", Status: 200}:                       {Hits: 3, Total: 15000, Upstream: 9000},
		{Minute: noon.Unix() - 30, Org: "org", API: "shop", Key: "k", Status: 429, Reason: "rate_limit"}: {Hits: 1, Total: 1000},
		{Minute: noon.Unix() + 30, Org: "org", API: "shop", Status: 200}:                                 {Hits: 1},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if again, _ := taken(c); len(again) != 0 {
		t.Errorf("taken twice: %v", again)
	}
}

func TestAKeyInClearDoesNotLeave(t *testing.T) {
	c := New()
	c.Count(&Call{API: NewAPI("a", "", &clock{}), Key: "my secret", Name: "7c1f", Status: 200, End: noon})
	got, _ := taken(c)
	for row := range got {
		if strings.Contains(row.Key, "secret") || row.Key != usage.KeyOf("my secret", true) || len(row.Key) != 64 {
			t.Errorf("key %q", row.Key)
		}
	}
	if len(got) != 1 {
		t.Errorf("%d rows", len(got))
	}
}

func TestWhatWasCountedIsWhatIsTaken(t *testing.T) {
	c := New()
	apis := []*API{NewAPI("a", "one", &clock{}), NewAPI("b", "two", &clock{}), NewAPI("c", "one", &clock{})}
	const workers, calls = 8, 20_000
	var seats [3][500]Seat // of every second key
	want := make([]total, workers)
	var working sync.WaitGroup
	for w := range workers {
		want[w] = make(total)
		working.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range calls {
				at := random.IntN(len(apis))
				api := apis[at]
				call := Call{API: api, Status: 200 + random.IntN(3), End: noon.Add(time.Duration(random.IntN(3)) * time.Minute), Total: time.Millisecond}
				if n := random.IntN(500); n > 0 {
					call.Key = fmt.Sprint("key", n)
					if n%2 > 0 {
						call.Seat = &seats[at][n]
					}
				}
				if random.IntN(10) == 0 {
					call.Reason = quotaExceeded
				}
				c.Count(&call)
				want[w].add(usage.Row{
					Minute: call.End.Unix() / 60 * 60, Org: api.org, API: api.id, Key: call.Key, Status: call.Status, Reason: (&clock{}).ReasonName(call.Reason),
					Hits: 1, Total: 1000,
				})
			}
		})
	}
	got := make(total)
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		c.Take(got.add, func(usage.Latency) {})
	}
	all := make(total)
	for _, one := range want {
		for like, sum := range one {
			like.Hits, like.Total, like.Upstream = sum.Hits, sum.Total, sum.Upstream
			all.add(like)
		}
	}
	if !maps.Equal(got, all) {
		t.Errorf("%d rows were taken, %d were counted, or their sums differ", len(got), len(all))
	}
}

func TestASeatIsOfOneKeyAndOneAPI(t *testing.T) {
	c := New()
	api, other := NewAPI("a", "", &clock{}), NewAPI("b", "", &clock{})
	var seat Seat
	for range 2 {
		for _, call := range []Call{
			{API: api, Key: "one", Status: 200},
			{API: api, Key: "one", Status: 200},
			{API: api, Key: "two", Status: 200},
			{API: other, Key: "two", Status: 200},
			{API: other, Key: "two", Status: 403, Reason: rateLimit},
			{API: other, Status: 200},
		} {
			call.Seat, call.End, call.Total, call.Upstream = &seat, noon, 3*time.Microsecond, time.Microsecond
			c.Count(&call)
		}
	}
	got, _ := taken(c)
	minute := noon.Unix() - 30
	want := total{
		{Minute: minute, API: "a", Key: "one", Status: 200}:                       {Hits: 4, Total: 12, Upstream: 4},
		{Minute: minute, API: "a", Key: "two", Status: 200}:                       {Hits: 2, Total: 6, Upstream: 2},
		{Minute: minute, API: "b", Key: "two", Status: 200}:                       {Hits: 2, Total: 6, Upstream: 2},
		{Minute: minute, API: "b", Key: "two", Status: 403, Reason: "rate_limit"}: {Hits: 2, Total: 6, Upstream: 2},
		{Minute: minute, API: "b", Status: 200}:                                   {Hits: 2, Total: 6, Upstream: 2},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if again, _ := taken(c); len(again) != 0 {
		t.Errorf("taken twice: %v", again)
	}
}

func TestKeysWithoutRoomCountAsOthersAndNothingIsLostSilently(t *testing.T) {
	c := newCounts(limits{keys: 4, rows: 6})
	api := NewAPI("a", "", &clock{})
	seats := make([]Seat, 10_000)
	for i := range seats {
		call := Call{API: api, Key: fmt.Sprint("key", i), Status: 200, End: noon}
		if i%2 == 0 {
			call.Seat = &seats[i]
		}
		c.Count(&call)
	}
	rows, hits, others := 0, int64(0), int64(0)
	c.Take(func(r usage.Row) {
		rows++
		hits += r.Hits
		if r.Key == usage.Other {
			others += r.Hits
		}
	}, func(usage.Latency) {})
	if hits != 10_000 || rows > 6*shards || c.Lost() != 0 || others == 0 || uint64(others) != c.Others() {
		t.Errorf("%d rows of %d calls, of them %d of others (%d), %d lost", rows, hits, others, c.Others(), c.Lost())
	}
	for i := range 10_000 { // and the rows of others have no room either
		c.Count(&Call{API: api, Key: fmt.Sprint("key", i%1000), Status: i % 1000, End: noon})
	}
	hits, rows = 0, 0
	c.Take(func(r usage.Row) { rows++; hits += r.Hits }, func(usage.Latency) {})
	if uint64(hits)+c.Lost() != 10_000 || c.Lost() == 0 || rows > 6*shards {
		t.Errorf("%d rows of %d calls, %d lost", rows, hits, c.Lost())
	}
}

func TestLatenciesAreThoseSinceTheLastTake(t *testing.T) {
	c := New()
	times := &clock{}
	api := NewAPI("a", "org", times)
	for i := range 3 {
		for range i + 1 {
			times.add(i)
			c.Count(&Call{API: api, Status: 200, End: noon})
		}
		c.Count(&Call{API: api, Status: 200, End: noon.Add(time.Minute)})
		times.add(16)
		_, late := taken(c)
		want := usage.Latencies{16: 1}
		want[i] = int64(i + 1)
		if len(late) != 1 || late[0] != (usage.Latency{Minute: noon.Unix() + 30, Org: "org", API: "a", Counts: want}) {
			t.Errorf("%+v, want %v", late, want)
		}
	}
	if _, late := taken(c); len(late) != 0 {
		t.Errorf("without calls: %v", late)
	}
}

func TestAMovedAPIHasNoLatenciesOfItsPast(t *testing.T) {
	c, times := New(), &clock{}
	times.add(3)
	api := NewAPI("a", "org", times)
	api.SkipLatencies()
	times.add(4)
	c.Count(&Call{API: api, Status: 200, End: noon})
	if _, late := taken(c); len(late) != 1 || late[0].Counts != (usage.Latencies{4: 1}) {
		t.Errorf("%v", late)
	}
}

func TestATableThatWasLargeGetsSmallAgain(t *testing.T) {
	var tb table
	api := NewAPI("a", "", nil)
	fill := func(n int) {
		for i := range n {
			r := row{api: api, hits: 1, minute: uint32(i)}
			r.hash = r.hashWith(1)
			if !tb.add(&r, n) {
				t.Fatal("no room")
			}
		}
	}
	fill(4000)
	tb.reset()
	if len(tb.list) != 8192 {
		t.Errorf("%d rows are kept after 4000", len(tb.list))
	}
	fill(10)
	tb.reset()
	fill(10)
	if len(tb.list) != 2*leastRows || tb.n != 10 {
		t.Errorf("%d rows are kept for %d", len(tb.list), tb.n)
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	c := New()
	api := NewAPI("a", "", &clock{})
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("a key that is rather long, as hashes are, number ", i)
	}
	n, seats := 0, make([]Seat, len(keys))
	count := func() {
		c.Count(&Call{API: api, Key: keys[n%len(keys)], Status: 200, End: noon, Total: time.Millisecond})
		c.Count(&Call{API: api, Key: keys[n%len(keys)], Seat: &seats[n%len(seats)], Status: 200, End: noon, Total: time.Millisecond})
		c.Count(&Call{API: api, Status: 200, End: noon, Total: time.Millisecond})
		n++
	}
	for range 2 { // both tables of each shard reach their size
		for range 2000 {
			count()
		}
		c.Take(func(usage.Row) {}, func(usage.Latency) {})
	}
	if got := testing.AllocsPerRun(2000, count); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkCount(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%064x", i)
	}
	for _, with := range []struct {
		name  string
		keys  []string
		seats []Seat
	}{
		{"keyless", []string{""}, nil},
		{"one key", keys[:1], nil},
		{"one key, seated", keys[:1], make([]Seat, 1)},
		{"10000 keys", keys, nil},
		{"10000 keys, seated", keys, make([]Seat, len(keys))},
	} {
		b.Run(with.name, func(b *testing.B) {
			c := New()
			api := NewAPI("a", "", &clock{})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				at := rand.IntN(len(with.keys))
				for pb.Next() {
					call := Call{API: api, Key: with.keys[at], Status: 200, End: noon, Total: time.Millisecond, Upstream: time.Millisecond}
					if with.seats != nil {
						call.Seat = &with.seats[at]
					}
					c.Count(&call)
					if at++; at == len(with.keys) {
						at = 0
					}
				}
			})
		})
	}
}
