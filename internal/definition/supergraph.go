package definition

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// GraphQLSubgraph is what an API is for supergraphs.
type GraphQLSubgraph struct {
	// Schema with the directives of federation, in SDL, as the field _service.sdl of the upstream returns it; filled in from there when the schema is fetched. Supergraphs that name the API take it over when they are saved.
	// Example: "type Query { orders: [ID] }"
	SDL     string  `json:"sdl,omitempty"`
	Unknown Unknown `json:"-"`
}

// GraphQLSupergraph is what a supergraph is composed of.
type GraphQLSupergraph struct {
	// Time of the last composition that changed merged_sdl (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	UpdatedAt string `json:"updated_at,omitempty"`
	// Services that the graph is composed of, 1 to 1000.
	// Example: [{"name": "orders", "url": "http://orders.internal/graphql", "sdl": "type Query { orders: [ID] }"}]
	Subgraphs []GraphQLMember `json:"subgraphs,omitempty"`
	// Schema of clients in SDL; filled in when the API is saved.
	// Example: "type Query { orders: [ID] }"
	MergedSDL string `json:"merged_sdl,omitempty"`
	// Headers of all requests to subgraphs, at most 1000. Those of a subgraph come before them.
	// Example: {"X-Source": "gateway"}
	GlobalHeaders map[string]string `json:"global_headers,omitempty"`
	// Whether entities are fetched from subgraphs one by one.
	DisableQueryBatching bool    `json:"disable_query_batching,omitempty"`
	Unknown              Unknown `json:"-"`
}

// GraphQLMember is a subgraph of a supergraph.
type GraphQLMember struct {
	// API of the same organisation that is the subgraph. Default: none, the subgraph is at url.
	// Example: "orders"
	APIID string `json:"api_id,omitempty"`
	// Name in the composition, unique in the supergraph.
	// Example: "orders"
	Name string `json:"name,omitempty"`
	// Address of the subgraph, or svc:// and an API. Default: svc:// and api_id.
	// Example: "http://orders.internal/graphql"
	URL string `json:"url,omitempty"`
	// Schema with the directives of federation, in SDL. Filled in from the API of api_id if empty.
	// Example: "type Query { orders: [ID] }"
	SDL string `json:"sdl,omitempty"`
	// Headers of requests to the subgraph, at most 1000.
	// Example: {"X-Source": "gateway"}
	Headers map[string]string `json:"headers,omitempty"`
	// Protocol of subscriptions: graphql-ws (default), graphql-transport-ws or sse. An API behind svc:// streams them itself.
	// Example: "sse"
	SubscriptionType string `json:"subscription_type,omitempty" oneof:"graphql-ws graphql-transport-ws sse"`
	// Whether subscriptions by sse are sent with POST.
	SSEUsePost bool    `json:"sse_use_post,omitempty"`
	Unknown    Unknown `json:"-"`
}

const (
	maxSubgraphs    = 1000
	maxSubgraphName = 256 // bytes
)

// IsSubgraph reports whether the API is there for supergraphs.
func (a *API) IsSubgraph() bool { return a.hasMode(ModeSubgraph) }

// IsSupergraph reports whether the API is composed of subgraphs.
func (a *API) IsSupergraph() bool { return a.hasMode(ModeSupergraph) }

// HasUpstreamSchema reports whether the schema of the API is that of its upstream, from
// which it can be fetched.
func (a *API) HasUpstreamSchema() bool { return a.hasMode(ModeProxy) || a.IsSubgraph() }

// SubgraphSDL returns the schema for federation that is set; "" if there is none.
func (g *GraphQL) SubgraphSDL() string {
	if g.Subgraph == nil {
		return ""
	}
	return strings.TrimSpace(g.Subgraph.SDL)
}

// FederatedSchema returns the schema in SDL that the API has for supergraphs; "" if it
// cannot be part of one.
func (a *API) FederatedSchema() string {
	switch {
	case !a.IsGraphQL() || a.IsSupergraph():
		return ""
	case a.GraphQL.SubgraphSDL() != "":
		return a.GraphQL.SubgraphSDL()
	}
	return a.GraphQL.Schema
}

// Members returns what a supergraph is composed of; nil for other APIs.
func (a *API) Members() []GraphQLMember {
	if !a.IsSupergraph() || a.GraphQL.Supergraph == nil {
		return nil
	}
	return a.GraphQL.Supergraph.Subgraphs
}

// MemberAPIs returns the APIs that a supergraph names, each once, in order; none for other
// APIs.
func (a *API) MemberAPIs() []string {
	ids := []string{}
	for _, m := range a.Members() {
		if m.APIID != "" {
			ids = append(ids, m.APIID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// setDefaults sets what depends on other members: subgraphs are internal, and reached
// within the gateway, unless they say something else.
func (a *API) setDefaults() {
	if a.IsSubgraph() && !object.WroteEmpty(a, "internal") {
		a.Internal = true
	}
	members := a.Members()
	for i := range members {
		if m := &members[i]; m.URL == "" && m.APIID != "" {
			m.URL = InternalScheme + m.APIID
		}
	}
}

// checkSupergraph checks what a supergraph is composed of, but not the composition.
func (p *Problems) checkSupergraph(g *GraphQLSupergraph) {
	const path = "graphql.supergraph"
	if g == nil || len(g.Subgraphs) == 0 {
		p.addf(path+".subgraphs", `must have at least one subgraph, such as {"name": "orders", "url": "http://orders.example/graphql", "sdl": "type Query { orders: [ID] }"}`)
		return
	}
	p.checkCount(path+".subgraphs", len(g.Subgraphs), maxSubgraphs)
	checkHeaders(p, path+".global_headers", g.GlobalHeaders, func(value string) string { return value })
	names := make(map[string]bool, len(g.Subgraphs))
	for i := range g.Subgraphs {
		m := &g.Subgraphs[i]
		p.checkMember(object.Item(path+".subgraphs", i), m)
		if m.Name != "" && names[m.Name] {
			p.addf(object.Item(path+".subgraphs", i)+".name", "is the name of another subgraph; names are unique in a supergraph")
		}
		names[m.Name] = true
	}
}

func (p *Problems) checkMember(path string, m *GraphQLMember) {
	if m.Name == "" || len(m.Name) > maxSubgraphName {
		p.addf(path+".name", "must be a name of at most %d bytes, such as orders", maxSubgraphName)
	}
	p.checkID(path+".api_id", m.APIID)
	p.checkWith(path+".url", checkTarget(m.URL))
	if strings.TrimSpace(m.SDL) == "" && m.APIID == "" {
		p.addf(path+".sdl", "is required where api_id is not set: the schema of the subgraph in SDL")
	}
	checkHeaders(p, path+".headers", m.Headers, func(value string) string { return value })
	p.checkSubscriptionType(path+".subscription_type", m.SubscriptionType)
}
