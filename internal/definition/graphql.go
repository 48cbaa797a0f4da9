package definition

import (
	"encoding/json"
	"regexp"
	"strings"
)

// ModeProxy is the execution mode of an API that stands before one GraphQL
// upstream: what clients ask is checked and goes up as it is.
const ModeProxy = "proxyOnly"

// ModeSubgraph is ModeProxy for an API that supergraphs use; by default it is internal.
// ModeSupergraph is that of an API that is composed of subgraphs.
const (
	ModeSubgraph   = "subgraph"
	ModeSupergraph = "supergraph"
)

// GraphQL is the part of an API definition that makes it a GraphQL API.
type GraphQL struct {
	// Whether calls of the API are GraphQL operations.
	Enabled bool `json:"enabled,omitempty"`
	// proxyOnly: operations are checked and go to the upstream. executionEngine: they are checked and answered with what the data sources of engine have. subgraph: like proxyOnly, for an API that supergraphs use; it is internal unless internal is false. supergraph: operations are checked and answered with what the subgraphs of supergraph have. No other mode is supported.
	// Example: "proxyOnly"
	ExecutionMode string `json:"execution_mode,omitempty" oneof:"proxyOnly executionEngine subgraph supergraph"`
	// Version of the engine of comparable gateways, without effect.
	// Example: "2"
	Version string `json:"version,omitempty"`
	// Schema that operations are checked against, in SDL. Filled in from the upstream if empty; from subgraph.sdl in the mode subgraph if that is set; composed in the mode supergraph.
	// Example: "type Query { orders: [ID] }"
	Schema string `json:"schema,omitempty"`
	// Time of the last change of the schema (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	LastSchemaUpdate string `json:"last_schema_update,omitempty"`

	// Data sources of fields. Not supported: without effect.
	// Example: []
	TypeFieldConfigurations json.RawMessage `json:"type_field_configurations,omitempty"`
	// Page for trying operations, served below the listen path if enabled is true: path begins with a slash. Default: /playground. Callers need the credential of the API to open it.
	// Example: {"enabled": true, "path": "/playground"}
	Playground json.RawMessage `json:"playground,omitempty" members:"enabled,path"`
	// Data sources of a data graph (execution_mode executionEngine).
	// Example: {"data_sources": [{"kind": "REST", "name": "orders", "root_fields": [{"type": "Query", "fields": ["orders"]}], "config": {"url": "http://orders.internal/ids"}}]}
	Engine *GraphQLEngine `json:"engine,omitempty"`
	// How operations go to the upstream.
	// Example: {"request_headers": {"X-Source": "gateway"}}
	Proxy *GraphQLProxy `json:"proxy,omitempty"`
	// What the API is for supergraphs; in use in the mode subgraph only.
	// Example: {"sdl": "type Query { orders: [ID] }"}
	Subgraph *GraphQLSubgraph `json:"subgraph,omitempty"`
	// What the API is composed of; in use in the mode supergraph only.
	// Example: {"subgraphs": [{"name": "orders", "url": "http://orders.internal/graphql", "sdl": "type Query { orders: [ID] }"}]}
	Supergraph *GraphQLSupergraph `json:"supergraph,omitempty"`
	// Whether the schema may be read by operations.
	// Example: {"disabled": true}
	Introspection *GraphQLIntrospection `json:"introspection,omitempty"`

	// Depth that is added for the operation itself: 0 or 1. Default: the gateway's setting graphql.depth_base, which is 1 by default.
	// Example: 0
	DepthBase *int `json:"depth_base,omitempty" oneof:"0 1"`
	// Operations in one batched call, 0 to 100. Default: 0, batches are refused.
	// Example: 10
	BatchMax int `json:"batch_max,omitempty"`
	// Whether invalid operations are answered with 200 if the client takes application/json only.
	LegacyJSON200 bool `json:"legacy_json_200,omitempty"`
	// Whether errors name what the client may have meant.
	Suggestions bool `json:"suggestions,omitempty"`

	// Limits on operations of all clients.
	// Example: {"max_depth": 8}
	Limits *GraphQLLimits `json:"limits,omitempty"`
	// How the cost of operations is computed.
	// Example: {"list_size": 50}
	Cost *GraphQLCost `json:"cost,omitempty"`
	// Operations that clients name by their hash.
	// Example: {"register": true}
	TrustedDocuments *GraphQLTrustedDocuments `json:"trusted_documents,omitempty"`
	// When the schema is fetched from the upstream.
	// Example: {"interval": 3600}
	SchemaSync *GraphQLSchemaSync `json:"schema_sync,omitempty"`
	Unknown    Unknown            `json:"-"`
}

// GraphQLProxy says how the upstream is spoken to. The values of RequestHeaders
// and RequestHeadersRewrite may hold context variables.
type GraphQLProxy struct {
	// Headers of the introspection by the admin, at most 1000; never sent with calls.
	// Example: {"Authorization": "{env:SCHEMA_TOKEN}"}
	AuthHeaders map[string]string `json:"auth_headers,omitempty"`
	// Headers that are added to calls, at most 1000; values may hold $svc_context and $svc_meta variables.
	// Example: {"X-Client": "$svc_meta.client"}
	RequestHeaders map[string]string `json:"request_headers,omitempty"`
	// Rules for the client's headers, by header; in use with features.use_immutable_headers only.
	// Example: {"X-Debug": {"value": "off", "remove": false}}
	RequestHeadersRewrite map[string]*GraphQLHeaderRewrite `json:"request_headers_rewrite,omitempty"`
	// Protocol of subscriptions: graphql-ws (default), graphql-transport-ws or sse.
	// Example: "graphql-transport-ws"
	SubscriptionType string `json:"subscription_type,omitempty" oneof:"graphql-ws graphql-transport-ws sse"`
	// Whether subscriptions by sse are sent with POST.
	SSEUsePost bool `json:"sse_use_post,omitempty"`
	// How subscriptions go to the upstream.
	// Example: {"share": true, "reconnect": 5}
	Subscriptions *GraphQLSubscriptions `json:"subscriptions,omitempty"`
	// Switches of proxied calls.
	// Example: {"use_immutable_headers": true}
	Features *GraphQLProxyFeatures `json:"features,omitempty"`
	// What is added to errors.
	// Example: {"on_error_forwarding": true}
	UseResponseExtensions *GraphQLResponseExtensions `json:"use_response_extensions,omitempty"`
	Unknown               Unknown                    `json:"-"`
}

// GraphQLHeaderRewrite sets a header of the client to Value, or, with Remove,
// takes it away unless it has that value.
type GraphQLHeaderRewrite struct {
	// Value that the header is set to, or with remove the value that it must have to stay.
	// Example: "off"
	Value string `json:"value"`
	// Whether the header is removed unless it has the value.
	Remove  bool    `json:"remove"`
	Unknown Unknown `json:"-"`
}

// GraphQLSubscriptions says how subscriptions go to an upstream. Those of clients whose
// handshakes have the same headers share a connection to an upstream that speaks WebSocket.
type GraphQLSubscriptions struct {
	// Whether clients with the same operation, variables and forwarded headers share one subscription at the upstream; where that streams by sse, clients with GraphQL connections only. Each client gets the events from when it joined.
	Share bool `json:"share,omitempty"`
	// How often a subscription that an upstream has lost is begun again, 0 to 20, after 1, 2, 4 and at most 30 seconds. Events in between are lost. One that an upstream ends with 4401 or 4403 is not begun again. Default: 0, the client gets an error.
	// Example: 5
	Reconnect int `json:"reconnect,omitempty"`
	// Headers of the client that handshakes with the upstream have, at most 1000. Default: all. Fewer let more clients share a connection.
	// Example: ["Authorization"]
	ForwardHeaders []string `json:"forward_headers,omitempty"`
	// Whether each event counts as a call under the rate and the quota that the key has when the subscription begins.
	CountEvents bool `json:"count_events,omitempty"`
	// What happens to an event over a limit: drop, delay (until the rate allows it; over the quota the subscription ends) or end (the subscription ends with an error). Default: end.
	// Example: "drop"
	AtLimit string  `json:"at_limit,omitempty" oneof:"drop delay end"`
	Unknown Unknown `json:"-"`
}

// GraphQLProxyFeatures are switches of the way to the upstream.
type GraphQLProxyFeatures struct {
	// Whether the client's value stays of a header that request_headers has as well.
	UseImmutableHeaders bool    `json:"use_immutable_headers,omitempty"`
	Unknown             Unknown `json:"-"`
}

// GraphQLResponseExtensions says what is added to errors.
type GraphQLResponseExtensions struct {
	// Whether the upstream's error is added to the extensions of errors.
	OnErrorForwarding bool    `json:"on_error_forwarding,omitempty"`
	Unknown           Unknown `json:"-"`
}

// GraphQLIntrospection rules __schema and __type for all keys. An API without
// keys can always be introspected.
type GraphQLIntrospection struct {
	// Whether __schema and __type are refused. Without effect on an API without keys.
	Disabled bool    `json:"disabled,omitempty"`
	Unknown  Unknown `json:"-"`
}

// GraphQLLimits bound the operations of all callers of the API. Zero is the
// gateway's own limit, which a larger number does not raise.
type GraphQLLimits struct {
	// Tokens of the document without comments. Default: the gateway's limit, which a larger number does not raise; so for all limits.
	// Example: 5000
	MaxTokens int `json:"max_tokens,omitempty"`
	// Levels that the operation nests, as max_query_depth counts them.
	// Example: 8
	MaxDepth int `json:"max_depth,omitempty"`
	// Aliases in the operation; fragments count where they are spread.
	// Example: 20
	MaxAliases int `json:"max_aliases,omitempty"`
	// Fields of the outermost selection set.
	// Example: 10
	MaxRootFields int `json:"max_root_fields,omitempty"`
	// Directives in the operation; fragments count where they are spread.
	// Example: 20
	MaxDirectives int `json:"max_directives,omitempty"`
	// Fields of the operation, times the sizes of the lists that they are in.
	// Example: 10000
	MaxCost int64   `json:"max_cost,omitempty"`
	Unknown Unknown `json:"-"`
}

// GraphQLCost says how long lists are taken to be when an operation's cost is
// worked out.
type GraphQLCost struct {
	// Length of lists without a size argument, at most 1000000. Default: the gateway's.
	// Example: 50
	ListSize int `json:"list_size,omitempty"`
	// Names of arguments that give the length of a list, at most 100. Default: the gateway's.
	// Example: ["first", "last"]
	SizeArguments []string `json:"size_arguments,omitempty"`
	Unknown       Unknown  `json:"-"`
}

// GraphQLTrustedDocuments are operations that clients may name by their hash.
type GraphQLTrustedDocuments struct {
	// Whether no other operations can be run.
	Required bool `json:"required,omitempty"`
	// Whether clients may add operations, as automatic persisted queries do.
	Register bool `json:"register,omitempty"`
	// Operations by the SHA-256 of their text in lower-case hexadecimal, at most 100,000.
	// Example: {"09e5efea02c7bdfae5e8971ec12202e07e2f6540ee38a612ac63808be5b69fc0": "{ orders }"}
	Documents map[string]string `json:"documents,omitempty"`
	Unknown   Unknown           `json:"-"`
}

// GraphQLSchemaSync says when the admin fetches the schema anew.
type GraphQLSchemaSync struct {
	// Seconds between two fetches, at least 10. Default: 0, on demand.
	// Example: 3600
	Interval int64   `json:"interval,omitempty"`
	Unknown  Unknown `json:"-"`
}

// IsGraphQL reports whether calls of the API are GraphQL operations.
func (a *API) IsGraphQL() bool { return a.GraphQL != nil && a.GraphQL.Enabled }

// LacksSchema reports whether a GraphQL API has no schema.
func (a *API) LacksSchema() bool { return a.IsGraphQL() && strings.TrimSpace(a.GraphQL.Schema) == "" }

// Base returns what is added to the levels of an operation to give its depth: 0
// or 1, which is the default of gateways.
func (g *GraphQL) Base() int {
	if g.DepthBase == nil {
		return 1
	}
	return *g.DepthBase
}

// HidesSchema reports whether introspection is off for all keys.
func (g *GraphQL) HidesSchema() bool { return g.Introspection != nil && g.Introspection.Disabled }

// DefaultPlayground is the path of a playground below the listen path by default.
const DefaultPlayground = "/playground"

// playgroundPath matches the paths that a playground may have.
var playgroundPath = regexp.MustCompile(`^(/[A-Za-z0-9_-]+){1,16}$`)

// PlaygroundPath returns the path of the API's playground below the listen path; "" if it
// has none. A slash at the beginning is added, as older definitions have none.
func (g *GraphQL) PlaygroundPath() string {
	if !isOn(g.Playground, "enabled") {
		return ""
	}
	var path string
	given := part(g.Playground, "path")
	if says(given) && json.Unmarshal(given, &path) != nil {
		return string(given) // no path, which is reported
	}
	if path = strings.TrimRight(path, "/"); path == "" {
		return DefaultPlayground
	}
	return "/" + strings.TrimLeft(path, "/")
}
