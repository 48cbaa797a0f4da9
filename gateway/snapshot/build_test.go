package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/pace"
)

// compileNamed stands for the stages: definitions of the name "broken" fail.
func compileNamed(def *definition.API) (*pipeline.API, error) {
	if def.Name == "broken" {
		return nil, errors.New("cannot be compiled")
	}
	return &pipeline.API{Definition: def}, nil
}

func following(t testing.TB, prev *Snapshot, b *definition.Bundle) (*Snapshot, Change) {
	t.Helper()
	bl := builder{customDomains: true, compile: compileNamed, prev: prev, pace: pace.New(0.99)}
	next, c, err := bl.build(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return next, c
}

// fleet makes random bundles, one out of the other.
type fleet struct {
	random *rand.Rand
	bundle definition.Bundle
}

func (f *fleet) definition(id string) *definition.API {
	active := f.random.IntN(12) > 0
	return &definition.API{
		ID: id, Name: f.pick("good", "good", "good", "good", "other", "broken"), Active: &active,
		Internal: f.random.IntN(10) == 0, Domain: f.pick("", "", "", "a.example.com"),
		Proxy: definition.Proxy{ListenPath: fmt.Sprintf("/p%d/", f.random.IntN(40)), TargetURL: f.pick("http://127.0.0.1:9", "http://127.0.0.1:9", "http://127.0.0.1:9", "nowhere")},
	}
}

func (f *fleet) pick(from ...string) string { return from[f.random.IntN(len(from))] }

// next changes a few of the definitions and returns a bundle with them.
func (f *fleet) next(revision int) *definition.Bundle {
	b := &f.bundle
	b.Revision, b.APIs, b.Skipped, b.ConfirmedEmpty = fmt.Sprint(revision), slices.Clone(b.APIs), nil, true
	for range f.random.IntN(5) {
		at := f.random.IntN(len(b.APIs) + 1)
		switch action := f.random.IntN(10); {
		case at == len(b.APIs) || action < 3:
			b.APIs = slices.Insert(b.APIs, at, f.definition(f.freeID()))
		case action < 6:
			b.APIs[at] = f.definition(b.APIs[at].ID)
		case action < 7:
			b.APIs[at] = b.APIs[at].Clone()
		case action < 8:
			other := f.random.IntN(len(b.APIs))
			b.APIs[at], b.APIs[other] = b.APIs[other], b.APIs[at]
		case action < 9:
			b.APIs = slices.Delete(b.APIs, at, at+1)
		case f.random.IntN(4) == 0:
			b.APIs = append(b.APIs, f.definition(b.APIs[at].ID)) // twice
		default:
			broken := b.APIs[at]
			b.APIs = slices.Delete(b.APIs, at, at+1)
			b.Skipped = append(b.Skipped, definition.SkippedAPI("file", broken, errors.New("unreadable")))
		}
	}
	given := *b
	return &given
}

func (f *fleet) freeID() string {
	for {
		id := fmt.Sprint("api", f.random.IntN(1000))
		if !slices.ContainsFunc(f.bundle.APIs, func(a *definition.API) bool { return a.ID == id }) {
			return id
		}
	}
}

// state tells what a snapshot serves, in words.
func state(s *Snapshot) string {
	var b strings.Builder
	for _, id := range s.apis.Sorted() {
		fmt.Fprintf(&b, "%s serves %x\n", id, s.API(id).ContentHash())
	}
	for host, n := range map[string]int{"a.example.com": 40, "b.example.com": 40} {
		for i := range n {
			path := fmt.Sprintf("/p%d", i)
			if api, _, ok := s.routes.Find([]byte(host), []byte(path), nil); ok {
				refused := len(api.Entry) > 0 && api.Entry[0].Kind == refusalKind
				fmt.Fprintf(&b, "%s%s leads to %s, refused %v, %x\n", host, path, api.Definition.ID, refused, api.Definition.ContentHash())
			}
		}
	}
	for id, err := range s.Failed {
		fmt.Fprintf(&b, "%s: %v\n", id, err)
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n") + fmt.Sprint(s.routes.Len(), s.doubled, len(s.given))
}

// anew is the same snapshot, of which nothing is taken for settled.
func anew(s *Snapshot) *Snapshot {
	if s == nil {
		return nil
	}
	all := *s
	all.doubled = true
	return &all
}

func TestSnapshotsMadeOfChangesAreThoseMadeOfEverything(t *testing.T) {
	for seed := range uint64(60) {
		f := &fleet{random: rand.New(rand.NewPCG(seed, 5))}
		var prev *Snapshot
		served := map[*pipeline.API]bool{}
		for revision := range 60 {
			b := f.next(revision)
			next, c := following(t, prev, b)
			whole, _ := following(t, anew(prev), b)
			whole.doubled = next.doubled
			if got, want := state(next), state(whole); got != want {
				t.Fatalf("seed %d, revision %d:\n%s\n--- want\n%s", seed, revision, got, want)
			}
			for _, api := range c.Gone {
				delete(served, api)
			}
			for _, api := range c.Came {
				served[api] = true
			}
			if len(served) != next.apis.Len() {
				t.Fatalf("seed %d, revision %d: the changes come to %d APIs, %d are served", seed, revision, len(served), next.apis.Len())
			}
			if len(next.Failed) == 0 {
				served := fromNothing(t, b)
				if got, want := state(next), state(served); got != want {
					t.Fatalf("seed %d, revision %d:\n%s\n--- from nothing\n%s", seed, revision, got, want)
				}
			}
			prev = next
		}
	}
}

// fromNothing builds from nothing.
func fromNothing(t testing.TB, b *definition.Bundle) *Snapshot {
	s, _ := following(t, nil, b)
	return s
}

func TestAnAPIThatMovesToATakenPathStaysWhereItWas(t *testing.T) {
	a, b := plainDefinition("a", "/a"), plainDefinition("b", "/b")
	first, _ := following(t, nil, &definition.Bundle{APIs: []*definition.API{a, b}})
	next, _ := following(t, first, &definition.Bundle{APIs: []*definition.API{plainDefinition("a", "/b"), b}})
	if next.Failed["a"] == nil || !strings.Contains(next.Failed["a"].Error(), "API b has it already") {
		t.Errorf("failed %v", next.Failed)
	}
	for path, want := range map[string]string{"/a": "a", "/b": "b"} {
		if got := leadsTo(next, path); got != want {
			t.Errorf("%s leads to %q", path, got)
		}
	}
	last, _ := following(t, next, &definition.Bundle{APIs: []*definition.API{next.given[0]}})
	if got := leadsTo(last, "/b"); got != "a" || leadsTo(last, "/a") != "" || len(last.Failed) > 0 {
		t.Errorf("once the path is free it leads to %q; failed %v", got, last.Failed)
	}
}

func TestAPIsCanChangePlaces(t *testing.T) {
	first, _ := following(t, nil, &definition.Bundle{APIs: []*definition.API{plainDefinition("a", "/a"), plainDefinition("b", "/b")}})
	next, _ := following(t, first, &definition.Bundle{APIs: []*definition.API{plainDefinition("a", "/b"), plainDefinition("b", "/a")}})
	if leadsTo(next, "/a") != "b" || leadsTo(next, "/b") != "a" || len(next.Failed) > 0 {
		t.Errorf("/a leads to %q, /b to %q; failed %v", leadsTo(next, "/a"), leadsTo(next, "/b"), next.Failed)
	}
}

func plainDefinition(id, listenPath string) *definition.API {
	return &definition.API{ID: id, Proxy: definition.Proxy{ListenPath: listenPath, TargetURL: "http://127.0.0.1:9"}}
}

func leadsTo(s *Snapshot, path string) string {
	api, _, ok := s.routes.Find(nil, []byte(path), nil)
	if !ok {
		return ""
	}
	return api.Definition.ID
}
