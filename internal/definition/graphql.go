package definition

import (
	"encoding/json"
	"strings"
)

// ModeProxy is the execution mode of an API that stands before one GraphQL
// upstream: what clients ask is checked and goes up as it is.
const ModeProxy = "proxyOnly"

// GraphQL is the part of an API definition that makes it a GraphQL API.
type GraphQL struct {
	Enabled          bool   `json:"enabled,omitempty"`
	ExecutionMode    string `json:"execution_mode,omitempty"`     // ModeProxy
	Version          string `json:"version,omitempty"`            // of the engine elsewhere, without effect here
	Schema           string `json:"schema,omitempty"`             // what operations are held against, in SDL
	LastSchemaUpdate string `json:"last_schema_update,omitempty"` // RFC 3339; set by the admin

	TypeFieldConfigurations json.RawMessage       `json:"type_field_configurations,omitempty"`
	Playground              json.RawMessage       `json:"playground,omitempty"`
	Engine                  json.RawMessage       `json:"engine,omitempty"`
	Proxy                   *GraphQLProxy         `json:"proxy,omitempty"`
	Subgraph                json.RawMessage       `json:"subgraph,omitempty"`
	Supergraph              json.RawMessage       `json:"supergraph,omitempty"`
	Introspection           *GraphQLIntrospection `json:"introspection,omitempty"`

	DepthBase     *int `json:"depth_base,omitempty"`      // what { a } has beside its one level: 0, or 1, the default
	BatchMax      int  `json:"batch_max,omitempty"`       // operations in one batched call, at most 100; 0: batches are refused
	LegacyJSON200 bool `json:"legacy_json_200,omitempty"` // true: invalid operations are answered with 200 where the client takes plain JSON only
	Suggestions   bool `json:"suggestions,omitempty"`     // true: errors name what the client may have meant

	Limits           *GraphQLLimits           `json:"limits,omitempty"`
	Cost             *GraphQLCost             `json:"cost,omitempty"`
	TrustedDocuments *GraphQLTrustedDocuments `json:"trusted_documents,omitempty"`
	SchemaSync       *GraphQLSchemaSync       `json:"schema_sync,omitempty"`
	Unknown          Unknown                  `json:"-"`
}

// GraphQLProxy says how the upstream is spoken to. The values of RequestHeaders
// and RequestHeadersRewrite may hold context variables.
type GraphQLProxy struct {
	AuthHeaders           map[string]string                `json:"auth_headers,omitempty"`            // of the admin's introspection, and of nothing else
	RequestHeaders        map[string]string                `json:"request_headers,omitempty"`         // added to what is proxied
	RequestHeadersRewrite map[string]*GraphQLHeaderRewrite `json:"request_headers_rewrite,omitempty"` // by header; with immutable headers only
	SubscriptionType      string                           `json:"subscription_type,omitempty"`       // graphql-ws (default), graphql-transport-ws or sse
	SSEUsePost            bool                             `json:"sse_use_post,omitempty"`
	Features              *GraphQLProxyFeatures            `json:"features,omitempty"`
	UseResponseExtensions *GraphQLResponseExtensions       `json:"use_response_extensions,omitempty"`
	Unknown               Unknown                          `json:"-"`
}

// GraphQLHeaderRewrite sets a header of the client to Value, or, with Remove,
// takes it away unless it has that value.
type GraphQLHeaderRewrite struct {
	Value   string  `json:"value"`
	Remove  bool    `json:"remove"`
	Unknown Unknown `json:"-"`
}

// GraphQLProxyFeatures are switches of the way to the upstream.
type GraphQLProxyFeatures struct {
	UseImmutableHeaders bool    `json:"use_immutable_headers,omitempty"` // true: of a header that both have, the client's value stays
	Unknown             Unknown `json:"-"`
}

// GraphQLResponseExtensions says what is added to errors.
type GraphQLResponseExtensions struct {
	OnErrorForwarding bool    `json:"on_error_forwarding,omitempty"`
	Unknown           Unknown `json:"-"`
}

// GraphQLIntrospection rules __schema and __type for all keys. An API without
// keys can always be introspected.
type GraphQLIntrospection struct {
	Disabled bool    `json:"disabled,omitempty"`
	Unknown  Unknown `json:"-"`
}

// GraphQLLimits bound the operations of all callers of the API. Zero is the
// gateway's own limit, which a larger number does not raise.
type GraphQLLimits struct {
	MaxTokens     int     `json:"max_tokens,omitempty"`      // of the document, comments not counted
	MaxDepth      int     `json:"max_depth,omitempty"`       // as max_query_depth counts it, whatever keys and fields are allowed
	MaxAliases    int     `json:"max_aliases,omitempty"`     // of the operation, fragments counted where they are spread
	MaxRootFields int     `json:"max_root_fields,omitempty"` // fields of the outermost selection set
	MaxDirectives int     `json:"max_directives,omitempty"`  // uses, fragments counted where they are spread
	MaxCost       int64   `json:"max_cost,omitempty"`        // fields, times the sizes of the lists that they are in
	Unknown       Unknown `json:"-"`
}

// GraphQLCost says how long lists are taken to be when an operation's cost is
// worked out.
type GraphQLCost struct {
	ListSize      int      `json:"list_size,omitempty"`      // without an argument that says; 0: the gateway's default
	SizeArguments []string `json:"size_arguments,omitempty"` // names of such arguments, absent: the gateway's default
	Unknown       Unknown  `json:"-"`
}

// GraphQLTrustedDocuments are operations that clients may name by their hash.
type GraphQLTrustedDocuments struct {
	Required  bool              `json:"required,omitempty"`  // true: only these can be run, by any key
	Register  bool              `json:"register,omitempty"`  // true: clients may add theirs, as automatic persisted queries do
	Documents map[string]string `json:"documents,omitempty"` // by SHA-256 of the text, in lower-case hexadecimal
	Unknown   Unknown           `json:"-"`
}

// GraphQLSchemaSync says when the admin fetches the schema anew.
type GraphQLSchemaSync struct {
	Interval int64   `json:"interval,omitempty"` // seconds; 0: when asked to
	Unknown  Unknown `json:"-"`
}

// IsGraphQL tells whether calls of the API are GraphQL operations.
func (a *API) IsGraphQL() bool { return a.GraphQL != nil && a.GraphQL.Enabled }

// LacksSchema tells whether a GraphQL API has nothing to hold operations against.
func (a *API) LacksSchema() bool { return a.IsGraphQL() && strings.TrimSpace(a.GraphQL.Schema) == "" }

// Base returns what is added to the levels of an operation to give its depth: 0
// or 1.
func (g *GraphQL) Base() int {
	if g.DepthBase == nil {
		return 1
	}
	return *g.DepthBase
}

// HidesSchema tells whether introspection is off for all keys.
func (g *GraphQL) HidesSchema() bool { return g.Introspection != nil && g.Introspection.Disabled }
