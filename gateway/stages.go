package gateway

import (
	"fmt"
	"log/slog"

	"github.com/sluicegate/sluice/gateway/access"
	"github.com/sluicegate/sluice/gateway/auth"
	"github.com/sluicegate/sluice/gateway/graphql"
	"github.com/sluicegate/sluice/gateway/limit"
	"github.com/sluicegate/sluice/gateway/overload"
	"github.com/sluicegate/sluice/gateway/persisted"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/definition"
)

// Stages is what the stages of every API are compiled with.
type Stages struct {
	Auth     *auth.Auth
	Overload *overload.Guard // nil: nothing is shed
	Access   *access.Access
	GraphQL  *graphql.GraphQL
	Limit    *limit.Limiter
	Headers  *limit.Headers // nil: clients are not told their quota
	Pools    *upstream.Pools
	Upstream upstream.Config
	Meter    func(api string) pipeline.Meter

	log *slog.Logger // the gateway's
}

// A stageMaker makes one request stage for an API, or nil when the API does not
// ask for it.
type stageMaker struct {
	name    string
	compile func(*Stages, *definition.API) (pipeline.Stage, error)
}

// requestStages lists every request stage, in the order that requests meet
// them. The order decides which error a client sees when several apply.
var requestStages = []stageMaker{
	{"auth", func(s *Stages, def *definition.API) (pipeline.Stage, error) { return s.Auth.Compile(def), nil }},
	{"overload", func(s *Stages, def *definition.API) (pipeline.Stage, error) { return s.Overload.Compile(def), nil }},
	{"access", func(s *Stages, def *definition.API) (pipeline.Stage, error) { return s.Access.Compile(def), nil }},
	{"persisted", func(s *Stages, def *definition.API) (pipeline.Stage, error) { return s.persisted(def) }},
	{"graphql", func(s *Stages, def *definition.API) (pipeline.Stage, error) { return s.GraphQL.Compile(def) }},
	{"limit", func(s *Stages, def *definition.API) (pipeline.Stage, error) { return s.Limit.Compile(def), nil }},
}

// compile makes an API of its definition.
func (s *Stages) compile(def *definition.API) (*pipeline.API, error) {
	api := &pipeline.API{Definition: def, Meter: s.Meter(def.ID)}
	for _, m := range requestStages {
		stage, err := m.compile(s, def)
		if err != nil {
			return nil, fmt.Errorf("api %s: %w", def.ID, err)
		}
		if stage != nil {
			api.Request = append(api.Request, stage)
		}
	}
	forward, err := upstream.Compile(def, s.Pools, s.Upstream)
	if err != nil {
		return nil, fmt.Errorf("api %s: %w", def.ID, err)
	}
	api.Forward, api.Upstream = forward, forward
	operations := graphql.StageOf(api)
	if operations != nil {
		api.Forward, api.Schema = operations.Forward(forward), operations.Schema()
	}
	if stored := persisted.StageOf(api); stored != nil {
		stored.Govern(operations)
		api.Forward = stored.Forward(api.Forward)
	}
	if s.Headers != nil && !def.UseKeyless {
		api.Response = []pipeline.Stage{s.Headers.Answer()}
		api.Refused = []pipeline.Stage{s.Headers.Refusal()}
	}
	return api, nil
}

// persisted makes the stage of an API's stored operations, or nil.
func (s *Stages) persisted(def *definition.API) (pipeline.Stage, error) {
	stored, err := persisted.New(def, persisted.Options{Rate: s.Limit.Rate, Log: s.log})
	if stored == nil {
		return nil, err
	}
	return stored, nil
}
