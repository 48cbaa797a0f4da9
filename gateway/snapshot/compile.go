package snapshot

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/graph"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/access"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/gateway/stage/clientcert"
	"github.com/sluicegate/sluice/gateway/stage/cors"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/stage/limit"
	"github.com/sluicegate/sluice/gateway/stage/overload"
	"github.com/sluicegate/sluice/gateway/stage/persisted"
	"github.com/sluicegate/sluice/gateway/stage/tunnels"
	"github.com/sluicegate/sluice/gateway/stage/version"
	"github.com/sluicegate/sluice/gateway/stream/engine"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/upstream/targets"
	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/definition"
)

// Stages is what the stages of every API are compiled with.
type Stages struct {
	Auth     *auth.Auth
	Overload *overload.Guard // nil: no load is shed
	Access   *access.Access
	GraphQL  *graphql.GraphQL
	Limit    *limit.Limiter
	Orgs     *limit.Orgs    // nil: organisations have no limits
	Headers  *limit.Headers // nil: no quota headers are sent
	Pools    *upstream.Pools
	Upstream upstream.Config
	Calls    *targets.Registry // nil: every API has one target, without health checks and breakers
	Cache    *cache.Cache      // nil: no responses are cached
	Versions version.Options
	Tunnels  *tunnels.Registry // nil: connections that leave HTTP are not checked again
	Streams  *engine.Engine    // nil: event streams are not enabled
	Graphs   *graph.Engine     // nil: data graphs and supergraphs are not served
	Meter    func(api string) pipeline.Meter

	Certificates clientcert.Certificates // that definitions name; nil: there are none
}

// A Compiler compiles the APIs of one gateway.
type Compiler struct {
	Stages
	log          *slog.Logger
	fingerprints *atomic.Uint64 // the last one given; nil: APIs get none
}

// NewCompiler returns a compiler that logs doubtful definitions.
func NewCompiler(s Stages, log *slog.Logger) *Compiler {
	return &Compiler{Stages: s, log: log, fingerprints: new(atomic.Uint64)}
}

// Detached returns a compiler of APIs for explanations: what they share with those
// in service is only read. Close frees it.
func (c *Compiler) Detached() *Compiler {
	d := *c
	d.Pools = c.Pools.Apart()
	d.GraphQL = c.GraphQL.Aside()
	if c.Calls != nil {
		d.Calls = c.Calls.Aside(d.Pools)
	}
	d.Streams = c.Streams.Aside()
	d.Cache, d.fingerprints = nil, nil // cached responses belong to the configuration in force
	d.Meter = func(string) pipeline.Meter { return nil }
	d.log = slog.New(slog.DiscardHandler) // problems were logged when the definition was new
	return &d
}

// Close closes the upstream connections of a detached compiler.
func (c *Compiler) Close() { c.Pools.Close() }

// CompileOrRefuse compiles an API; one that fails to compile refuses all calls.
func (c *Compiler) CompileOrRefuse(def *definition.API) *pipeline.API {
	api, err := c.compile(def, nil)
	if err != nil {
		return standIn(def, err)
	}
	return api
}

// A compilation is the compilation of one API, or of one of its versions.
type compilation struct {
	*Compiler
	shared  *sharedStages       // of the APIs that are compiled together; nil: none
	def     *definition.API     // a version may change it
	version *definition.Version // nil when the definition says nothing about the version
	phase   phase               // of the list that is compiled
	shed    pipeline.Stage      // sheds the calls of all versions: an API has one share
	streams *engine.Stage       // of all versions; nil: the API has an upstream
	graph   *graph.Graph        // of all versions; nil: the API is no data graph and no supergraph
	slots   []pipeline.CompiledStage

	// Stages of the last request list that other stages need; nil: the list has none.
	graphql   *graphql.Stage
	persisted *persisted.Stage
	cache     *cache.Stage
	limits    *limit.Stage
}

// object is an API with its first version and the stages that most APIs have in one
// allocation, as there may be very many of them.
type object struct {
	pipeline.API
	first    pipeline.Version
	versions [1]*pipeline.Version      // backs Versions
	slots    [6]pipeline.CompiledStage // backs the stage lists: as many as fit in the allocator's size class
	shed     overload.Stage            // of all versions; has no effect when nothing is shed
}

// nextVersion returns the memory for the next version.
func (o *object) nextVersion() *pipeline.Version {
	if len(o.Versions) == 0 {
		return &o.first
	}
	return new(pipeline.Version)
}

// compile compiles a definition.
func (c *Compiler) compile(def *definition.API, shared *sharedStages) (*pipeline.API, error) {
	o := &object{API: pipeline.API{Definition: def, Meter: c.Meter(def.ID)}}
	o.Versions = o.versions[:0]
	composed, err := datagraph.Composed(def.InForce())
	if err != nil {
		return nil, fmt.Errorf("api %s: %w", def.ID, err)
	}
	one := &compilation{Compiler: c, shared: shared, def: composed, shed: c.Overload.Compile(&o.shed, def), slots: o.slots[:0]}
	if err := one.api(o); err != nil {
		return nil, fmt.Errorf("api %s: %w", def.ID, err)
	}
	c.setFingerprint(&o.API)
	return &o.API, nil
}

// api compiles the entry and every version of an API.
func (c *compilation) api(o *object) (err error) {
	def := c.def
	if o.Entry, err = c.list(entryPhase); err != nil {
		return err
	}
	if c.streams, err = c.Streams.Compile(def); err != nil {
		return err
	}
	if c.graph, err = c.Graphs.Compile(def, &graph.Calls{Pools: c.Pools, Config: c.Upstream, Topics: c.Streams}); err != nil {
		return err
	}
	for _, warning := range def.Warnings() {
		c.log.Warn("definition is served, but probably not as intended", "api", def.ID, "path", warning.Path, "problem", warning.Message)
	}
	names := def.VersionNames()
	if len(names) == 0 {
		if err := c.addVersion(o, "", def.Unversioned()); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := c.addVersion(o, name, def.VersionData.Versions[name]); err != nil {
			return fmt.Errorf("version %q: %w", name, err)
		}
	}
	o.Version = o.Versions[0]
	for _, v := range o.Versions {
		if v.Name != "" && v.Name == def.VersionData.DefaultVersion {
			o.Version = v
		}
	}
	if operations, ok := o.Version.GraphQL.(*graphql.Stage); ok {
		o.Schema = operations.Schema()
	}
	if def.OtherVersions() != nil {
		o.InternalVersion = internalVersion(def)
	}
	return nil
}

// internalVersion returns the version of calls that are passed to other APIs as
// versions of this one: CORS headers are those of the API that the client called,
// everything else is the other API's.
func internalVersion(def *definition.API) *pipeline.Version {
	stage := crossOrigin(def, (*cors.Rules).Answer)
	if stage == nil {
		return &pipeline.Version{}
	}
	stages := []pipeline.CompiledStage{{Stage: stage, Kind: &pipeline.StageKind{Name: "cors_answer", CallerDependent: true}}}
	return &pipeline.Version{Response: stages, Refused: stages}
}

// addVersion compiles one version of an API.
func (c *compilation) addVersion(o *object, name string, version *definition.Version) error {
	v := o.nextVersion()
	v.Name, v.Place, v.Definition = name, len(o.Versions), version
	c.version = version
	if err := c.compileVersion(v); err != nil {
		return err
	}
	o.Versions = append(o.Versions, v)
	return nil
}

func (c *compilation) compileVersion(v *pipeline.Version) (err error) {
	if v.Request, err = c.requestList(c.def); err != nil {
		return err
	}
	upstreams, err := c.forward(v)
	if err != nil {
		return err
	}
	if c.limits != nil { // a nil *limit.Stage in the interface would not be nil
		v.Limits = c.limits
	}
	if c.graphql != nil {
		v.GraphQL, v.Forward = c.graphql, c.graphql.Forward(v.Forward)
	}
	if c.persisted != nil {
		v.Forward = c.persisted.Forward(v.Forward)
	}
	v.Cache = c.cacheFor(upstreams)
	if v.Response, err = c.list(answerPhase); err != nil {
		return err
	}
	if v.Refused, err = c.list(refusalPhase); err != nil {
		return err
	}
	if v.Open, err = c.openList(); err != nil {
		return err
	}
	if v.Open != nil {
		v.OpenCache = c.cacheFor(upstreams)
	}
	return nil
}

// forward compiles what answers the calls of a version that all stages let pass: the event
// streams of the API, its data graph or supergraph, or its upstreams.
func (c *compilation) forward(v *pipeline.Version) (*alternates, error) {
	if c.streams != nil {
		v.Upstream, v.Forward = c.streams, c.streams
		return &alternates{}, nil
	}
	if c.graph != nil {
		v.Upstream, v.Forward = c.graph, c.graph
		return &alternates{}, nil
	}
	upstreams, err := c.upstreams()
	if err == nil {
		v.Upstream, v.Forward = upstreams.stage(), upstreams.stage()
	}
	return upstreams, err
}

// cacheFor returns the cache stage of the last request list, after it has learnt
// which internal calls requests make.
func (c *compilation) cacheFor(u *alternates) pipeline.Stage {
	if c.cache == nil {
		return nil
	}
	c.cache.Before(u.refs())
	return c.cache
}

// openList compiles the stages of calls that need no key: those of a keyless API.
// There are none when no path is ignored and preflights are not forwarded.
func (c *compilation) openList() ([]pipeline.CompiledStage, error) {
	if len(c.version.PathRules().Ignored) == 0 && !cors.Passes(c.def) || c.def.UseKeyless {
		return nil, nil
	}
	keyless := *c.def
	keyless.UseKeyless = true
	return c.requestList(&keyless)
}

// requestList compiles the request stages of a definition.
func (c *compilation) requestList(def *definition.API) ([]pipeline.CompiledStage, error) {
	own := c.def
	defer func() { c.def = own }()
	c.def, c.graphql, c.persisted, c.cache, c.limits = def, nil, nil, nil, nil
	stages, err := c.list(requestPhase)
	if err == nil && c.persisted != nil {
		c.persisted.Govern(c.graphql)
	}
	return stages, err
}

// list compiles the stages of one phase that the definition needs.
func (c *compilation) list(in phase) ([]pipeline.CompiledStage, error) {
	c.phase = in
	var buf [len(stageTable)]pipeline.CompiledStage
	stages := buf[:0]
	for i := range stageTable {
		s := &stageTable[i]
		if s.phases&in == 0 {
			continue
		}
		stage, err := s.compile(c)
		if err != nil {
			return nil, err
		}
		if stage != nil {
			stages = append(stages, pipeline.CompiledStage{Stage: stage, Kind: &s.kind})
		}
	}
	return c.keep(stages), nil
}

// keep copies stages to the API's own slots, or to new memory once these are full.
func (c *compilation) keep(stages []pipeline.CompiledStage) []pipeline.CompiledStage {
	from, to := len(c.slots), len(c.slots)+len(stages)
	switch {
	case len(stages) == 0:
		return nil
	case to > cap(c.slots):
		return slices.Clone(stages)
	}
	c.slots = append(c.slots, stages...)
	return c.slots[from:to:to]
}

// upstream compiles the stage that calls the target of a definition.
func (c *compilation) upstream(def *definition.API) (pipeline.Stage, error) {
	if c.Calls == nil {
		return upstream.Compile(def, c.Pools, c.Upstream)
	}
	return c.Calls.Compile(def, c.version)
}

// targeted returns the definition with the target of a version, if that has its
// own.
func targeted(def *definition.API, version *definition.Version) *definition.API {
	if version == nil || version.OverrideTarget == "" {
		return def
	}
	own := *def
	own.Proxy.TargetURL, own.Proxy.EnableLoadBalancing = version.OverrideTarget, false
	return &own
}
