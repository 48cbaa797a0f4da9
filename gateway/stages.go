package gateway

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/access"
	"github.com/sluicegate/sluice/gateway/auth"
	"github.com/sluicegate/sluice/gateway/cache"
	"github.com/sluicegate/sluice/gateway/graphql"
	"github.com/sluicegate/sluice/gateway/limit"
	"github.com/sluicegate/sluice/gateway/mutual"
	"github.com/sluicegate/sluice/gateway/origin"
	"github.com/sluicegate/sluice/gateway/overload"
	"github.com/sluicegate/sluice/gateway/persisted"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/transform"
	"github.com/sluicegate/sluice/gateway/tunnels"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/upstream/calls"
	"github.com/sluicegate/sluice/gateway/version"
	"github.com/sluicegate/sluice/internal/definition"
)

// Stages is what the stages of every API are compiled with.
type Stages struct {
	Auth     *auth.Auth
	Overload *overload.Guard // nil: nothing is shed
	Access   *access.Access
	GraphQL  *graphql.GraphQL
	Limit    *limit.Limiter
	Orgs     *limit.Orgs    // nil: organisations have no limits
	Headers  *limit.Headers // nil: clients are not told their quota
	Pools    *upstream.Pools
	Upstream upstream.Config
	Calls    *calls.Calls // nil: every API has one target, of which nothing is known
	Cache    *cache.Cache // nil: no answers are kept
	Versions version.Options
	Tunnels  *tunnels.Registry // nil: nobody watches over connections that leave HTTP
	Meter    func(api string) pipeline.Meter

	Certificates mutual.Certificates // that definitions name; nil: there are none
	Handshakes   Handshakes          // nil: nobody speaks TLS

	log    *slog.Logger     // the gateway's
	forms  *atomic.Uint64   // the last one given, of APIs that answer all alike; nil: none gets one
	common *common          // of the APIs that are compiled together; nil: each has its own stages
	shed   pipeline.Stage   // sheds the calls of the API that is compiled, in whatever version: an API has one share
	room   []pipeline.Stage // where lists of stages of the API that is compiled are kept, as long as there is place
}

// A stageMaker makes one stage for a version of an API, or nil when the
// definition does not ask for it. The version is nil when the definition says
// nothing about it.
type stageMaker struct {
	name    string
	compile func(*Stages, *definition.API, *definition.Version) (pipeline.Stage, error)
}

// entryStages lists the stages that a call passes before anything depends on the
// version that it wants, in order.
var entryStages = []stageMaker{
	// Before the version: no browser sends the header that would name it with a
	// preflight, and the lists of a version are about the call that follows.
	{"cors", func(_ *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return cors(def, (*origin.CORS).Preflight)
	}},
	{"version", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return version.Compile(def, s.Versions)
	}},
	{"ip", func(_ *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return origin.CompileAddresses(def)
	}},
	{"certificate", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return mutual.Compile(def, s.Certificates)
	}},
	{"org", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return s.Orgs.Compile(def), nil
	}},
}

// requestStages lists every request stage, in the order that requests meet
// them. The order decides which error a client sees when several apply.
var requestStages = []stageMaker{
	{"size", func(s *Stages, _ *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return version.Sizes(v, s.Versions)
	}},
	{"auth", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return s.auth(def)
	}},
	{"overload", func(s *Stages, _ *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return s.shed, nil
	}},
	{"access", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return s.Access.Compile(def), nil
	}},
	{"persisted", func(s *Stages, def *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return s.persisted(def, v)
	}},
	{"graphql", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return s.GraphQL.Compile(def)
	}},
	// Before the limits: what would be one tunnel too many counts against none.
	{"tunnels", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return s.Tunnels.Compile(def), nil
	}},
	{"limit", func(s *Stages, def *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return s.Limit.Compile(def, v)
	}},
	{"apilimit", func(s *Stages, def *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return s.Limit.CompileShared(def, v)
	}},
	{"mock", func(s *Stages, _ *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return version.Mocks(v, s.Versions)
	}},
	{"transform", func(_ *Stages, def *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return transform.CompileRequest(def, v)
	}},
	{"rewrite", func(_ *Stages, def *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return transform.CompileRewrite(def, v)
	}},
	{"cache", func(s *Stages, def *definition.API, v *definition.Version) (pipeline.Stage, error) {
		if s.Cache == nil {
			return nil, nil
		}
		return s.Cache.Compile(def, v)
	}},
}

// answerStages lists what is done to the answers of upstreams, in order.
var answerStages = []stageMaker{
	{"cache_answer", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		if s.Cache == nil {
			return nil, nil
		}
		return s.Cache.CompileFill(def)
	}},
	{"expiry_answer", func(_ *Stages, _ *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return version.End(v), nil
	}},
	{"transform_answer", func(_ *Stages, def *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return transform.CompileResponse(def, v)
	}},
	{"cors_answer", func(_ *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return cors(def, (*origin.CORS).Answer)
	}},
	{"quota_answer", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		if s.Headers == nil || def.UseKeyless {
			return nil, nil
		}
		return s.Headers.Answer(), nil
	}},
}

// refusalStages lists what is done to the gateway's own refusals, in order.
var refusalStages = []stageMaker{
	{"expiry_answer", func(_ *Stages, _ *definition.API, v *definition.Version) (pipeline.Stage, error) {
		return version.End(v), nil
	}},
	{"cors_answer", func(_ *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		return cors(def, (*origin.CORS).Answer)
	}},
	{"quota_answer", func(s *Stages, def *definition.API, _ *definition.Version) (pipeline.Stage, error) {
		if s.Headers == nil || def.UseKeyless {
			return nil, nil
		}
		return s.Headers.Refusal(), nil
	}},
}

// compile makes an API of its definition.
func (s *Stages) compile(def *definition.API) (*pipeline.API, error) {
	whole := &compiled{API: pipeline.API{Definition: def, Meter: s.Meter(def.ID)}}
	whole.Versions = whole.list[:0]
	own := *s
	own.shed, own.room = s.Overload.Compile(&whole.shed, def), whole.room[:0]
	if err := own.compileVersions(whole, def); err != nil {
		return nil, fmt.Errorf("api %s: %w", def.ID, err)
	}
	own.numberForm(whole)
	return &whole.API, nil
}

// compileVersion makes v, one version of an API.
func (s *Stages) compileVersion(v *pipeline.Version, def *definition.API, version *definition.Version) error {
	stages, made, err := s.make(requestStages, def, version)
	if err != nil {
		return err
	}
	forward, err := s.upstream(targeted(def, version), version)
	if err == nil {
		forward, err = s.elsewhere(forward, def, version)
	}
	if err != nil {
		return err
	}
	*v = pipeline.Version{Definition: version, Request: stages, RequestMade: made, Forward: forward, Upstream: forward}
	operations := graphql.StageOf(stages)
	if operations != nil {
		v.Forward = operations.Forward(forward)
	}
	if stored := persisted.StageOf(stages); stored != nil {
		stored.Govern(operations)
		v.Forward = stored.Forward(v.Forward)
	}
	keepBefore(stages, forward)
	if v.Response, v.ResponseMade, err = s.make(answerStages, def, version); err == nil {
		v.Refused, _, err = s.make(refusalStages, def, version)
	}
	return err
}

// upstream makes the stage that calls a version's upstream.
func (s *Stages) upstream(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	if s.Calls == nil {
		return upstream.Compile(def, s.Pools, s.Upstream)
	}
	return s.Calls.Compile(def, version)
}

// make makes the stages that a definition asks for, and tells which these are.
func (s *Stages) make(makers []stageMaker, def *definition.API, version *definition.Version) (stages []pipeline.Stage, made pipeline.Made, err error) {
	var room [32]pipeline.Stage // what is kept, by as many APIs as there are, has no room to spare
	stages = room[:0]
	for i, m := range makers {
		stage, err := m.compile(s, def, version)
		if err != nil {
			return nil, 0, err
		}
		if stage != nil {
			stages = append(stages, stage)
			made |= 1 << i
		}
	}
	if made == 0 {
		return nil, 0, nil
	}
	return s.keep(stages), made, nil
}

// keep returns the same stages in as much memory as they need: a part of the API's
// own where there is place for them.
func (s *Stages) keep(stages []pipeline.Stage) []pipeline.Stage {
	from, to := len(s.room), len(s.room)+len(stages)
	if to > cap(s.room) {
		return slices.Clone(stages)
	}
	s.room = append(s.room, stages...)
	return s.room[from:to:to]
}

// cors makes one of the stages that tell browsers which pages may call, or nil.
func cors(def *definition.API, stage func(*origin.CORS) pipeline.Stage) (pipeline.Stage, error) {
	c, err := origin.Compile(def)
	if c == nil || err != nil {
		return nil, err
	}
	return stage(c), nil
}

// persisted makes the stage of a version's stored operations, or nil.
func (s *Stages) persisted(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	stored, err := persisted.New(def, version, persisted.Options{Rate: s.Limit.Rate, Log: s.log})
	if stored == nil {
		return nil, err
	}
	return stored, nil
}
