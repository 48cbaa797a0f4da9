package distribution

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// rows stand for the tables of a database.
type rows struct {
	state          store.State
	apis, policies map[string][]byte
}

func (r *rows) all() *store.Configuration {
	list := func(from map[string][]byte) (all []store.Entry) {
		for _, id := range slices.Sorted(maps.Keys(from)) {
			all = append(all, store.Entry{ID: id, JSON: from[id]})
		}
		return all
	}
	return &store.Configuration{State: r.state, APIs: list(r.apis), Policies: list(r.policies), Cleared: len(r.apis) == 0}
}

// change makes random changes of one revision.
func (r *rows) change(random *rand.Rand) *store.Changes {
	r.state.Revision++
	c := &store.Changes{State: r.state, APIs: map[string][]byte{}, Policies: map[string][]byte{}}
	for range random.IntN(4) {
		for _, kind := range []struct{ table, changes map[string][]byte }{{r.apis, c.APIs}, {r.policies, c.Policies}} {
			id := fmt.Sprint("o", random.IntN(30))
			if random.IntN(3) == 0 {
				delete(kind.table, id)
				kind.changes[id] = nil
			} else {
				kind.table[id] = fmt.Appendf(nil, `{"id":%q, "n":%d}`, id, random.IntN(3))
				kind.changes[id] = kind.table[id]
			}
		}
	}
	return c
}

// applied returns a bundle after a delta, by the rules alone.
func applied(t *testing.T, bundle, delta []byte) (apis, policies map[string]string) {
	t.Helper()
	var b struct{ APIs, Policies []json.RawMessage }
	var d definition.Delta
	if err := json.Unmarshal(bundle, &b); err != nil {
		t.Fatalf("%v in %s", err, bundle)
	}
	if err := json.Unmarshal(delta, &d); err != nil {
		t.Fatalf("%v in %s", err, delta)
	}
	merged := func(list []json.RawMessage, changes map[string]json.RawMessage) map[string]string {
		all := make(map[string]string)
		for _, object := range list {
			var named struct{ ID string }
			if err := json.Unmarshal(object, &named); err != nil {
				t.Fatal(err)
			}
			all[named.ID] = string(object)
		}
		for id, object := range changes {
			if definition.IsGone(object) {
				delete(all, id)
			} else {
				all[id] = string(object)
			}
		}
		return all
	}
	return merged(b.APIs, d.APIs), merged(b.Policies, d.Policies)
}

func TestWhatIsHeldAfterChangesIsWhatTheDatabaseHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	table := &rows{apis: map[string][]byte{}, policies: map[string][]byte{}}
	h := (*snapshot)(nil).replacedBy(table.all())
	var past []*Bundle
	for range 400 {
		past = append(past, newBundle(h))
		if random.IntN(20) == 0 {
			table.change(random)
			table.state.Generation++
			h = h.replacedBy(table.all())
		} else {
			h = h.with(table.change(random))
		}
		now, whole := newBundle(h), newBundle((*snapshot)(nil).replacedBy(table.all()))
		if h.cleared != (len(table.apis) == 0) {
			t.Fatalf("cleared %v with %d APIs", h.cleared, len(table.apis))
		}
		if !bytes.Equal(now.JSON(), whole.JSON()) || now.ETag != whole.ETag {
			t.Fatalf("%s %s\nwant %s %s", now.ETag, now.JSON(), whole.ETag, whole.JSON())
		}
		before := past[max(0, len(past)-1-random.IntN(30))]
		delta := now.Delta(before.ETag)
		if delta == nil {
			continue // most of it changed
		}
		apis, policies := applied(t, before.JSON(), delta)
		wantAPIs, wantPolicies := applied(t, now.JSON(), []byte("{}"))
		if !maps.Equal(apis, wantAPIs) || !maps.Equal(policies, wantPolicies) {
			t.Fatalf("from %s by %s\nwant %s", before.JSON(), delta, now.JSON())
		}
	}
	if newBundle(h).Delta(`"none"`) != nil {
		t.Error("there is a delta from nowhere")
	}
}

func TestThePastIsBounded(t *testing.T) {
	h := (*snapshot)(nil).replacedBy(&store.Configuration{})
	first := h.etag()
	for i := range int64(maxSteps + 100) {
		h = h.with(&store.Changes{State: store.State{Revision: i + 1}, APIs: map[string][]byte{"a": []byte("{}")}})
	}
	if len(h.steps) != maxSteps || newBundle(h).Delta(first) != nil {
		t.Errorf("%d steps are known", len(h.steps))
	}
	many := make(map[string][]byte, maxStepped)
	for i := range maxStepped {
		many[fmt.Sprint(i)] = []byte("{}")
	}
	h = h.with(&store.Changes{State: store.State{Revision: 1 << 40}, APIs: many})
	h = h.with(&store.Changes{State: store.State{Revision: 1<<40 + 1}, APIs: map[string][]byte{"a": nil}})
	if len(h.steps) != 1 {
		t.Errorf("%d steps are known", len(h.steps))
	}
}

func TestAnswersThatAreToBeForgottenAreAChangeOfNothingElse(t *testing.T) {
	h := (*snapshot)(nil).replacedBy(&store.Configuration{State: store.State{Revision: 1}, APIs: []store.Entry{{ID: "a", JSON: []byte(`{"api_id":"a"}`)}}})
	before := newBundle(h)
	same := store.Changes{State: store.State{Revision: 1}}
	if h.with(&same) != h {
		t.Error("nothing changed, and something did")
	}
	cleared := store.Changes{State: store.State{Revision: 1, Clears: 4}, Caches: map[string]int64{"a": 4}}
	next := h.with(&cleared)
	now := newBundle(next)
	if now.ETag == before.ETag || !bytes.Contains(now.JSON(), []byte(`"caches":{"a":4}`)) || next.digest != h.digest {
		t.Errorf("%s after %s: %s", now.ETag, before.ETag, now.JSON())
	}
	delta := now.Delta(before.ETag)
	if want := `{"revision":"1","digest":"` + h.digest.String() + `","apis":{},"policies":{},"caches":{"a":4}}`; string(delta) != want {
		t.Errorf("%s\nwant %s", delta, want)
	}
	if next.with(&cleared) != next {
		t.Error("the same change twice is two")
	}
}
