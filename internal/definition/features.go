package definition

import (
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/paths"
	"github.com/sluicegate/sluice/internal/definition/rates"
)

// A feature is something that a definition can ask for and that this release
// does not have. Such a definition is refused, so that nothing is ever served
// as if it had what it lacks; deleting a row here is part of adding a feature.
type feature[T any] struct {
	path string // of the member that asks, below the object
	name string
	asks func(T) bool
}

// missing lists what an API definition can ask for in vain.
var missing = []feature[*API]{
	{"auth_configs.basic", "basic authentication elsewhere than in a header", func(a *API) bool {
		place := a.Place("basic")
		return a.UseBasicAuth && (place.DisableHeader || place.UseParam || place.UseCookie)
	}},
	{"enable_signature_checking", "HMAC request signatures", func(a *API) bool { return a.SignatureChecking }},
	{"graphql.execution_mode", "GraphQL data graphs", func(a *API) bool { return a.hasMode("executionEngine") }},
	{"graphql.execution_mode", "GraphQL subgraphs", func(a *API) bool { return a.hasMode("subgraph") }},
	{"graphql.execution_mode", "GraphQL supergraphs", func(a *API) bool { return a.hasMode("supergraph") }},
	{"graphql.playground.enabled", "GraphQL playground", func(a *API) bool { return a.IsGraphQL() && isOn(a.GraphQL.Playground, "enabled") }},
	{"x-svc-streaming.streams", "event streams", func(a *API) bool { return says(part(a.Streaming, "streams")) }},
}

// missingTokens lists what the place of a token can ask for in vain. An API
// without authentication asks for none of it.
var missingTokens = []feature[*Auth]{
	{"validate_signature", "request signatures", func(a *Auth) bool { return a.ValidateSignature }},
}

// pathLists are the lists of extended_paths that this release knows.
var pathLists = map[string]bool{
	paths.IgnoredList: true, paths.BlackList: true, paths.WhiteList: true, paths.MockList: true, paths.SizeList: true,

	persistedList:      true,
	rates.List:         true,
	"circuit_breakers": true, "hard_timeouts": true, "cache": true, "advance_cache_config": true,

	"transform_headers": true, "transform_response_headers": true, "url_rewrites": true,
}

// hasMode tells whether the API serves GraphQL in an execution mode.
func (a *API) hasMode(mode string) bool { return a.IsGraphQL() && a.GraphQL.ExecutionMode == mode }

// checkFeatures refuses every feature that a asks for and that does not exist.
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
		lists := parts(v.ExtendedPaths)
		for _, list := range object.SortedKeys(lists) {
			if !pathLists[list] && asksFor(lists[list]) {
				p.refuse(object.Member(at+".extended_paths", list), "path rules ("+list+")")
			}
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

// asksFor tells whether a list of path rules holds one that is not disabled.
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

// refuse notes that a feature is asked for at path.
func (p *Problems) refuse(path, feature string) {
	p.add(Problem{Path: path, Feature: feature, Message: "asks for a feature that this release does not have: " + feature + "; leave it out or turn it off"})
}
