package usage

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/testenv/race"
	"github.com/sluicegate/sluice/internal/usage"
)

const shopText = `
type Query { me: User shop(id: ID!): Shop node(id: ID!): Node }
type Mutation { rename(name: String): User }
interface Node { id: ID }
type User implements Node { id: ID name: String friends: [User] }
type Shop implements Node { id: ID name: String }
`

// shop makes operations of one schema.
type shop struct {
	t      testing.TB
	schema *schema.Schema
}

func newShop(t testing.TB, text string) *shop {
	t.Helper()
	s, err := schema.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t, s}
}

var day = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// run is an operation that is asked for with a key, some seconds after noon.
func (s *shop) run(text, key string, seconds int) Operation {
	s.t.Helper()
	var doc syntax.Document
	if err := syntax.Parse(&doc, []byte(text), syntax.Limits{}); err != nil {
		s.t.Fatal(err)
	}
	var v validate.Validator
	if errs := v.Check(s.schema, &doc, validate.Options{}); len(errs) > 0 {
		s.t.Fatal(errs[0])
	}
	facts, err := v.Facts(s.schema, &doc, 0, validate.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	return Operation{Facts: facts, Schema: s.schema, Key: key, At: day.Add(time.Duration(seconds) * time.Second)}
}

// all is a filter that leaves everything.
var all = FieldFilter{Max: 1 << 30, Keys: 1 << 30}

// lines shows a report: a line for each field, with its keys.
func lines(r *FieldReport) string {
	var b strings.Builder
	for _, f := range r.Fields {
		fmt.Fprintf(&b, "%s.%s %d %d:", f.Type, f.Name, f.Count, f.LastUsed.Unix()-day.Unix())
		for _, k := range f.Keys {
			fmt.Fprintf(&b, " %s=%d@%d", k.Key, k.Count, k.LastUsed.Unix()-day.Unix())
		}
		if f.Others != nil {
			fmt.Fprintf(&b, " others=%d@%d", f.Others.Count, f.Others.LastUsed.Unix()-day.Unix())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func wantLines(t *testing.T, r *FieldReport, want ...string) {
	t.Helper()
	if got := lines(r); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestFieldsAreCountedByKey(t *testing.T) {
	u, s := NewOperations(), newShop(t, shopText)
	a := u.Open("shop")
	name := s.run("{ me { name again: name } }", "k1", 5)
	for range 3 {
		a.Count(name, OK)
	}
	a.Count(s.run("{ me { name friends { name } } }", "k2", 9), Failed)
	a.Count(s.run("mutation M { rename { id } }", "", 2), OK)
	a.Count(s.run("{ shop(id: 1) { id } }", "k1", 3), Refused)
	wantLines(t, u.Fields("shop", all),
		"Mutation.rename 1 2: =1@2",
		"Query.me 4 9: k1=3@5 k2=1@9",
		"User.friends 1 9: k2=1@9",
		"User.id 1 2: =1@2",
		"User.name 4 9: k1=3@5 k2=1@9",
	)
	a.Count(name, OK) // after a report as before
	me := FieldFilter{Type: "Query", Field: "me", Max: 10, Keys: 1}
	wantLines(t, u.Fields("shop", me), "Query.me 5 9: k1=4@5")
}

func TestFieldsBehindFragmentsCountOnceForEachOperation(t *testing.T) {
	u, s := NewOperations(), newShop(t, shopText)
	u.Open("shop").Count(s.run(`{ node(id: 1) { ... on User { ... on Node { id } } ... on Shop { ... on Node { id } } } }`, "k", 1), OK)
	got := u.Fields("shop", all)
	for _, f := range got.Fields {
		if f.Count != 1 {
			t.Errorf("%s.%s counted %d times", f.Type, f.Name, f.Count)
		}
	}
	if text := lines(got); !strings.Contains(text, "Node.id 1") || !strings.Contains(text, "User.id 1") {
		t.Errorf("interface and object should both be there:\n%s", text)
	}
}

func TestReportsAreFilteredAndPaged(t *testing.T) {
	u, s := NewOperations(), newShop(t, shopText)
	a := u.Open("shop")
	a.Count(s.run("{ me { id name } }", "k1", 1), OK)
	a.Count(s.run("{ shop(id: 1) { id } }", "k2", 2), OK)
	a.Count(s.run("{ shop(id: 1) { id } }", "", 3), OK)
	key := func(k string) *string { return &k }
	for _, c := range []struct {
		name  string
		f     FieldFilter
		total int
		want  []string
	}{
		{"type", FieldFilter{Type: "User", Max: 9, Keys: 9}, 2, []string{"User.id 1 1: k1=1@1", "User.name 1 1: k1=1@1"}},
		{"field", FieldFilter{Field: "id", Max: 9, Keys: 9}, 2, []string{"Shop.id 2 3: =1@3 k2=1@2", "User.id 1 1: k1=1@1"}},
		{"key", FieldFilter{Key: key("k2"), Max: 9, Keys: 9}, 2, []string{"Query.shop 2 3: k2=1@2", "Shop.id 2 3: k2=1@2"}},
		{"no key", FieldFilter{Key: key(""), Max: 9, Keys: 9}, 2, []string{"Query.shop 2 3: =1@3", "Shop.id 2 3: =1@3"}},
		{"page", FieldFilter{Skip: 1, Max: 2, Keys: 1}, 5, []string{"Query.shop 2 3: =1@3", "Shop.id 2 3: =1@3"}},
		{"last page", FieldFilter{Skip: 4, Max: 2, Keys: 0}, 5, []string{"User.name 1 1:"}},
		{"beyond", FieldFilter{Skip: 5, Max: 2}, 5, []string{""}},
		{"unknown key", FieldFilter{Key: key("k3"), Max: 9}, 0, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := u.Fields("shop", c.f)
			if lines := strings.TrimSuffix(lines(got), "\n"); lines != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", lines, strings.Join(c.want, "\n"))
			}
			if got.Total != c.total {
				t.Errorf("total %d, want %d", got.Total, c.total)
			}
		})
	}
}

func TestAReportAsJSON(t *testing.T) {
	u, s := NewOperations(), newShop(t, shopText)
	a := u.Open("shop")
	a.since = day
	a.Count(s.run("{ me { __typename } }", "0123456789ab", 1), OK)
	got, err := json.Marshal(u.Fields("shop", all))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"api_id":"shop","since":"2026-11-21T12:00:00Z","fields":[{"type":"Query","field":"me","count":1,"last_used":"2026-11-21T12:00:01Z",` +
		`"keys":[{"key":"0123456789ab","count":1,"last_used":"2026-11-21T12:00:01Z"}],"keys_total":1}],"total":1,"dropped":0}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r := u.Fields("none", all); r.Fields == nil || r.API != "none" || !r.Since.IsZero() {
		t.Errorf("an API without traffic: %+v", r)
	}
}

func TestFieldsGoOnUnderTheirNamesWhenTheSchemaChanges(t *testing.T) {
	u, before := NewOperations(), newShop(t, shopText)
	after := newShop(t, `type Added { x: Int }`+shopText)
	a := u.Open("shop")
	a.Count(before.run("{ me { name } }", "k", 1), OK)
	u.Keep(map[string]*schema.Schema{"shop": after.schema})
	if n := u.entries(); n != 0 {
		t.Errorf("%d pairs hold on to the former schema", n)
	}
	if a.totals.schema != nil {
		t.Error("the totals hold on to the former schema")
	}
	a.Count(after.run("{ me { name } }", "k", 2), OK)
	a.Count(before.run("{ me { name } }", "k", 3), OK) // began before the change
	wantLines(t, u.Fields("shop", all), "Query.me 3 3: k=3@3", "User.name 3 3: k=3@3")
}

// entries is how many pairs are remembered.
func (u *Operations) entries() (n int) {
	for i := range u.shards {
		u.shards[i].mu.Lock()
		n += len(u.shards[i].pairs)
		u.shards[i].mu.Unlock()
	}
	return n
}

func TestARemovedAPIReleasesItsRows(t *testing.T) {
	u, s := NewOperations(), newShop(t, shopText)
	o := s.run("{ me { name } }", "k", 1)
	gone := u.Open("gone")
	gone.Count(o, OK)
	u.Open("stays").Count(o, OK)
	u.Fields("gone", all)
	u.Keep(map[string]*schema.Schema{"stays": s.schema})
	gone.Count(o, OK) // the last of its requests
	if n := u.rows.Load(); n != 0 {
		t.Errorf("%d rows are taken before anything was worked out", n)
	}
	u.Fields("stays", all)
	if n := u.rows.Load(); n != 4 {
		t.Errorf("%d rows are taken, want 4", n)
	}
	u.Keep(map[string]*schema.Schema{"stays": s.schema})
	if n := u.entries(); n != 1 {
		t.Errorf("%d pairs, want 1", n)
	}
	wantLines(t, u.Fields("stays", all), "Query.me 1 1: k=1@1", "User.name 1 1: k=1@1")
	if got := u.Fields("gone", all); got.Total != 0 {
		t.Errorf("the removed API has %d fields", got.Total)
	}
	if u.Open("gone") == gone {
		t.Error("an API that comes back goes on where the removed one was")
	}
}

func TestAPIsWithOneSchemaAreCountedSeparately(t *testing.T) {
	u, s := NewOperations(), newShop(t, shopText)
	o := s.run("{ me { name } }", "k", 1)
	u.Open("a").Count(o, OK)
	u.Open("b").Count(o, OK)
	u.Open("b").Count(o, OK)
	wantLines(t, u.Fields("a", all), "Query.me 1 1: k=1@1", "User.name 1 1: k=1@1")
	wantLines(t, u.Fields("b", all), "Query.me 2 1: k=2@1", "User.name 2 1: k=2@1")
}

func TestNoCountIsLostWhenPairsAreEvicted(t *testing.T) {
	const workers, each, operations, keys = 4, 20_000, 9, 50
	tight := standardOperationLimits
	tight.pairs = 2 // of 128 for 450
	u, s := newOperations(tight), newShop(t, shopText)
	a := u.Open("shop")
	runs := make([]Operation, operations)
	for i := range runs {
		runs[i] = s.run(fmt.Sprintf("query Q%d { me { name } }", i), "", i)
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key%d", i)
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range each {
				o := runs[random.IntN(operations)]
				o.Key = names[random.IntN(keys)]
				a.Count(o, OK)
				switch i % 1000 {
				case 100:
					u.Fields("shop", FieldFilter{Max: 1})
				case 600:
					u.Keep(map[string]*schema.Schema{"shop": nil}) // all are taken out
				}
			}
		})
	}
	group.Wait()
	got := u.Fields("shop", all)
	var byKey uint64
	for _, k := range got.Fields[0].Keys {
		byKey += k.Count
	}
	if len(got.Fields) != 2 || got.Fields[0].Count != workers*each || got.Fields[1].Count != workers*each || byKey != workers*each {
		t.Errorf("counted %d by field and %d by key, want %d", got.Fields[0].Count, byKey, workers*each)
	}
	var runsTotal uint64
	a.names.each(func(_ operationID, _ Result, count uint64) { runsTotal += count })
	if count, _, _ := a.depths.histogram(); runsTotal != workers*each || count != workers*each {
		t.Errorf("%d runs and %d depths, want %d", runsTotal, count, workers*each)
	}
}

func TestPairsBeyondTheLimitsCountForOthers(t *testing.T) {
	few := standardOperationLimits
	few.rows, few.all = 5, 8
	u, s := newOperations(few), newShop(t, shopText)
	a, b := u.Open("a"), u.Open("b")
	for i := range 6 {
		a.Count(s.run("{ me { name } }", fmt.Sprint("k", i), i), OK)
		u.Fields("a", all) // so that they are added in order
	}
	wantLines(t, u.Fields("a", all),
		"Query.me 6 5: k0=1@0 k1=1@1 others=4@5",
		"User.name 6 5: k0=1@0 others=5@5",
	)
	a.Count(s.run("{ shop(id: 1) { id } }", "k0", 7), OK)
	if got := u.Fields("a", all); got.Dropped != 2 || a.droppedReads() != 2 || len(got.Fields) != 2 {
		t.Errorf("dropped %d, %d fields", got.Dropped, len(got.Fields))
	}
	b.Count(s.run("{ me { name friends { id } } }", "k0", 1), OK)
	got := u.Fields("b", all)
	if n := u.rows.Load(); n != 8 || got.Dropped == 0 {
		t.Errorf("%d rows in all, want 8; dropped %d", n, got.Dropped)
	}
	u.Keep(map[string]*schema.Schema{"b": s.schema})
	b.Count(s.run("{ shop(id: 1) { id } }", "k0", 7), OK)
	if after := u.Fields("b", all); after.Total <= got.Total {
		t.Error("what a removed API gave back is not used")
	}
}

func TestAMillionPairsKeepMemoryBounded(t *testing.T) {
	if race.Enabled {
		return // one goroutine, and memory that is the detector's own
	}
	u, s := NewOperations(), newShop(t, shopText)
	a := u.Open("shop")
	operations := make([]Operation, 1000)
	for i := range operations {
		operations[i] = s.run("{ me { __typename } }", "", i)
	}
	before := heap()
	for key := range 1000 {
		name := fmt.Sprintf("%012x", key)
		for _, o := range operations {
			o.Key = name
			a.Count(o, OK)
		}
	}
	used := heap() - before
	t.Logf("%d KiB for a million pairs, of which %d are whole; %d rows", used>>10, u.entries(), u.rows.Load())
	if n := u.entries(); n > pairShards*standardOperationLimits.pairs {
		t.Errorf("%d pairs", n)
	}
	if used > 40<<20 {
		t.Errorf("%d bytes", used)
	}
	got := u.Fields("shop", FieldFilter{Max: 10})
	for _, f := range got.Fields {
		if f.Count != 1_000_000 {
			t.Errorf("%s.%s: %d", f.Type, f.Name, f.Count)
		}
	}
	for i := range 150_000 { // as many keys
		o := operations[0]
		o.Key = fmt.Sprintf("%012x", i)
		a.Count(o, OK)
	}
	got = u.Fields("shop", FieldFilter{Max: 10})
	if n := u.rows.Load(); n > int64(standardOperationLimits.rows) {
		t.Errorf("%d rows", n)
	}
	if f := got.Fields[0]; f.Count != 1_150_000 || f.Others == nil {
		t.Errorf("%d counted, others %v", f.Count, f.Others)
	}
	if used := heap() - before; used > 60<<20 {
		t.Errorf("%d bytes", used)
	}
	runtime.KeepAlive(u)
}

func TestLargeOperationsAreNotKept(t *testing.T) {
	small := standardOperationLimits
	small.bytes = 4 * 1500 // in a shard
	u, s := newOperations(small), newShop(t, shopText)
	a := u.Open("shop")
	var vars strings.Builder
	for i := range 100 {
		fmt.Fprintf(&vars, " $v%d: String", i)
	}
	var uses strings.Builder
	for i := range 100 {
		fmt.Fprintf(&uses, " a%d: rename(name: $v%d) { id }", i, i)
	}
	large := s.run("mutation Large("+vars.String()+") {"+uses.String()+"}", "k", 1)
	a.Count(large, OK)
	a.Count(large, OK)
	if n := u.entries(); n != 0 {
		t.Errorf("%d pairs are held on to", n)
	}
	wantLines(t, u.Fields("shop", all), "Mutation.rename 2 1: k=2@1", "User.id 2 1: k=2@1")
	for i := range 1000 {
		a.Count(s.run("{ me { name } }", fmt.Sprint(i), 1), OK)
	}
	for i := range u.shards {
		if s := &u.shards[i]; s.bytes > small.bytes || len(s.pairs) == 0 {
			t.Errorf("shard %d: %d bytes of %d entries", i, s.bytes, len(s.pairs))
		}
	}
	if got := u.Fields("shop", FieldFilter{Type: "Query", Max: 1}); got.Fields[0].Count != 1000 {
		t.Errorf("counted %d", got.Fields[0].Count)
	}
}

func TestTheStalestPairsAreEvicted(t *testing.T) {
	tight := standardOperationLimits
	tight.pairs = sample
	u, s := newOperations(tight), newShop(t, shopText)
	a := u.Open("shop")
	o := s.run("{ me { name } }", "busy", 0)
	a.Count(o, OK)
	busy := u.entry(a, o)
	for i := range 5000 {
		o.At = day.Add(time.Duration(i) * time.Second)
		o.Key = "busy"
		a.Count(o, OK)
		o.Key = fmt.Sprint("rare", i)
		a.Count(o, OK)
	}
	o.Key = "busy"
	if busy == nil || u.entry(a, o) != busy {
		t.Error("a pair that is always counted was taken out")
	}
}

// entry returns where an operation is counted, or nil.
func (u *Operations) entry(a *APIOperations, o Operation) *pairCount {
	p := pair{a, o.Facts, o.Key}
	return u.shards[maphash.Comparable(u.seed, p)%pairShards].pairs[p]
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func BenchmarkOperations(b *testing.B) {
	u, s := NewOperations(), newShop(b, shopText)
	a := u.Open("shop")
	o := s.run("query Me { me { name friends { id } } }", "0123456789ab", 1)
	b.Run("seen", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.Count(o, OK)
		}
	})
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.Count(o, Refused)
		}
	})
	keys := make([]string, 300_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%012x", i)
	}
	b.Run("pairs that make room for others", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i = (i + 1) % len(keys)
			o.Key = keys[i]
			a.Count(o, OK)
		}
	})
}

// A gateway answers questions about the use of GraphQL APIs, and no others.
func TestQuestionsAboutUseAreAnswered(t *testing.T) {
	u := NewOperations()
	s := newShop(t, shopText)
	a := u.Open("shop")
	a.Count(s.run("query Me { me { name } }", "k", 1), OK)
	a.Count(s.run("query Me { me { name } }", "k", 2), Failed)
	a.Count(s.run("mutation { rename { id } }", "", 3), Refused)
	got := u.Answer((&usage.GraphQLQuestion{API: "shop"}).String(), "g")
	all := usage.MergeOperations([]usage.GraphQLAnswer{*got})
	if len(all) != 2 || all[0] != (usage.OperationUse{Kind: "query", Name: "Me", OK: 1, Failed: 1}) || all[1] != (usage.OperationUse{Kind: "mutation", Name: "other", Refused: 1}) || got.From() != "g" || got.Since.IsZero() || got.Fields != nil {
		t.Errorf("%+v", got)
	}
	got = u.Answer((&usage.GraphQLQuestion{API: "shop", Type: "User", Fields: 10}).String(), "g")
	if f := got.Fields; f == nil || f.Total != 1 || f.Fields[0].Name != "name" || f.Fields[0].Count != 2 || got.Operations != nil {
		t.Errorf("%+v", got)
	}
	for _, question := range []string{"connections?verb=list", "graphql?api_id=shop", "graphql?fields=2001", "graphql?fields=%", "x"} {
		if got := u.Answer(question, "g"); got != nil {
			t.Errorf("%s: %+v", question, got)
		}
	}
	if got := u.Answer("graphql?api_id=quiet&fields=0", "g"); got == nil || !got.Since.IsZero() || len(got.Operations) > 0 {
		t.Errorf("%+v", got)
	}
}
