package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/frozen"
	"github.com/sluicegate/sluice/internal/pace"
)

// Options say how a snapshot is built.
type Options struct {
	CustomDomains bool    // domains of definitions are compared with the request's host
	CPU           float64 // share of one processor that a build beside traffic may take; 0: all there are
}

// A Change is the difference between a snapshot and the one before.
type Change struct {
	Came, Gone []*pipeline.API // compiled APIs that entered and left service
	Left       []string        // ids that are no longer served
	Graphs     bool            // a GraphQL API entered or left service

	// Rest pauses if the build has used its share of the processor. Work that follows
	// the build calls it as well.
	Rest func()
}

// Build builds the snapshot of a bundle that follows prev, which is nil for the
// first. The error is ctx's.
func (c *Compiler) Build(ctx context.Context, prev *Snapshot, b *definition.Bundle, o Options) (*Snapshot, Change, error) {
	shared := newSharedStages()
	bl := builder{customDomains: o.CustomDomains, prev: prev, meter: c.Meter, compile: func(def *definition.API) (*pipeline.API, error) {
		return c.compile(def, shared)
	}}
	if prev != nil {
		bl.pace = pace.New(o.CPU)
	}
	return bl.build(ctx, b)
}

// Uncompiled builds a snapshot whose APIs are only definitions: requests find them,
// and CompileOrRefuse compiles the one that is needed. The error is ctx's.
func Uncompiled(ctx context.Context, b *definition.Bundle, o Options) (*Snapshot, error) {
	bl := builder{customDomains: o.CustomDomains, compile: func(def *definition.API) (*pipeline.API, error) {
		return &pipeline.API{Definition: def}, nil
	}}
	s, _, err := bl.build(ctx, b)
	return s, err
}

// A builder builds one snapshot. Its cost grows with what changed: an API whose
// definition is the same object is not looked at.
type builder struct {
	customDomains bool
	compile       func(*definition.API) (*pipeline.API, error)
	meter         func(api string) pipeline.Meter // of APIs that cannot be compiled; nil: they are not measured
	pace          *pace.Pacer                     // nil: compile on all processors, without pauses
	step          func() error                    // pauses if it is time to; its error is that of build's ctx

	prev, next *Snapshot // prev is never nil
	apis       *frozen.Edit[*pipeline.API]
	routes     *match.Edit[*pipeline.API]
	touched    map[string]bool // ids whose compiled API may have changed
}

// A candidate is a definition that may need to be compiled.
type candidate struct {
	at  int // in the bundle
	def *definition.API
	old *pipeline.API // what is served under its id, or nil
	api *pipeline.API // its compiled form, or nil
	err error         // why there is none
}

// build builds the snapshot of a bundle. The error is ctx's.
func (bl *builder) build(ctx context.Context, b *definition.Bundle) (*Snapshot, Change, error) {
	if bl.prev == nil {
		bl.prev = &Snapshot{}
	}
	bl.pace.Begin()
	bl.step = func() error { return bl.pace.Step(ctx) }
	policies, err := bl.prev.policies.With(b.Policies, bl.step)
	if err != nil {
		return nil, Change{}, err
	}
	gone, candidates, twice, err := bl.differences(b, bl.prev.doubled)
	if err == nil && twice && !bl.prev.doubled {
		gone, candidates, _, err = bl.differences(b, true)
	}
	if err != nil {
		return nil, Change{}, err
	}
	// On every processor when nothing is served yet, else at a pace that leaves the
	// processor to requests.
	if err := pace.Each(ctx, bl.pace, len(candidates), func(i int) { bl.compileOne(candidates[i]) }); err != nil {
		return nil, Change{}, err
	}
	bl.next = &Snapshot{
		Revision: b.Revision, Since: time.Now(), Failed: make(map[string]error), policies: policies,
		given: slices.Clone(b.APIs), doubled: twice, caches: b.Caches, Elsewhere: b.Elsewhere,
	}
	bl.apis, bl.routes, bl.touched = bl.prev.apis.Edit(), bl.prev.routes.Edit(), make(map[string]bool)
	if err := bl.leave(gone, candidates, b.Skipped); err != nil {
		return nil, Change{}, err
	}
	if err := bl.enterAll(candidates); err != nil {
		return nil, Change{}, err
	}
	for _, skipped := range b.Skipped {
		bl.skip(skipped)
	}
	if err := bl.finish(); err != nil {
		return nil, Change{}, err
	}
	c, err := bl.change()
	c.Rest = func() { _ = bl.step() }
	return bl.next, c, err
}

// finish applies the edits to the next snapshot.
func (bl *builder) finish() (err error) {
	if bl.next.apis, err = bl.apis.DoneBySteps(bl.step); err != nil {
		return err
	}
	bl.next.routes, err = bl.routes.Done(bl.step)
	return err
}

// differences returns the ids that the bundle may no longer have, and the
// candidates: all definitions, or those that are new or not settled. twice reports
// that two of them, or one and an unchanged definition, have the same id.
func (bl *builder) differences(b *definition.Bundle, all bool) (gone []string, candidates []*candidate, twice bool, err error) {
	left, come, err := bl.compare(b, all)
	if err != nil {
		return nil, nil, false, err
	}
	before := make(map[string]bool, len(left)) // ids whose APIs are not settled
	if err := frozen.InSteps(left, bl.step, func(at int) { before[bl.prev.given[at].ID] = true }); err != nil {
		return nil, nil, false, err
	}
	for _, id := range bl.prev.kept {
		before[id] = true
	}
	active := make(map[string]bool, len(come)) // by id, of the candidates
	// Definitions that keep their listen path come first, so that a new one takes no
	// path from an API in service.
	var newcomers []*candidate
	err = frozen.InSteps(come, bl.step, func(at int) {
		def := b.APIs[at]
		old, served := bl.prev.apis.Get(def.ID)
		_, seen := active[def.ID]
		twice = twice || seen || served && !before[def.ID]
		active[def.ID] = active[def.ID] || def.IsActive()
		switch c := (&candidate{at: at, def: def, old: old}); {
		case !def.IsActive():
		case c.stays():
			candidates = append(candidates, c)
		default:
			newcomers = append(newcomers, c)
		}
	})
	if err != nil {
		return nil, nil, false, err
	}
	for id := range before {
		if !active[id] {
			gone = append(gone, id)
		}
		if err := bl.step(); err != nil {
			return nil, nil, false, err
		}
	}
	candidates = append(candidates, newcomers...)
	if twice {
		err = refuseDoubles(candidates, bl.step)
	}
	return gone, candidates, twice, err
}

var errTwice = errors.New("another definition in the bundle has the same api_id")

// refuseDoubles rejects all candidates of an id but the first.
func refuseDoubles(candidates []*candidate, step func() error) error {
	seen := make(map[string]bool, len(candidates))
	return frozen.InSteps(candidates, step, func(c *candidate) {
		if seen[c.def.ID] {
			c.old, c.err = nil, errTwice
		}
		seen[c.def.ID] = true
	})
}

// compare returns the indices of the definitions of the last bundle that are gone or
// unsettled, and of those of this one that are new or unsettled.
func (bl *builder) compare(b *definition.Bundle, all bool) (left, come []int, err error) {
	prev := bl.prev
	if all {
		return upTo(len(prev.given)), upTo(len(b.APIs)), nil
	}
	left, come, err = frozen.Diff(prev.given, b.APIs, bl.step)
	if err != nil || len(prev.unsettled) == 0 {
		return left, come, err
	}
	again := make(map[*definition.API]bool, len(prev.unsettled))
	for _, at := range prev.unsettled {
		again[prev.given[at]] = true
		left = append(left, at)
	}
	for at, def := range b.APIs {
		if again[def] {
			come = append(come, at)
		}
		if err := bl.step(); err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(come)
	return left, come, nil
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// stays reports whether the definition keeps the listen path of the API in service.
func (c *candidate) stays() bool {
	return c.old != nil && c.old.Definition.Proxy.ListenPath == c.def.Proxy.ListenPath && c.old.Definition.Domain == c.def.Domain
}

func (bl *builder) compileOne(c *candidate) {
	if c.err != nil {
		return
	}
	if c.old != nil && c.old.Definition.InForce().ContentHash() == c.def.InForce().ContentHash() {
		c.api = c.old
		return
	}
	if c.err = c.def.Validate(); c.err == nil {
		c.api, c.err = bl.compile(c.def)
	}
}

// leave removes the APIs that are no longer served, and the routes of those that
// move, before any route is added.
func (bl *builder) leave(gone []string, candidates []*candidate, skipped []definition.Skipped) error {
	kept := make(map[string]bool, len(skipped))
	for _, s := range skipped {
		kept[s.APIID] = true
	}
	for _, at := range bl.prev.refused {
		bl.routes.Remove(at.domain, at.listenPath)
		bl.touched[at.id] = true
	}
	if err := frozen.InSteps(gone, bl.step, func(id string) {
		bl.touched[id] = true
		old, _ := bl.apis.Get(id)
		switch {
		case old == nil:
		case kept[id]:
			bl.next.kept = append(bl.next.kept, id)
		default:
			bl.apis.Delete(id)
			bl.vacate(old.Definition)
		}
	}); err != nil {
		return err
	}
	return frozen.InSteps(candidates, bl.step, func(c *candidate) {
		if c.api != nil && c.old != nil && (!c.stays() || c.def.Internal) {
			bl.vacate(c.old.Definition)
		}
	})
}

func (bl *builder) vacate(def *definition.API) {
	if !def.Internal {
		at := bl.placeOf(def)
		bl.routes.Remove(at.domain, at.listenPath)
	}
}

func (bl *builder) placeOf(def *definition.API) place {
	at := place{listenPath: def.Proxy.ListenPath}
	if bl.customDomains {
		at.domain = def.Domain
	}
	return at
}

// change lists the APIs that differ from the last snapshot.
func (bl *builder) change() (c Change, err error) {
	graphs, renamed := bl.prev.graphs.Edit(), make(renames)
	refused := make(map[string]bool, len(bl.next.refused)) // they have no compiled form, and are called
	for _, api := range bl.next.refused {
		refused[api.id] = true
	}
	for id := range bl.touched {
		if err := bl.step(); err != nil {
			return Change{}, err
		}
		old, was := bl.prev.apis.Get(id)
		now, is := bl.next.apis.Get(id)
		if was && old != now {
			c.Gone = append(c.Gone, old)
			graphs.Delete(id)
		}
		if is && old != now {
			c.Came = append(c.Came, now)
		}
		if is && now.Schema != nil {
			graphs.Set(id, now)
		}
		c.Graphs = c.Graphs || old != now && (was && old.Schema != nil || is && now.Schema != nil)
		if !is && !refused[id] {
			c.Left = append(c.Left, id)
		}
		renamed.add(definitionOf(old), definitionOf(now))
	}
	called := bl.prev.names.Edit()
	for key, one := range renamed {
		if err := bl.step(); err != nil {
			return Change{}, err
		}
		one.write(key, called)
	}
	bl.next.graphs = graphs.Done()
	bl.next.names, err = called.DoneBySteps(bl.step)
	return c, err
}

// definitionOf returns the definition of an API that may be nil.
func definitionOf(api *pipeline.API) *definition.API {
	if api == nil {
		return nil
	}
	return api.Definition
}

// taken adds the id of the API that has a listen path to the error.
func taken(err error) error {
	if t, ok := errors.AsType[*match.TakenError[*pipeline.API]](err); ok {
		return fmt.Errorf("%w: API %s has it already", err, t.Holder.Definition.ID)
	}
	return err
}
