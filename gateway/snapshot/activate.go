package snapshot

import (
	"errors"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/internal/definition"
)

// enterAll puts candidates into service, or their stand-ins.
func (bl *builder) enterAll(candidates []*candidate) error {
	for _, c := range candidates {
		if err := bl.enter(c); err != nil {
			bl.fail(c, err)
		}
		if err := bl.step(); err != nil {
			return err
		}
	}
	return nil
}

// enter puts a candidate into service. An API that fails to compile stays as it was.
func (bl *builder) enter(c *candidate) error {
	switch {
	case c.err == nil:
	case c.old == nil && !errors.Is(c.err, errTwice):
		bl.refuse(c.def, c.err)
		return c.err
	default:
		return c.err
	}
	if err := bl.route(c); err != nil {
		bl.restore(c)
		return taken(err)
	}
	if c.api != c.old {
		bl.touched[c.def.ID] = true
		bl.apis.Set(c.def.ID, c.api)
	}
	return nil
}

// route adds the listen path of a candidate.
func (bl *builder) route(c *candidate) error {
	switch {
	case c.def.Internal:
		return nil
	case c.old != nil && c.stays() && !c.old.Definition.Internal:
		if c.api == c.old {
			return nil
		}
		return bl.routes.Set(bl.entry(c.api)) // its own place, which no other API can have
	}
	return bl.routes.Add(bl.entry(c.api))
}

func (bl *builder) entry(api *pipeline.API) match.Entry[*pipeline.API] {
	at := bl.placeOf(api.Definition)
	return match.Entry[*pipeline.API]{Domain: at.domain, ListenPath: at.listenPath, Value: api}
}

// restore puts the last good form of a candidate back where it was, unless another
// API listens there by now.
func (bl *builder) restore(c *candidate) {
	if c.old == nil || c.old.Definition.Internal {
		return
	}
	if err := bl.routes.Add(bl.entry(c.old)); err != nil {
		bl.touched[c.def.ID] = true
		bl.apis.Delete(c.def.ID)
	}
}

// fail records why a candidate is not served as written. It is compiled again with
// the next bundle: the reason may be this machine's.
func (bl *builder) fail(c *candidate, err error) {
	bl.next.Failed[c.def.ID] = err
	bl.next.unsettled = append(bl.next.unsettled, c.at)
}

// refuse adds a stand-in for an API that never compiled here: without a route of its
// own, its requests would reach an API that listens on a shorter path.
func (bl *builder) refuse(def *definition.API, why error) {
	if def.Internal {
		return
	}
	api := standIn(def, why)
	if bl.meter != nil {
		api.Meter = bl.meter(def.ID)
	}
	if err := bl.routes.Add(bl.entry(api)); err == nil {
		bl.next.refused = append(bl.next.refused, refusedAPI{def.ID, bl.placeOf(def)})
	}
}

// standIn returns an API that refuses all calls, in place of one that cannot be
// compiled.
func standIn(def *definition.API, why error) *pipeline.API {
	with := notServed
	if _, ok := errors.AsType[*graphql.SchemaError](why); ok || def.LacksSchema() {
		with = schemaBroken
	}
	stage := pipeline.CompiledStage{Stage: refusal{with, why.Error()}, Kind: refusalKind}
	return &pipeline.API{Definition: def, Entry: []pipeline.CompiledStage{stage}, Version: &pipeline.Version{}}
}

// skip keeps the last good form of an API whose definition could not be read,
// and refuses its requests when there is none.
func (bl *builder) skip(skipped definition.Skipped) {
	name := skipped.APIID
	if name == "" {
		name = skipped.Source
	}
	bl.next.Failed[name] = errors.New(skipped.Reason)
	if served, _ := bl.apis.Get(skipped.APIID); served != nil || skipped.ListenPath == "" {
		return // its last good form, or another definition of the name
	}
	def := &definition.API{ID: name, OrgID: skipped.OrgID, Domain: skipped.Domain, Proxy: definition.Proxy{ListenPath: skipped.ListenPath}}
	if skipped.LacksSchema {
		def.GraphQL = &definition.GraphQL{Enabled: true}
	}
	bl.refuse(def, errors.New(skipped.Reason))
}

// refusalKind is the kind of the one stage of a stand-in. It is checked for open
// tunnels: an API whose definition broke no longer says who may use it.
var refusalKind = &pipeline.StageKind{Name: "definition", Rights: true, CallerDependent: true}

// A refusal is a stage that refuses every request.
type refusal struct {
	with *pipeline.Rejection
	why  string
}

// Handle implements pipeline.Stage.
func (r refusal) Handle(ex *pipeline.Exchange) pipeline.Verdict { return ex.Reject(r.with) }

// Explain implements pipeline.Explainer.
func (r refusal) Explain(_ *pipeline.Exchange, f *pipeline.Finding) {
	f.Said = "the definition cannot be served: " + r.why
	f.Fix = "correct the definition"
}
