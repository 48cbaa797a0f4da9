package snapshot

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/clientcert"
	"github.com/sluicegate/sluice/gateway/stage/cors"
	"github.com/sluicegate/sluice/gateway/stage/ipfilter"
	"github.com/sluicegate/sluice/gateway/stage/persisted"
	"github.com/sluicegate/sluice/gateway/stage/playground"
	"github.com/sluicegate/sluice/gateway/stage/transform"
	"github.com/sluicegate/sluice/gateway/stage/version"
	"github.com/sluicegate/sluice/internal/definition"
)

// A stageSpec is an entry of the stage table. compile returns the stage for the API
// and version that are compiled, or nil when the definition does not ask for it.
type stageSpec struct {
	phases  phase
	kind    pipeline.StageKind
	compile func(*compilation) (pipeline.Stage, error)
}

// A phase is one of the stage lists of a compiled API, or several of them.
type phase uint8

const (
	entryPhase   phase = 1 << iota // before the version is known: API.Entry
	requestPhase                   // Version.Request and Version.Open
	answerPhase                    // on upstream responses: Version.Response
	refusalPhase                   // on error answers: Version.Refused
)

// What a stage has to do with access rights.
type rights bool

const (
	checksRights rights = true // it decides who may call what: open tunnels are checked again
	noRights     rights = false
)

// What the effect of a stage may depend on.
type dependence bool

const (
	perCaller  dependence = true  // on the caller, or on anything that no cache key holds
	sameForAll dependence = false // on the method and the URL alone: responses may be cached in front of the API
)

// spec returns an entry of the table. Rights and dependence have no default: a
// stage that does not declare them does not compile.
func spec(in phase, name string, r rights, d dependence, compile func(*compilation) (pipeline.Stage, error)) stageSpec {
	return stageSpec{in, pipeline.StageKind{Name: name, Rights: bool(r), CallerDependent: bool(d)}, compile}
}

// onOperations marks a stage that decides on GraphQL operations.
func onOperations(s stageSpec) stageSpec {
	s.kind.Operations = true
	return s
}

// counting marks a stage that counts requests, or puts them off.
func counting(s stageSpec) stageSpec {
	s.kind.Counts = true
	return s
}

// stageTable lists all stages in the order in which a call meets them. The order of
// entry and request stages decides which error a client sees when several apply.
var stageTable = [...]stageSpec{
	// Before the version: browsers do not send the header that names the version with a
	// preflight, and the rules of a version are about the call that follows.
	spec(entryPhase, "cors", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return crossOrigin(c.def, (*cors.Rules).Preflight), nil
	}),
	spec(entryPhase, "version", checksRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return version.Compile(c.def, c.Versions)
	}),
	spec(entryPhase, "ip", checksRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return ipfilter.Compile(c.def), nil
	}),
	spec(entryPhase, "certificate", checksRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return clientcert.Compile(c.def, c.Certificates)
	}),
	// It counts, and so does not check rights: a tunnel's call was counted when it came.
	counting(spec(entryPhase, "org", noRights, sameForAll, func(c *compilation) (pipeline.Stage, error) {
		return c.Orgs.Compile(c.def), nil
	})),

	spec(requestPhase, "size", noRights, sameForAll, func(c *compilation) (pipeline.Stage, error) {
		return version.Sizes(c.version, c.Versions)
	}),
	spec(requestPhase, "auth", checksRights, perCaller, (*compilation).auth),
	counting(spec(requestPhase, "overload", noRights, sameForAll, func(c *compilation) (pipeline.Stage, error) {
		return c.shed, nil
	})),
	spec(requestPhase, "access", checksRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return c.Access.Compile(c.def), nil
	}),
	// Behind the checks of the caller: the page is for those who may call the API.
	spec(requestPhase, "playground", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return playground.Compile(c.def), nil
	}),
	spec(requestPhase, "persisted", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		c.persisted = persisted.New(c.def, c.version, c.log)
		return stageOrNil(c.persisted, nil)
	}),
	onOperations(spec(requestPhase, "graphql", noRights, perCaller, func(c *compilation) (s pipeline.Stage, err error) {
		c.graphql, err = c.GraphQL.Compile(c.def)
		return stageOrNil(c.graphql, err)
	})),
	// Before the limits: a refused tunnel does not count against them.
	spec(requestPhase, "tunnels", noRights, sameForAll, func(c *compilation) (pipeline.Stage, error) {
		return c.Tunnels.Compile(c.def), nil
	}),
	counting(spec(requestPhase, "limit", noRights, perCaller, func(c *compilation) (s pipeline.Stage, err error) {
		c.limits, err = c.Limit.Compile(c.def, c.version)
		return stageOrNil(c.limits, err)
	})),
	counting(spec(requestPhase, "apilimit", noRights, sameForAll, func(c *compilation) (pipeline.Stage, error) {
		return c.Limit.CompileShared(c.def, c.version)
	})),
	spec(requestPhase, "mock", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return version.Mocks(c.version, c.Versions)
	}),
	spec(requestPhase, "transform", noRights, sameForAll, func(c *compilation) (pipeline.Stage, error) {
		return transform.CompileRequest(c.def, c.version)
	}),
	spec(requestPhase, "rewrite", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return transform.CompileRewrite(c.def, c.version)
	}),
	spec(requestPhase, "cache", noRights, perCaller, func(c *compilation) (s pipeline.Stage, err error) {
		if c.Cache != nil {
			c.cache, err = c.Cache.Compile(c.def, c.version)
		}
		return stageOrNil(c.cache, err)
	}),

	spec(answerPhase, "cache_answer", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		if c.Cache == nil {
			return nil, nil
		}
		return c.Cache.CompileFill(c.def), nil
	}),
	spec(answerPhase|refusalPhase, "expiry_answer", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return version.End(c.version), nil
	}),
	spec(answerPhase, "transform_answer", noRights, sameForAll, func(c *compilation) (pipeline.Stage, error) {
		return transform.CompileResponse(c.def, c.version)
	}),
	spec(answerPhase|refusalPhase, "cors_answer", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		return crossOrigin(c.def, (*cors.Rules).Answer), nil
	}),
	spec(answerPhase|refusalPhase, "quota_answer", noRights, perCaller, func(c *compilation) (pipeline.Stage, error) {
		switch {
		case c.Headers == nil || c.def.UseKeyless:
			return nil, nil
		case c.phase == refusalPhase:
			return c.Headers.Refusal(), nil
		}
		return c.Headers.Answer(), nil
	}),
}

// StageKinds returns the kinds of all stages, in the order of the stage table.
func StageKinds() []*pipeline.StageKind {
	kinds := make([]*pipeline.StageKind, len(stageTable))
	for i := range stageTable {
		kinds[i] = &stageTable[i].kind
	}
	return kinds
}

// stageOrNil returns a stage as an interface that is nil when the pointer is.
func stageOrNil[S interface {
	comparable
	pipeline.Stage
}](s S, err error) (pipeline.Stage, error) {
	var none S
	if s == none || err != nil {
		return nil, err
	}
	return s, nil
}

// crossOrigin compiles one of the CORS stages, or nil.
func crossOrigin(def *definition.API, stage func(*cors.Rules) pipeline.Stage) pipeline.Stage {
	if c := cors.Compile(def); c != nil {
		return stage(c)
	}
	return nil
}
