package supply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// A holding is a configuration with the steps that led to it. It never changes.
type holding struct {
	state    store.State
	cleared  bool
	apis     []object         // by id
	policies []object         // by id
	caches   map[string]int64 // see definition.Bundle
	digest   definition.Digest
	steps    []step // the last ones, earliest first
}

// An object is an API or a policy as gateways take it.
type object struct {
	id   string
	json []byte
	sum  definition.Sum
}

// A step is what one configuration differs by from the next.
type step struct {
	from     string // entity tag
	apis     []string
	policies []string
}

// How much is known of the past, for gateways that are behind.
const (
	maxSteps   = 1000
	maxStepped = 100_000 // objects in all of them
)

// etag tells configurations apart, also those of two databases.
func (h *holding) etag() string {
	if h.state.Clears > 0 {
		return fmt.Sprintf(`"%d-%d-%d-%.8s"`, h.state.Revision, h.state.Generation, h.state.Clears, h.digest)
	}
	return fmt.Sprintf(`"%d-%d-%.8s"`, h.state.Revision, h.state.Generation, h.digest)
}

// with returns the holding after changes, which is h itself when there are none.
func (h *holding) with(c *store.Changes) *holding {
	if c.State == h.state {
		return h
	}
	next := &holding{state: c.State, digest: h.digest, caches: c.Caches}
	did := step{from: h.etag()}
	next.apis, did.apis = merge(h.apis, c.APIs, definition.KindAPI, &next.digest)
	next.policies, did.policies = merge(h.policies, c.Policies, definition.KindPolicy, &next.digest)
	next.cleared = len(next.apis) == 0 && (h.cleared || len(h.apis) > 0 || len(c.APIs) > 0)
	next.steps = after(h.steps, did)
	return next
}

// merge returns objects after changes, and the ids of those that are different.
func merge(objects []object, changes map[string][]byte, kind definition.Kind, digest *definition.Digest) (merged []object, ids []string) {
	if len(changes) == 0 {
		return objects, nil
	}
	var now []object // those that there are after the changes
	merged = make([]object, 0, len(objects)+len(changes))
	for _, o := range objects {
		if _, changed := changes[o.id]; changed {
			digest.Remove(o.sum)
		} else {
			merged = append(merged, o)
		}
	}
	for id, json := range changes {
		ids = append(ids, id)
		if json != nil {
			now = append(now, newObject(kind, id, json))
		}
	}
	for _, o := range now {
		digest.Add(o.sum)
	}
	slices.SortFunc(now, byID)
	return interleave(merged, now), ids
}

func byID(a, b object) int { return strings.Compare(a.id, b.id) }

func newObject(kind definition.Kind, id string, json []byte) object {
	json = bytes.TrimSpace(json)
	return object{id: id, json: json, sum: definition.SumOf(kind, json)}
}

// interleave puts two lists, each in order, into one.
func interleave(a, b []object) []object {
	all := make([]object, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byID(a[0], b[0]) < 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

func find(objects []object, id string) (at int, found bool) {
	return slices.BinarySearchFunc(objects, id, func(o object, id string) int { return strings.Compare(o.id, id) })
}

// after returns steps with one more, and without those too long ago.
func after(steps []step, did step) []step {
	kept := append(slices.Clone(steps), did)
	total := 0
	for i := len(kept) - 1; i >= 0; i-- {
		total += len(kept[i].apis) + len(kept[i].policies)
		if total > maxStepped || len(kept)-i > maxSteps {
			return kept[i+1:]
		}
	}
	return kept
}

// replacedBy returns the holding of a configuration that was read as a whole.
// What it differs by from h is a step like any other; h may be nil.
func (h *holding) replacedBy(c *store.Configuration) *holding {
	next := &holding{state: c.State, cleared: c.Cleared, caches: c.Caches}
	if h == nil {
		h = &holding{}
	}
	did := step{from: h.etag()}
	next.apis, did.apis = replaced(h.apis, c.APIs, definition.KindAPI, &next.digest)
	next.policies, did.policies = replaced(h.policies, c.Policies, definition.KindPolicy, &next.digest)
	next.steps = after(h.steps, did)
	return next
}

// replaced makes objects of rows, and returns the ids of those that differ.
func replaced(before []object, rows []store.Entry, kind definition.Kind, digest *definition.Digest) (objects []object, ids []string) {
	was := make(map[string]definition.Sum, len(before))
	for _, o := range before {
		was[o.id] = o.sum
	}
	objects = make([]object, 0, len(rows))
	for _, row := range rows {
		o := newObject(kind, row.ID, row.JSON)
		digest.Add(o.sum)
		if was[o.id] != o.sum {
			ids = append(ids, o.id)
		}
		delete(was, o.id)
		objects = append(objects, o)
	}
	for id := range was {
		ids = append(ids, id)
	}
	return objects, ids
}

// render writes all of it as a definition.Bundle.
func (h *holding) render() []byte {
	size := 128
	for _, list := range [][]object{h.apis, h.policies} {
		for _, o := range list {
			size += len(o.json) + 1
		}
	}
	to := make([]byte, 0, size)
	to = fmt.Appendf(to, `{"revision":"%d","digest":"%s","apis":[`, h.state.Revision, h.digest)
	to = appendList(to, h.apis)
	to = append(to, `],"policies":[`...)
	to = appendList(to, h.policies)
	to = append(to, ']')
	return append(to, h.ending()...)
}

// ending is what a bundle and a delta end with.
func (h *holding) ending() string {
	end := ""
	if len(h.caches) > 0 {
		caches, _ := json.Marshal(h.caches) // texts and numbers can always be written
		end = `,"caches":` + string(caches)
	}
	if h.cleared {
		end += `,"confirmed_empty":true`
	}
	return end + "}"
}

func appendList(to []byte, objects []object) []byte {
	for i, o := range objects {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(to, o.json...)
	}
	return to
}
