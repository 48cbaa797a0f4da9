package distribution

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// A snapshot is a configuration with the steps that led to it. It is immutable.
type snapshot struct {
	state    store.State
	cleared  bool
	apis     []object         // by id
	policies []object         // by id
	caches   map[string]int64 // see definition.Bundle
	digest   definition.Digest
	steps    []step // the last ones, earliest first
	secrets  *secrets
}

// An object is an API or a policy as gateways load it.
type object struct {
	id   string
	json []byte
	sum  definition.Sum
	tags []string // of an API

	refers []store.SecretName // secrets that an API refers to
}

// A step is the difference between two consecutive configurations.
type step struct {
	from     string // entity tag
	apis     []string
	policies []string
}

// Bounds of the steps that are kept for gateways that are behind.
const (
	maxSteps   = 1000
	maxStepped = 100_000 // objects in all of them
)

// etag returns the entity tag. The digest in it distinguishes two databases.
func (h *snapshot) etag() string {
	if used := h.secrets.digest(h.apis); used != "" {
		return fmt.Sprintf(`"%d-%d-%d-%.8s-%.8s"`, h.state.Revision, h.state.Generation, h.state.Clears, h.digest, used)
	}
	if h.state.Clears > 0 {
		return fmt.Sprintf(`"%d-%d-%d-%.8s"`, h.state.Revision, h.state.Generation, h.state.Clears, h.digest)
	}
	return fmt.Sprintf(`"%d-%d-%.8s"`, h.state.Revision, h.state.Generation, h.digest)
}

// with returns the snapshot after changes, or h itself without changes.
func (h *snapshot) with(c *store.Changes) *snapshot {
	if c.State == h.state {
		return h
	}
	next := &snapshot{state: c.State, digest: h.digest, caches: c.Caches, secrets: h.secrets}
	did := step{from: h.etag()}
	next.apis, did.apis = merge(h.apis, c.APIs, definition.KindAPI, &next.digest)
	next.policies, did.policies = merge(h.policies, c.Policies, definition.KindPolicy, &next.digest)
	next.cleared = len(next.apis) == 0 && (h.cleared || len(h.apis) > 0 || len(c.APIs) > 0)
	next.steps = after(h.steps, did)
	return next
}

// merge returns the objects after changes, and the ids of those that changed.
func merge(objects []object, changes map[string][]byte, kind definition.Kind, digest *definition.Digest) (merged []object, ids []string) {
	if len(changes) == 0 {
		return objects, nil
	}
	var now []object // the changed ones that still exist
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
	o := object{id: id, json: json, sum: definition.SumOf(kind, json)}
	if kind == definition.KindAPI {
		o.tags, o.refers = tagsOf(json), secretsOf(json)
	}
	return o
}

// interleave merges two sorted lists.
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

// after returns steps with one more, and without those beyond the bounds.
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

// replacedBy returns the snapshot of a configuration that was read as a whole. Its
// difference from h, which may be nil, is a step like any other.
func (h *snapshot) replacedBy(c *store.Configuration) *snapshot {
	next := &snapshot{state: c.State, cleared: c.Cleared, caches: c.Caches}
	if h == nil {
		h = &snapshot{}
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

// render encodes the snapshot as a definition.Bundle.
func (h *snapshot) render() []byte {
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

// ending returns the last members of a bundle and of a delta.
func (h *snapshot) ending() string {
	end := ""
	if len(h.caches) > 0 {
		caches, _ := json.Marshal(h.caches) // strings and numbers can always be encoded
		end = `,"caches":` + string(caches)
	}
	if used := h.secrets.usedBy(h.apis); len(used) > 0 {
		secrets, _ := json.Marshal(used)
		end += `,"secrets":` + string(secrets)
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
