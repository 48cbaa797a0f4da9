package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/graphql"
	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A Snapshot is all that requests are served from, compiled from one bundle. A
// request keeps the snapshot that it began with.
type Snapshot struct {
	Revision string
	Since    time.Time
	Failed   map[string]error // by API id: why it is not served as its definition says

	routes     *match.Tree[*pipeline.API]
	apis       map[string]*pipeline.API // by id, those that are served
	policies   *definition.PolicySet
	policyHash [sha256.Size]byte
}

// APIs returns the definitions that are served, ordered by id.
func (s *Snapshot) APIs() []*definition.API {
	all := make([]*definition.API, 0, len(s.apis))
	for _, api := range s.apis {
		all = append(all, api.Definition)
	}
	slices.SortFunc(all, func(a, b *definition.API) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// API returns the definition that is served under an id, or nil.
func (s *Snapshot) API(id string) *definition.API {
	if api := s.apis[id]; api != nil {
		return api.Definition
	}
	return nil
}

// Policies returns the policies in force.
func (s *Snapshot) Policies() *definition.PolicySet { return s.policies }

// A builder makes the snapshot that follows another one.
type builder struct {
	conf    *Config
	compile func(*definition.API) (*pipeline.API, error)
	prev    *Snapshot // never nil
	next    *Snapshot
	entries []match.Entry[*pipeline.API]
}

// build compiles a bundle. A definition that did not change keeps its compiled
// form; one that cannot be compiled keeps its last good one.
func build(conf *Config, compile func(*definition.API) (*pipeline.API, error), prev *Snapshot, b *definition.Bundle) *Snapshot {
	if prev == nil {
		prev = &Snapshot{}
	}
	bl := builder{conf: conf, compile: compile, prev: prev, next: &Snapshot{
		Revision: b.Revision,
		Since:    time.Now(),
		Failed:   make(map[string]error),
		apis:     make(map[string]*pipeline.API, len(b.APIs)),
	}}
	bl.setPolicies(b.Policies)
	for _, def := range bl.inOrder(b.APIs) {
		bl.add(def)
	}
	for _, skipped := range b.Skipped {
		bl.skip(skipped)
	}
	bl.route()
	return bl.next
}

// setPolicies keeps the set of before when no policy changed, and with it all
// that was derived from it.
func (bl *builder) setPolicies(policies []*definition.Policy) {
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for _, p := range policies {
		if err := enc.Encode(p); err != nil {
			bl.next.Failed[p.Key()] = fmt.Errorf("policy %s: %w", p.Key(), err)
		}
	}
	sum.Sum(bl.next.policyHash[:0])
	if bl.prev.policies != nil && bl.prev.policyHash == bl.next.policyHash {
		bl.next.policies = bl.prev.policies
		return
	}
	bl.next.policies = definition.NewPolicySet(policies)
}

// inOrder puts those first that listen where they already did, so that a
// newcomer takes no path away from an API in service.
func (bl *builder) inOrder(defs []*definition.API) []*definition.API {
	ordered := make([]*definition.API, 0, len(defs))
	var later []*definition.API
	for _, def := range defs {
		if old := bl.prev.apis[def.ID]; old != nil && old.Definition.Proxy.ListenPath == def.Proxy.ListenPath && old.Definition.Domain == def.Domain {
			ordered = append(ordered, def)
		} else {
			later = append(later, def)
		}
	}
	return append(ordered, later...)
}

var errTwice = errors.New("another definition in the bundle has the same api_id")

func (bl *builder) add(def *definition.API) {
	if !def.IsActive() {
		return
	}
	if bl.next.apis[def.ID] != nil {
		bl.next.Failed[def.ID] = errTwice
		return
	}
	hash := def.ContentHash()
	old := bl.prev.apis[def.ID]
	if old != nil && old.Hash == hash {
		bl.serve(old)
		return
	}
	api, err := bl.compileOne(def)
	switch {
	case err == nil:
		api.Hash = hash
		bl.serve(api)
	case old != nil:
		bl.next.Failed[def.ID] = err
		bl.serve(old)
	default:
		bl.next.Failed[def.ID] = err
		bl.refuse(def, err)
	}
}

func (bl *builder) compileOne(def *definition.API) (*pipeline.API, error) {
	if err := def.Validate(); err != nil {
		return nil, err
	}
	return bl.compile(def)
}

func (bl *builder) serve(api *pipeline.API) {
	def := api.Definition
	bl.next.apis[def.ID] = api
	if def.Internal {
		return
	}
	bl.enter(def, api)
}

func (bl *builder) enter(def *definition.API, api *pipeline.API) {
	e := match.Entry[*pipeline.API]{ListenPath: def.Proxy.ListenPath, Value: api}
	if bl.conf.CustomDomains {
		e.Domain = def.Domain
	}
	bl.entries = append(bl.entries, e)
}

// refuse answers for an API that never compiled here: without a route of its
// own, its requests would reach whoever listens on a shorter path.
func (bl *builder) refuse(def *definition.API, why error) {
	if def.Internal {
		return
	}
	with := notServed
	if _, ok := errors.AsType[*graphql.SchemaError](why); ok || def.LacksSchema() {
		with = schemaBroken
	}
	bl.enter(def, &pipeline.API{Definition: def, Request: []pipeline.Stage{refusal{with}}})
}

// skip keeps the last good form of an API whose definition could not be read,
// and refuses its requests when there is none.
func (bl *builder) skip(skipped definition.Skipped) {
	name := skipped.APIID
	if name == "" {
		name = skipped.Source
	}
	bl.next.Failed[name] = errors.New(skipped.Reason)
	old := bl.prev.apis[skipped.APIID]
	switch {
	case bl.next.apis[skipped.APIID] != nil: // the name is taken, not the API broken
	case old != nil:
		bl.serve(old)
	case skipped.ListenPath != "":
		def := &definition.API{ID: name, Domain: skipped.Domain, Proxy: definition.Proxy{ListenPath: skipped.ListenPath}}
		if skipped.LacksSchema {
			def.GraphQL = &definition.GraphQL{Enabled: true}
		}
		bl.refuse(def, errors.New(skipped.Reason))
	}
}

func (bl *builder) route() {
	tree, problems := match.New(bl.entries)
	bl.next.routes = tree
	for _, p := range problems {
		def := bl.entries[p.Entry].Value.Definition
		err := error(p)
		if p.First >= 0 {
			err = fmt.Errorf("%w: API %s has it already", p, bl.entries[p.First].Value.Definition.ID)
		}
		if bl.next.Failed[def.ID] == nil {
			bl.next.Failed[def.ID] = err
		}
		delete(bl.next.apis, def.ID)
	}
}

// A refusal is a stage that always refuses.
type refusal struct{ with *pipeline.Rejection }

// Handle refuses.
func (r refusal) Handle(ex *pipeline.Exchange) pipeline.Verdict { return ex.Reject(r.with) }
