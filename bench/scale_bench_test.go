package bench

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
)

// plainAPI returns a plain definition. Definitions of a source share no memory, hence the
// clones.
func plainAPI(i int, target string) *definition.API {
	id := fmt.Sprintf("api-%06d", i)
	text := fmt.Sprintf(`{"api_id": %q, "name": %q, "org_id": "bench", "active": true, "use_keyless": true,
		"proxy": {"listen_path": "/%s/", "target_url": %q, "strip_listen_path": true}}`, id, id, id, target)
	api, err := definition.ParseAPI([]byte(text))
	if err != nil {
		panic(err) // the text above is wrong
	}
	return api
}

func (w *world) addPlain(n int, target string) {
	for i := range n {
		w.add(plainAPI(i, target))
	}
}

// heap returns the bytes that live objects take.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// cpu returns the CPU time of this process so far.
func cpu(tb testing.TB) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkCompile compiles 10,000 APIs and swaps them in, from nothing and with
// one of them changed.
func BenchmarkCompile(b *testing.B) {
	const apis = crowd
	b.Run("all new", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			w := newWorld(b, settings{})
			w.addPlain(apis, "http://127.0.0.1:9")
			before := cpu(b)
			b.StartTimer()
			w.apply()
			b.ReportMetric(float64((cpu(b) - before).Milliseconds()), "cpu-ms")
		}
	})
	b.Run("one changed", func(b *testing.B) {
		w := newWorld(b, settings{})
		w.addPlain(apis, "http://127.0.0.1:9")
		w.apply()
		before, n := cpu(b), 0
		for b.Loop() {
			n++
			w.bundle.APIs[0] = plainAPI(0, "http://127.0.0.1:"+strconv.Itoa(9+n%1000))
			w.apply()
		}
		b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(n), "cpu-ms")
	})
}

// BenchmarkMemory reports what things take that there are many of.
func BenchmarkMemory(b *testing.B) {
	b.Run("APIs", func(b *testing.B) {
		for b.Loop() {
			apiMemory(b)
		}
	})
	b.Run("sessions", func(b *testing.B) {
		for b.Loop() {
			sessionMemory(b, newWorld(b, settings{cache: 2 * crowd}), "plain")
		}
	})
	b.Run("sessions with rate and quota", func(b *testing.B) {
		for b.Loop() {
			sessionMemory(b, newWorld(b, settings{cache: 2 * crowd}), "both")
		}
	})
	b.Run("sessions of a shared store", func(b *testing.B) {
		for b.Loop() {
			server := testenv.Valkey(b)
			store, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{server.Addr}})
			if err != nil {
				b.Fatal(err)
			}
			w := newWorld(b, settings{cache: 2 * crowd, store: store})
			sessionMemory(b, w, "plain")
			b.Cleanup(store.Close)
		}
	})
}

// crowd is how many there are of what is measured.
const crowd = 10_000

// apiMemory reports what an API takes: its definition, its compiled form, and
// what its first request adds, which is metrics.
func apiMemory(b *testing.B) {
	w := newWorld(b, settings{})
	target := origin(b)
	c := w.client()
	empty := heap()
	w.addPlain(crowd, target)
	parsed := heap()
	w.apply()
	compiled := heap()
	for i := range crowd {
		c.round(request{path: fmt.Sprintf("/api-%06d/some/path", i)}.bytes(nil), &answer.Want{Status: 200})
	}
	b.ReportMetric(float64(parsed-empty)/crowd, "B/definition")
	b.ReportMetric(float64(compiled-parsed)/crowd, "B/compiled")
	b.ReportMetric(float64(heap()-compiled)/crowd, "B/used")
	runtime.KeepAlive(w)
}

// sessionMemory reports the memory of a cached session.
func sessionMemory(b *testing.B, w *world, kind string) {
	shop(w)
	sent := keyed(w, crowd, kind)
	c := w.client()
	stored := heap()
	sent.round(c, &answer.Want{Status: 200})
	b.ReportMetric(float64(heap()-stored)/crowd, "B/session")
	runtime.KeepAlive(w)
}

// keyed makes keys with the policy of that name, and a request with each.
func keyed(w *world, n int, policy string) *queue {
	sent := new(queue)
	for range n {
		key := w.key(&definition.Session{OrgID: "bench", ApplyPolicies: []string{policy}})
		sent.add(request{path: "/plain/some/path", key: "it"}.bytes(map[string]string{"it": key}))
	}
	return sent
}

// A queue is many requests in one block, so that what is measured is not what the
// client makes of the heap.
type queue struct {
	text []byte
	ends []int // of the requests in text
}

func (q *queue) add(request []byte) {
	q.text = append(q.text, request...)
	q.ends = append(q.ends, len(q.text))
}

func (q *queue) len() int { return len(q.ends) }

func (q *queue) at(i int) []byte {
	from := 0
	if i > 0 {
		from = q.ends[i-1]
	}
	return q.text[from:q.ends[i]]
}

// first returns the first n requests.
func (q *queue) first(n int) *queue { return &queue{q.text, q.ends[:n]} }

// round has each request answered once.
func (q *queue) round(c *client, want *answer.Want) {
	for i := range q.len() {
		c.round(q.at(i), want)
	}
}

// BenchmarkScale measures gateways with few and many objects. The difference is due to
// the processor's caches.
func BenchmarkScale(b *testing.B) {
	for _, apis := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("APIs=%d", apis), func(b *testing.B) {
			w := newWorld(b, settings{})
			w.addPlain(apis, origin(b))
			w.apply()
			sent := new(queue)
			for i := range apis {
				sent.add(request{path: fmt.Sprintf("/api-%06d/some/path", i)}.bytes(nil))
			}
			inTurn(b, w, sent)
		})
	}
	for _, keys := range []int{1, 1000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			w := newWorld(b, settings{cache: 2 * keys})
			shop(w)
			inTurn(b, w, keyed(w, keys, "both"))
		})
	}
}

// stride walks through all of them in an order that caches cannot guess.
const stride = 7919

func inTurn(b *testing.B, w *world, sent *queue) {
	c, want := w.client(), &answer.Want{Status: 200}
	sent.round(c, want)
	i := 0
	perRequest(b, func() {
		i = (i + stride) % sent.len()
		c.round(sent.at(i), want)
	})
}
