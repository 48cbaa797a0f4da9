package distribution

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/sluicegate/sluice/internal/definition"
)

// segments holds the bundles for gateways with tags, which get the APIs without tags and
// those with one of theirs. As long as no API has tags, they get the bundle of all.
type segments struct {
	mu    sync.Mutex
	views map[string]*view // by the tags, as definition.JoinTags writes them
}

// A view is the configuration for gateways with the same tags.
type view struct {
	of     *snapshot // it was derived from
	held   *snapshot
	bundle *Bundle
}

// maxViews bounds the sets of tags that are remembered; those of the gateways of an
// installation are few.
const maxViews = 100

func newSegments() *segments { return &segments{views: make(map[string]*view)} }

// of returns what a bundle of all APIs leaves for gateways with tags.
func (s *segments) of(all *Bundle, tags []string) *Bundle {
	key := definition.JoinTags(tags)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[key]
	if v == nil {
		if len(s.views) >= maxViews {
			clear(s.views)
		}
		v = new(view)
		s.views[key] = v
	}
	switch {
	case v.of == all.held:
		return v.bundle
	case v.held == v.of && !all.held.tagged(): // nothing was left out before either
		v.held, v.bundle = all.held, all
	default:
		v.held = all.held.only(tags, v.held)
		v.bundle = newBundle(v.held)
	}
	v.of = all.held
	return v.bundle
}

// tagged reports whether some API has tags.
func (h *snapshot) tagged() bool {
	return slices.ContainsFunc(h.apis, func(o object) bool { return len(o.tags) > 0 })
}

// only returns the snapshot for gateways with tags. Its difference from before, the last
// such one or nil, is a step like any other.
func (h *snapshot) only(tags []string, before *snapshot) *snapshot {
	next := &snapshot{state: h.state, cleared: h.cleared, caches: h.caches, policies: h.policies, secrets: h.secrets}
	for _, o := range h.apis {
		if definition.AnyTag(o.tags, tags) {
			next.apis = append(next.apis, o)
			next.digest.Add(o.sum)
		}
	}
	for _, o := range h.policies {
		next.digest.Add(o.sum)
	}
	next.cleared = next.cleared || len(next.apis) == 0 && len(h.apis) > 0
	if before != nil {
		next.steps = after(before.steps, step{
			from: before.etag(), apis: differing(before.apis, next.apis), policies: differing(before.policies, next.policies),
		})
	}
	return next
}

// differing returns the ids of the objects that two sorted lists do not share.
func differing(a, b []object) (ids []string) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && byID(a[0], b[0]) < 0:
			ids, a = append(ids, a[0].id), a[1:]
		case len(a) == 0 || byID(a[0], b[0]) > 0:
			ids, b = append(ids, b[0].id), b[1:]
		default:
			if a[0].sum != b[0].sum {
				ids = append(ids, a[0].id)
			}
			a, b = a[1:], b[1:]
		}
	}
	return ids
}

// tagsOf returns the tags of an API that was checked when it was saved.
func tagsOf(text []byte) []string {
	if !bytes.Contains(text, []byte(`"tags"`)) { // the usual case, without decoding everything
		return nil
	}
	var api struct {
		Tags []string `json:"tags"`
	}
	if json.Unmarshal(text, &api) != nil {
		return nil
	}
	return api.Tags
}
