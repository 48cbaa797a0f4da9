package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/pace"
)

// A held configuration is parsed and does not change. The next one keeps the objects that
// stay the same.
type held struct {
	revision       string
	confirmedEmpty bool
	caches         map[string]int64
	secrets        definition.Secrets
	apis           []item[definition.API]
	policies       []item[definition.Policy]
	digest         definition.Digest
}

// An item is one object of a configuration, or the reason why it cannot be used. Lists are
// ordered by id.
type item[T any] struct {
	id      string
	sum     definition.Sum
	object  *T
	skipped *definition.Skipped
}

// A reader reads the objects of one kind.
type reader[T any] struct {
	pace  *pace.Pacer
	name  string // of the list in a bundle
	kind  definition.Kind
	parse func(where string, raw []byte) item[T]
}

func apiReader(p *pace.Pacer) reader[definition.API] {
	return reader[definition.API]{p, "apis", definition.KindAPI, parseAPI}
}

func policyReader(p *pace.Pacer) reader[definition.Policy] {
	common := newRights()
	return reader[definition.Policy]{p, "policies", definition.KindPolicy, func(where string, raw []byte) item[definition.Policy] {
		one := parsePolicy(where, raw)
		if one.object != nil {
			common.share(one.object)
		}
		return one
	}}
}

func parseAPI(where string, raw []byte) item[definition.API] {
	a, err := definition.ParseAPI(raw)
	one := item[definition.API]{id: a.ID, sum: definition.SumOf(definition.KindAPI, raw), object: a}
	if err != nil {
		one.object, one.skipped = nil, new(definition.SkippedAPI(where, a, err))
	}
	return one
}

func parsePolicy(where string, raw []byte) item[definition.Policy] {
	p, err := definition.ParsePolicy(raw)
	one := item[definition.Policy]{id: p.Key(), sum: definition.SumOf(definition.KindPolicy, raw), object: p}
	if err != nil {
		one.object, one.skipped = nil, &definition.Skipped{Source: strings.TrimSpace(where + " " + p.Key()), Reason: err.Error()}
	}
	return one
}

// bundle returns the configuration as a gateway serves it.
func (h *held) bundle() *definition.Bundle {
	b := &definition.Bundle{
		Revision: h.revision, ConfirmedEmpty: h.confirmedEmpty, Caches: h.caches, Secrets: h.secrets,
		APIs: make([]*definition.API, 0, len(h.apis)), Policies: make([]*definition.Policy, 0, len(h.policies)),
	}
	b.APIs, b.Skipped = usable(b.APIs, b.Skipped, h.apis)
	b.Policies, b.Skipped = usable(b.Policies, b.Skipped, h.policies)
	return b
}

func usable[T any](objects []*T, skipped []definition.Skipped, items []item[T]) ([]*T, []definition.Skipped) {
	for i := range items {
		if items[i].skipped != nil {
			skipped = append(skipped, *items[i].skipped)
		} else {
			objects = append(objects, items[i].object)
		}
	}
	return objects, skipped
}

// replacedBy parses a whole configuration, which keeps the objects of h that are the same.
// h may be nil.
func (h *held) replacedBy(ctx context.Context, p *pace.Pacer, data []byte) (*held, error) {
	raw, err := split(ctx, p, data)
	if err != nil {
		return nil, err
	}
	if h == nil {
		h = &held{}
	}
	next := &held{revision: raw.revision, confirmedEmpty: raw.confirmedEmpty, caches: raw.caches, secrets: raw.secrets}
	if next.apis, err = apiReader(p).all(ctx, h.apis, raw.apis); err != nil {
		return nil, err
	}
	if next.policies, err = policyReader(p).all(ctx, h.policies, raw.policies); err != nil {
		return nil, err
	}
	addAll(&next.digest, next.apis)
	addAll(&next.digest, next.policies)
	if raw.digest != "" && raw.digest != next.digest.String() {
		return nil, errDigest
	}
	return next, nil
}

var errDigest = errors.New("the configuration is not what the admin sent: the digests differ")

func addAll[T any](d *definition.Digest, items []item[T]) {
	for i := range items {
		d.Add(items[i].sum)
	}
}

// all parses a list, which keeps the objects of before that are the same.
func (r reader[T]) all(ctx context.Context, before []item[T], raw []json.RawMessage) ([]item[T], error) {
	known := make(map[definition.Sum]*item[T], len(before))
	for i := range before {
		known[before[i].sum] = &before[i]
	}
	items := make([]item[T], len(raw))
	err := pace.Each(ctx, r.pace, len(raw), func(i int) {
		if old := known[definition.SumOf(r.kind, raw[i])]; old != nil {
			items[i] = *old
		} else {
			items[i] = r.parse(fmt.Sprintf("%s[%d]", r.name, i), raw[i])
		}
		raw[i] = nil // frees memory early
	})
	slices.SortStableFunc(items, byID)
	return items, err
}

func byID[T any](a, b item[T]) int { return strings.Compare(a.id, b.id) }

// with parses a delta and returns the configuration after it.
func (h *held) with(ctx context.Context, p *pace.Pacer, data []byte) (*held, error) {
	d, err := splitDelta(ctx, p, data)
	if err != nil {
		return nil, err
	}
	next := &held{revision: d.Revision, confirmedEmpty: d.ConfirmedEmpty, caches: d.Caches, secrets: d.Secrets, digest: h.digest}
	if next.apis, err = apiReader(p).changed(ctx, h.apis, d.APIs, &next.digest); err != nil {
		return nil, err
	}
	if next.policies, err = policyReader(p).changed(ctx, h.policies, d.Policies, &next.digest); err != nil {
		return nil, err
	}
	if d.Digest != next.digest.String() {
		return nil, errDigest
	}
	return next, nil
}

// changed returns the ordered items after changes.
func (r reader[T]) changed(ctx context.Context, items []item[T], changes map[string]json.RawMessage, digest *definition.Digest) ([]item[T], error) {
	if len(changes) == 0 {
		return items, nil
	}
	ids := slices.Sorted(maps.Keys(changes))
	parsed := make([]item[T], len(ids))
	err := pace.Each(ctx, r.pace, len(ids), func(i int) {
		if raw := changes[ids[i]]; !definition.IsGone(raw) {
			parsed[i] = r.parse(fmt.Sprintf("%s[%q]", r.name, ids[i]), raw)
			parsed[i].id = ids[i]
		}
	})
	if err != nil {
		return nil, err
	}
	next := make([]item[T], 0, len(items)+len(parsed))
	for i := range parsed {
		at, _ := slices.BinarySearchFunc(items, ids[i], func(one item[T], id string) int { return strings.Compare(one.id, id) })
		next, items = append(next, items[:at]...), items[at:]
		for len(items) > 0 && items[0].id == ids[i] {
			digest.Remove(items[0].sum)
			items = items[1:]
		}
		if parsed[i].id != "" {
			digest.Add(parsed[i].sum)
			next = append(next, parsed[i])
		}
	}
	return append(next, items...), nil
}
