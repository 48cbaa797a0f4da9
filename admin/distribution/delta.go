package distribution

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// deltas encodes the deltas from earlier configurations to one, each once: most
// gateways have the same earlier one.
type deltas struct {
	held *snapshot

	mu   sync.Mutex
	made map[string]func() []byte // by entity tag
}

func newDeltas(h *snapshot) *deltas { return &deltas{held: h, made: make(map[string]func() []byte)} }

// from returns the delta from an entity tag, or nil.
func (d *deltas) from(etag string) []byte {
	at := slices.IndexFunc(d.held.steps, func(s step) bool { return s.from == etag })
	if at < 0 {
		return nil // unknown; so there are at most as many deltas as steps
	}
	d.mu.Lock()
	write := d.made[etag]
	if write == nil {
		write = sync.OnceValue(func() []byte { return d.held.delta(d.held.steps[at:]) })
		d.made[etag] = write
	}
	d.mu.Unlock()
	return write()
}

// delta encodes the objects that steps changed, as they are now. It returns nil if they
// are most of the objects.
func (h *snapshot) delta(steps []step) []byte {
	apis, policies := make(map[string]bool), make(map[string]bool)
	for _, s := range steps {
		for _, id := range s.apis {
			apis[id] = true
		}
		for _, id := range s.policies {
			policies[id] = true
		}
	}
	if changed := len(apis) + len(policies); changed > 10 && changed > (len(h.apis)+len(h.policies))/2 {
		return nil
	}
	to := fmt.Appendf(nil, `{"revision":"%d","digest":"%s","apis":{`, h.state.Revision, h.digest)
	to = appendChanged(to, h.apis, apis)
	to = append(to, `},"policies":{`...)
	to = appendChanged(to, h.policies, policies)
	to = append(to, '}')
	return append(to, h.ending()...)
}

// appendChanged appends members from id to object, null for deleted ones.
func appendChanged(to []byte, objects []object, ids map[string]bool) []byte {
	for i, id := range slices.Sorted(maps.Keys(ids)) {
		if i > 0 {
			to = append(to, ',')
		}
		name, _ := json.Marshal(id) // a string can always be written
		to = append(append(to, name...), ':')
		if at, found := find(objects, id); found {
			to = append(to, objects[at].json...)
		} else {
			to = append(to, "null"...)
		}
	}
	return to
}
