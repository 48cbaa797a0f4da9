package pipeline

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// API is one API definition, compiled. It is immutable once published; a reload
// that does not change the definition keeps the same *API.
type API struct {
	Definition *definition.API
	Entry      []CompiledStage // run first for every call; they may choose the version
	Version    *Version        // of calls that choose none
	Versions   []*Version      // all of them, Version included

	// InternalVersion is the version of calls that the entry passes to another API,
	// because the version that the client chose is an API of its own; nil when the API
	// has no such versions.
	InternalVersion *Version

	Meter Meter // counts the API's traffic; may be nil

	// Fingerprint identifies this compiled API if its responses do not depend on the
	// caller; 0 otherwise. No two compiled APIs have the same one.
	Fingerprint uint64
	Next        *APIRef // the API that calls of an API with a fingerprint go on to; nil: its upstream

	Schema *schema.Schema // that Exchange.Operations refer to; nil unless it is a GraphQL API
}

// Version is one version of an API, compiled. An API without versions has exactly
// one.
type Version struct {
	Name       string              // "" when calls cannot choose
	Place      int                 // index in API.Versions
	Definition *definition.Version // nil when the definition says nothing about it
	Request    []CompiledStage     // in the order of the stage table; a stage with nothing to do is absent
	Open       []CompiledStage     // replaces Request for calls on paths that need no key; nil when there are none
	Forward    Stage               // answers
	Upstream   Stage               // calls the upstream: Forward, or what Forward calls
	Response   []CompiledStage     // run on upstream responses
	Refused    []CompiledStage     // run on error answers

	Limits    Limits // the limits of Request that keys have, or nil
	GraphQL   Stage  // the stage of Request that governs GraphQL operations, or nil
	Cache     Stage  // the stage of Request that caches responses, or nil
	OpenCache Stage  // the stage of Open that caches responses, or nil
}

// A Meter records finished exchanges. Done runs on every request and does not
// allocate.
type Meter interface{ Done(ex *Exchange) }
