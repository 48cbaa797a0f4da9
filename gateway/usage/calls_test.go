package usage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/usage"
)

// The reasons of these tests.
const (
	rateLimit     = pipeline.ReasonRateLimit
	quotaExceeded = pipeline.ReasonQuotaExceeded
)

// histogram holds latencies that tests set.
type histogram struct {
	mu  sync.Mutex
	now usage.Latencies
}

func (c *histogram) read() usage.Latencies {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *histogram) add(bucket int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[bucket]++
}

// total adds up rows that differ in their numbers only.
type total map[usage.Row]usage.Row

func (t total) add(r usage.Row) {
	like := r
	like.Hits, like.Total, like.Upstream = 0, 0, 0
	sum := t[like]
	t[like] = usage.Row{Hits: sum.Hits + r.Hits, Total: sum.Total + r.Total, Upstream: sum.Upstream + r.Upstream}
}

// taken adds up what there is to take.
func taken(c *Calls) (t total, late []usage.Latency) {
	t = make(total)
	c.Take(t.add, func(l usage.Latency) { late = append(late, l) })
	return t, late
}

var noon = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

func TestCallsWithTheSameKeyAreOneRow(t *testing.T) {
	c := NewCalls()
	api := NewAPICalls("shop", "org", new(histogram).read)
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

func TestAKeyInClearIsHashed(t *testing.T) {
	c := NewCalls()
	c.Count(&Call{API: NewAPICalls("a", "", new(histogram).read), Key: "my secret", Name: "7c1f", Status: 200, End: noon})
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

func TestEveryCallIsTakenOnce(t *testing.T) {
	c := NewCalls()
	apis := []*APICalls{NewAPICalls("a", "one", new(histogram).read), NewAPICalls("b", "two", new(histogram).read), NewAPICalls("c", "one", new(histogram).read)}
	const workers, calls = 8, 20_000
	want := make([]total, workers)
	var working sync.WaitGroup
	for w := range workers {
		want[w] = make(total)
		working.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range calls {
				api := apis[random.IntN(len(apis))]
				call := Call{API: api, Status: 200 + random.IntN(3), End: noon.Add(time.Duration(random.IntN(3)) * time.Minute), Total: time.Millisecond}
				if n := random.IntN(500); n > 0 {
					call.Key = fmt.Sprint("key", n)
				}
				if random.IntN(10) == 0 {
					call.Reason = quotaExceeded
				}
				c.Count(&call)
				want[w].add(usage.Row{
					Minute: call.End.Unix() / 60 * 60, Org: api.org, API: api.id, Key: call.Key, Status: call.Status, Reason: call.Reason.String(),
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

func TestCallsBeyondTheLimitsCountAsOtherOrLost(t *testing.T) {
	c := newCalls(callLimits{keys: 4, rows: 6})
	api := NewAPICalls("a", "", new(histogram).read)
	for i := range 10_000 {
		c.Count(&Call{API: api, Key: fmt.Sprint("key", i), Status: 200, End: noon})
	}
	rows, hits, others := 0, int64(0), int64(0)
	c.Take(func(r usage.Row) {
		rows++
		hits += r.Hits
		if r.Key == usage.Other {
			others += r.Hits
		}
	}, func(usage.Latency) {})
	if hits != 10_000 || rows > 6*callShards || c.Lost() != 0 || others == 0 || uint64(others) != c.Others() {
		t.Errorf("%d rows of %d calls, of them %d of others (%d), %d lost", rows, hits, others, c.Others(), c.Lost())
	}
	for i := range 10_000 { // and the rows of others have no room either
		c.Count(&Call{API: api, Key: fmt.Sprint("key", i%1000), Status: i % 1000, End: noon})
	}
	hits, rows = 0, 0
	c.Take(func(r usage.Row) { rows++; hits += r.Hits }, func(usage.Latency) {})
	if uint64(hits)+c.Lost() != 10_000 || c.Lost() == 0 || rows > 6*callShards {
		t.Errorf("%d rows of %d calls, %d lost", rows, hits, c.Lost())
	}
}

func TestLatenciesAreThoseSinceTheLastTake(t *testing.T) {
	c := NewCalls()
	times := new(histogram)
	api := NewAPICalls("a", "org", times.read)
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
	c, times := NewCalls(), new(histogram)
	times.add(3)
	api := NewAPICalls("a", "org", times.read)
	api.SkipLatencies()
	times.add(4)
	c.Count(&Call{API: api, Status: 200, End: noon})
	if _, late := taken(c); len(late) != 1 || late[0].Counts != (usage.Latencies{4: 1}) {
		t.Errorf("%v", late)
	}
}

func TestATableGivesBackMemoryThatItDoesNotNeed(t *testing.T) {
	var table rowTable
	fill := func(n int) {
		for i := range n {
			if table.find(rowKey{minute: uint32(i)}, n) == nil {
				t.Fatalf("row %d of %d was not added", i, n)
			}
		}
	}
	for _, c := range []struct{ rows, kept int }{{4000, 4000}, {300, 4000}, {249, 0}, {10, 10}, {1, 10}} {
		fill(c.rows)
		table.reset()
		if table.peak != c.kept || len(table.sums) != 0 || len(table.index) != 0 {
			t.Errorf("after %d rows the memory of %d is kept, want %d", c.rows, table.peak, c.kept)
		}
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	c := NewCalls()
	api := NewAPICalls("a", "", new(histogram).read)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("a key that is rather long, as hashes are, number ", i)
	}
	n := 0
	count := func() {
		c.Count(&Call{API: api, Key: keys[n%len(keys)], Status: 200, End: noon, Total: time.Millisecond})
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

func BenchmarkCalls(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%064x", i)
	}
	for name, keys := range map[string][]string{"keyless": {""}, "one key": keys[:1], "10000 keys": keys} {
		b.Run(name, func(b *testing.B) {
			c := NewCalls()
			api := NewAPICalls("a", "", new(histogram).read)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				at := rand.IntN(len(keys))
				for pb.Next() {
					c.Count(&Call{API: api, Key: keys[at], Status: 200, End: noon, Total: time.Millisecond, Upstream: time.Millisecond})
					if at++; at == len(keys) {
						at = 0
					}
				}
			})
		})
	}
}
