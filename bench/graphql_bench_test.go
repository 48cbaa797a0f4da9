package bench

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/testenv"
)

// perRequest reports the processor time of this process for each round, which
// other work on the machine disturbs less than the time of day.
func perRequest(b *testing.B, round func()) {
	b.ReportAllocs()
	n, began := 0, cpu(b)
	for b.Loop() {
		round()
		n++
	}
	b.ReportMetric(float64((cpu(b)-began).Nanoseconds())/float64(n)/1000, "cpu-µs/op")
}

// rest is the API that the same bodies go to ungoverned by GraphQL.
const rest = "REST, the same body"

// BenchmarkGraphQL measures a governed operation, and the same bytes on a REST API, both
// with token, policy, rate and quota.
func BenchmarkGraphQL(b *testing.B) {
	w := newWorld(b, settings{})
	keys := shop(w)
	named := map[string]request{rest: {path: "/plain/", key: "both", body: query, status: 200}}
	for _, r := range requests {
		named[r.name] = r
	}
	for _, name := range []string{
		rest, "GraphQL, token, policy, rate, quota, depth and fields", "GraphQL, keyless", "GraphQL, variables, in the URL",
		"GraphQL, stored operation of a path", "GraphQL, stored document by its hash", "GraphQL, batch of ten",
	} {
		b.Run(strings.TrimPrefix(name, "GraphQL, "), func(b *testing.B) { perRequest(b, named[name].warmed(b, w, keys)) })
	}
	b.Run("unseen", func(b *testing.B) { perRequest(b, unseen(b, w, keys)) })
}

// unseen returns a round with a new operation of 200 bytes.
func unseen(tb testing.TB, w *world, keys map[string]string) func() {
	const mark = "Country00000000"
	r := request{path: "/graph/", key: "graph", status: 200, body: strings.NewReplacer("Country(", mark+"(", `"Country"`, `"`+mark+`"`).Replace(query)}
	c, sent, want := w.client(), r.bytes(keys), r.want()
	var digits [][]byte
	for at := 0; ; {
		i := bytes.Index(sent[at:], []byte(mark))
		if i < 0 {
			break
		}
		at += i + len(mark)
		digits = append(digits, sent[at-8:at])
	}
	n := 0
	round := func() {
		n++
		for _, d := range digits {
			for at, left := len(d)-1, n; at >= 0; at, left = at-1, left/10 {
				d[at] = byte('0' + left%10)
			}
		}
		c.round(sent, want)
	}
	for range 50_000 { // the cache is full, and each new one takes the place of another
		round()
	}
	return round
}

// BenchmarkGraphQLScale measures gateways with few and many known operations.
func BenchmarkGraphQLScale(b *testing.B) {
	for _, operations := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("operations=%d", operations), func(b *testing.B) {
			w := newWorld(b, settings{operations: 512 << 20})
			keys := shop(w)
			sent := new(queue)
			for i := range operations {
				sent.add(request{path: "/graph/", key: "graph", body: strings.Replace(query, "Names", fmt.Sprintf("N%d", i), 2)}.bytes(keys))
			}
			inTurn(b, w, sent)
		})
	}
	for _, n := range []struct{ policies, used int }{{1, 1}, {10_000, 1}, {10_000, 10_000}} {
		b.Run(fmt.Sprintf("policies=%d,used=%d", n.policies, n.used), func(b *testing.B) {
			w := newWorld(b, settings{cache: 2 * n.policies})
			shop(w)
			inTurn(b, w, restricted(w, n.policies).first(n.used))
		})
	}
}

// restricted makes as many policies, each with rules of its own, and returns a
// request with a key of each.
func restricted(w *world, n int) *queue {
	sent := new(queue)
	for i := range n {
		id := fmt.Sprintf("graph-%d", i)
		access := rights("graph")
		access["graph"].RestrictedTypes = []definition.TypeFields{{Name: "Query", Fields: []string{"secret"}}}
		limits := plenty
		limits.MaxQueryDepth = 5 + i
		w.bundle.Policies = append(w.bundle.Policies, &definition.Policy{ID: id, OrgID: "bench", Limits: limits, AccessRights: access})
		key := w.key(&definition.Session{OrgID: "bench", ApplyPolicies: []string{id}})
		sent.add(request{path: "/graph/", key: "it", body: query}.bytes(map[string]string{"it": key}))
	}
	w.apply()
	return sent
}

// BenchmarkSchema compiles real schemas, and reports what of them stays.
func BenchmarkSchema(b *testing.B) {
	for _, name := range []string{"schemas/swapi.graphql", "schemas/github.graphql"} {
		b.Run(name, func(b *testing.B) {
			text, ok := testenv.Data(b, name)
			if !ok {
				return
			}
			var kept *schema.Schema
			empty := heap()
			n, began := 0, cpu(b)
			for b.Loop() {
				s, _, err := schema.LoadServed(string(text))
				if err != nil {
					b.Fatal(err)
				}
				kept = s
				n++
			}
			b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(n)/1000, "cpu-ms/op")
			b.ReportMetric(float64(heap()-empty)/(1<<20), "MiB")
			b.ReportMetric(float64(len(kept.Types)), "types")
			runtime.KeepAlive(kept)
			runtime.KeepAlive(text)
		})
	}
}

// BenchmarkGraphQLBeside alternates a governed operation and the same bytes on a REST API
// in small blocks, and reports the least time of each, so that disturbances affect both.
func BenchmarkGraphQLBeside(b *testing.B) {
	w := newWorld(b, settings{})
	keys := shop(w)
	sides := []request{{path: "/plain/", key: "both", body: query, status: 200}}
	for _, r := range requests {
		if strings.HasPrefix(r.name, "GraphQL, token") {
			sides = append(sides, r)
		}
	}
	const block = 100
	var rounds []func()
	least := make([]float64, len(sides))
	for i, side := range sides {
		rounds, least[i] = append(rounds, side.warmed(b, w, keys)), math.Inf(1)
	}
	for b.Loop() {
		for i, round := range rounds {
			began := cpu(b)
			for range block {
				round()
			}
			least[i] = min(least[i], float64((cpu(b)-began).Nanoseconds())/1000/block)
		}
	}
	b.ReportMetric(least[0], "REST-cpu-µs")
	b.ReportMetric(least[1], "GraphQL-cpu-µs")
	b.ReportMetric(least[1]-least[0], "more-cpu-µs")
}
