package definition

import (
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A feature is something that a definition can set and that this release does not
// have. Such a definition is refused, so that it is never served without the feature.
// Adding a feature includes deleting its row here.
type feature[T any] struct {
	path string // of the member that asks, below the object
	name string
	asks func(T) bool
}

// missing lists the features of API definitions that do not exist.
var missing = []feature[*API]{
	{"auth_configs.basic", "basic authentication elsewhere than in a header", func(a *API) bool {
		place := a.Place("basic")
		return a.UseBasicAuth && (place.DisableHeader || place.UseParam || place.UseCookie)
	}},
	{"cache_options.enable_cache", "response cache of GraphQL APIs", func(a *API) bool { return a.IsGraphQL() && a.CacheOptions.On() }},
	{"enable_signature_checking", "HMAC request signatures", func(a *API) bool { return a.SignatureChecking }},
	{"graphql.execution_mode", "GraphQL data graphs", func(a *API) bool { return a.hasMode("executionEngine") }},
	{"graphql.execution_mode", "GraphQL subgraphs", func(a *API) bool { return a.hasMode("subgraph") }},
	{"graphql.execution_mode", "GraphQL supergraphs", func(a *API) bool { return a.hasMode("supergraph") }},
	{"graphql.playground.enabled", "GraphQL playground", func(a *API) bool { return a.IsGraphQL() && isOn(a.GraphQL.Playground, "enabled") }},
	{"x-svc-streaming.streams", "event streams", func(a *API) bool { return says(part(a.Streaming, "streams")) }},
}

// missingTokens lists the features of token places that do not exist. They do
// not matter to an API without authentication.
var missingTokens = []feature[*Auth]{
	{"validate_signature", "request signatures", func(a *Auth) bool { return a.ValidateSignature }},
}

// hasMode reports whether the API serves GraphQL in an execution mode.
func (a *API) hasMode(mode string) bool { return a.IsGraphQL() && a.GraphQL.ExecutionMode == mode }

// checkFeatures refuses every feature of a that does not exist.
func (p *Problems) checkFeatures(a *API) {
	refuse(p, "", missing, a)
	if path := a.tokenPath(); path != "" && !a.UseKeyless {
		refuse(p, path, missingTokens, a.Token())
	}
	if a.VersionData == nil {
		return
	}
	for _, name := range object.SortedKeys(a.VersionData.Versions) {
		v, at := a.VersionData.Versions[name], object.Entry("version_data.versions", name)
		if v == nil {
			continue
		}
		if v.ExtendedPaths == nil {
			continue
		}
		for _, list := range v.ExtendedPaths.unsupported() {
			p.refuse(object.Member(at+".extended_paths", list), "path rules ("+list+")")
		}
	}
}

// tokenPath is where the settings that Token returns stand, "" when nowhere.
func (a *API) tokenPath() string {
	switch {
	case a.AuthConfigs["authToken"] != nil:
		return object.Entry("auth_configs", "authToken")
	case a.Auth != nil:
		return "auth"
	}
	return ""
}

// asksFor reports whether a list of path rules holds one that is not disabled.
func asksFor(list json.RawMessage) bool {
	rules := elements(list)
	for _, rule := range rules {
		if !isOn(rule, "disabled") {
			return true
		}
	}
	return len(rules) == 0 && says(list)
}

func refuse[T any](p *Problems, path string, features []feature[T], of T) {
	for _, f := range features {
		if f.asks(of) {
			p.refuse(object.Member(path, f.path), f.name)
		}
	}
}

// refuse adds the problem that a feature is used at path.
func (p *Problems) refuse(path, feature string) {
	p.add(Problem{Path: path, Feature: feature, Message: "asks for a feature that this release does not have: " + feature + "; leave it out or turn it off"})
}
