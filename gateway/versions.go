package gateway

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/graphql"
	"github.com/sluicegate/sluice/gateway/origin"
	"github.com/sluicegate/sluice/gateway/overload"
	"github.com/sluicegate/sluice/gateway/persisted"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// compiled is an API with its first version and the stages that most have: one
// object, as there may be very many of them.
type compiled struct {
	pipeline.API
	first pipeline.Version
	list  [1]*pipeline.Version // what Versions begins with
	room  [7]pipeline.Stage    // of requests, answers and refusals: as many as fit in what the allocator would round up to
	shed  overload.Stage       // of all versions; without an effect when nothing is shed
}

// next returns where the next version is made.
func (c *compiled) next() *pipeline.Version {
	if len(c.Versions) == 0 {
		return &c.first
	}
	return new(pipeline.Version)
}

// compileVersions makes every version of an API, and the stages that calls pass
// before they have one.
func (s *Stages) compileVersions(api *compiled, def *definition.API) error {
	var err error
	if api.Entry, api.EntryMade, err = s.make(entryStages, def, nil); err != nil {
		return err
	}
	for _, doubt := range def.Doubts() {
		s.log.Warn("definition is served, but hardly as it is meant", "api", def.ID, "path", doubt.Path, "problem", doubt.Message)
	}
	names := def.VersionNames()
	if len(names) == 0 {
		if err := s.addVersion(api, "", def.Unversioned()); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := s.addVersion(api, name, def.VersionData.Versions[name]); err != nil {
			return fmt.Errorf("version %q: %w", name, err)
		}
	}
	api.Version = api.Versions[0]
	for _, v := range api.Versions {
		if v.Name != "" && v.Name == def.VersionData.DefaultVersion {
			api.Version = v
		}
	}
	if operations := graphql.StageOf(api.Version.Request); operations != nil {
		api.Schema = operations.Schema()
	}
	if def.OtherVersions() == nil {
		return nil
	}
	api.Handed, err = handed(def)
	return err
}

// handed makes what is done to the answers to calls that are for versions which
// are other APIs. Browsers are told what they are told of the API that they call;
// everything else is the other API's.
func handed(def *definition.API) (*pipeline.Version, error) {
	stage, err := cors(def, (*origin.CORS).Answer)
	if stage == nil || err != nil {
		return &pipeline.Version{}, err
	}
	stages := []pipeline.Stage{stage}
	return &pipeline.Version{Response: stages, Refused: stages}, nil
}

// addVersion makes one version of an API.
func (s *Stages) addVersion(api *compiled, name string, version *definition.Version) error {
	v := api.next()
	err := s.compileVersion(v, api.Definition, version)
	if err != nil {
		return err
	}
	v.Name, v.Place = name, len(api.Versions)
	if v.Open, v.OpenMade, err = s.open(api.Definition, version); err != nil {
		return err
	}
	keepBefore(v.Open, v.Upstream)
	api.Versions = append(api.Versions, v)
	return nil
}

// open makes the stages of calls that are let in without a key, as they would be
// if the API asked nobody for one. There are none when no path is ignored, nor
// preflights are the upstream's to answer.
func (s *Stages) open(def *definition.API, version *definition.Version) ([]pipeline.Stage, pipeline.Made, error) {
	said, err := version.PathRules()
	if err != nil || len(said.Ignored) == 0 && !origin.Passes(def) || def.UseKeyless {
		return nil, 0, err
	}
	keyless := *def
	keyless.UseKeyless = true
	stages, made, err := s.make(requestStages, &keyless, version)
	if stored := persisted.StageOf(stages); stored != nil {
		stored.Govern(graphql.StageOf(stages))
	}
	return stages, made, err
}

// targeted returns the definition with the target of a version in place of its
// own, if that has one.
func targeted(def *definition.API, version *definition.Version) *definition.API {
	if version == nil || version.OverrideTarget == "" {
		return def
	}
	own := *def
	own.Proxy.TargetURL, own.Proxy.EnableLoadBalancing = version.OverrideTarget, false
	return &own
}
