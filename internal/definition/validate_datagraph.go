package definition

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Bounds of a data graph.
const (
	maxDataSources  = 1_000
	maxFieldConfigs = 10_000
	maxSourceBody   = 64 << 10 // bytes
)

const enginePath = "graphql.engine"

// checkGraph checks what an API excludes that answers operations itself.
func (p *Problems) checkGraph(a *API) {
	kind, headers, services := "data graph", "graphql.engine.global_headers, or headers of a data source", "data sources"
	switch {
	case a.IsSupergraph():
		kind, headers, services = "supergraph", "graphql.supergraph.global_headers, or headers of a subgraph", "subgraphs"
	case !a.IsDataGraph():
		return
	}
	if s := a.GraphQL.SchemaSync; s != nil && s.Interval > 0 {
		p.addf("graphql.schema_sync.interval", "must be 0: a %s has no upstream that has its schema", kind)
	}
	if proxy := a.GraphQL.Proxy; proxy != nil && len(proxy.RequestHeaders)+len(proxy.RequestHeadersRewrite) > 0 {
		p.addf("graphql.proxy.request_headers", "must be empty in a %s; write %s", kind, headers)
	}
	for _, at := range a.upstreamRules() {
		p.addf(at, "must be left out of a %s, whose %s have addresses, headers and time-outs of their own", kind, services)
	}
	p.checkDataGraph(a)
}

// checkDataGraph checks the sources of a data graph as far as that needs no schema.
func (p *Problems) checkDataGraph(a *API) {
	if !a.IsDataGraph() {
		return
	}
	e := a.GraphQL.Engine
	if e == nil || len(e.DataSources) == 0 {
		p.addf(enginePath+".data_sources", "is required: the services that have the values of fields")
		return
	}
	p.checkCount(enginePath+".data_sources", len(e.DataSources), maxDataSources)
	p.checkCount(enginePath+".field_configs", len(e.FieldConfigs), maxFieldConfigs)
	names := make(map[string]bool)
	for i := range e.DataSources {
		s, at := &e.DataSources[i], object.Item(enginePath+".data_sources", i)
		switch {
		case s.Name == "":
			p.addf(at+".name", "is required: errors of the source have it")
		case names[s.Name]:
			p.addf(at+".name", "is the name of a data source before it; names are unique")
		default:
			p.checkText(at+".name", s.Name)
		}
		names[s.Name] = true
		p.checkSource(at, a, s)
	}
	p.checkEngineHeaders(e.GlobalHeaders)
	for i := range e.FieldConfigs {
		p.checkFieldConfig(object.Item(enginePath+".field_configs", i), &e.FieldConfigs[i])
	}
}

// upstreamRules returns the paths of settings that only mean something to an API with one
// upstream.
func (a *API) upstreamRules() (paths []string) {
	add := func(path string, on bool) {
		if on {
			paths = append(paths, path)
		}
	}
	rules := a.Upstreams()
	add("proxy.enable_load_balancing", a.Proxy.EnableLoadBalancing)
	add("proxy.health_check", rules.Check != nil)
	add("proxy.circuit_breaker", rules.Breaker != nil)
	add("uptime_tests", len(rules.Uptime) > 0)
	if a.VersionData == nil {
		return paths
	}
	for _, name := range object.SortedKeys(a.VersionData.Versions) {
		v, at := a.VersionData.Versions[name], object.Entry("version_data.versions", name)
		if v == nil {
			continue
		}
		add(at+".override_target", v.OverrideTarget != "")
		add(at+".global_headers", !v.GlobalHeadersDisabled && len(v.GlobalHeaders) > 0)
		add(at+".global_headers_remove", !v.GlobalHeadersDisabled && len(v.GlobalHeadersRemove) > 0)
		add(at+".extended_paths.transform_headers", len(v.HeaderRules()) > 0)
		add(at+".extended_paths.url_rewrites", len(v.Rewrites()) > 0)
		add(at+".extended_paths.circuit_breakers", len(v.Breakers()) > 0)
		add(at+".extended_paths.hard_timeouts", len(v.Timeouts()) > 0)
	}
	return paths
}

func (p *Problems) checkSource(at string, a *API, s *GraphQLDataSource) {
	switch s.Kind {
	case "REST", "GraphQL":
		p.checkSourceConfig(at+".config", s.Kind == "REST", &s.Config)
		p.checkNoTopics(at+".config", s)
	case BrokerSource:
		p.checkTopics(at+".config", a, s)
	case "":
		p.addf(at+".kind", `is required: "REST", "GraphQL" or "msgbroker"`)
	default:
		p.addf(at+".kind", `must be "REST", "GraphQL" or "msgbroker"`)
	}
	if s.Internal && !IsInternal(s.Config.URL) {
		p.addf(at+".internal", "must be false: the source has the address of a service; that of another API is svc:// and its id or name")
	}
	if len(s.RootFields) == 0 {
		p.addf(at+".root_fields", "is required: the fields whose values the source has")
	}
	p.checkCount(at+".root_fields", len(s.RootFields), maxFieldConfigs)
	for i := range s.RootFields {
		f, at := &s.RootFields[i], object.Item(at+".root_fields", i)
		if !isGraphQLName(f.Type) {
			p.addf(at+".type", "must be the name of a GraphQL type, such as Query")
		}
		if len(f.Fields) == 0 {
			p.addf(at+".fields", "must name fields of the type")
		}
		p.checkCount(at+".fields", len(f.Fields), maxFieldConfigs)
		for j, name := range f.Fields {
			if !isGraphQLName(name) {
				p.addf(object.Item(at+".fields", j), "must be the name of a GraphQL field")
			}
		}
	}
}

func (p *Problems) checkSourceConfig(at string, rest bool, c *GraphQLSourceConfig) {
	address, _, _ := strings.Cut(c.URL, "{{")
	switch wrong := checkTarget(address); {
	case wrong != "":
		p.addf(at+".url", "%s", wrong)
	case address != c.URL && strings.Count(address, "/") < 3:
		p.addf(at+".url", "must not have variables in its scheme or host")
	case address != c.URL && !rest:
		p.addf(at+".url", "must not have variables: the source is of kind GraphQL")
	}
	methods := []string{"", "POST"}
	if rest {
		methods = []string{"", "GET", "POST", "PUT", "PATCH", "DELETE"}
	}
	if !slices.Contains(methods, c.Method) {
		p.addf(at+".method", "must be %s", strings.Join(methods[1:], ", "))
	}
	checkHeaders(p, at+".headers", c.Headers, func(value string) string { return value })
	if c.Timeout < 0 || c.Timeout > 3600 {
		p.addf(at+".timeout", "must be from 0 (that of the API) to 3600 seconds")
	}
	if c.HasOperation {
		p.checkOwnOperation(at, rest, c)
	}
	if !rest {
		p.checkSubscriptionType(at+".subscription_type", c.SubscriptionType)
		if len(c.Query) > 0 {
			p.addf(at+".query", "must be empty: the source is of kind GraphQL")
		}
		if c.Body != "" {
			p.addf(at+".body", "must be empty: the source is of kind GraphQL")
		}
		return
	}
	p.checkCount(at+".query", len(c.Query), maxHeaders)
	for i, one := range c.Query {
		if one.Name == "" {
			p.addf(object.Item(at+".query", i)+".name", "is required")
		}
	}
	switch {
	case len(c.Body) > maxSourceBody:
		p.addf(at+".body", "has %d bytes; at most %d are allowed", len(c.Body), maxSourceBody)
	case c.Body != "" && (c.Method == "" || c.Method == "GET"):
		p.addf(at+".body", "must be empty: requests with GET have no body; set method")
	}
}

func (p *Problems) checkOwnOperation(at string, rest bool, c *GraphQLSourceConfig) {
	switch {
	case rest:
		p.addf(at+".has_operation", "must be false: the source is of kind REST")
	case c.Operation == "":
		p.addf(at+".operation", "is required where has_operation is true, such as query($id: ID!) { user(id: $id) { name } }")
	case len(c.Operation) > maxSourceBody:
		p.addf(at+".operation", "has %d bytes; at most %d are allowed", len(c.Operation), maxSourceBody)
	}
	switch text := bytes.TrimSpace(c.Variables); {
	case len(text) > maxSourceBody:
		p.addf(at+".variables", "has %d bytes; at most %d are allowed", len(text), maxSourceBody)
	case len(text) > 0 && text[0] != '{':
		p.addf(at+".variables", `must be an object, such as {"id": "{{.object.id}}"}`)
	}
}

func (p *Problems) checkEngineHeaders(headers []GraphQLEngineHeader) {
	const path = enginePath + ".global_headers"
	p.checkCount(path, len(headers), maxHeaders)
	seen := make(map[string]bool)
	for i, one := range headers {
		at, lower := object.Item(path, i), strings.ToLower(one.Key)
		if seen[lower] {
			p.addf(at+".key", "is the same header as one before it: names are compared without case")
		}
		seen[lower] = true
		checkHeaders(p, at, map[string]string{one.Key: one.Value}, func(value string) string { return value })
	}
}

func (p *Problems) checkFieldConfig(at string, c *GraphQLFieldConfig) {
	if !isGraphQLName(c.TypeName) {
		p.addf(at+".type_name", "must be the name of a GraphQL type, such as Query")
	}
	if !isGraphQLName(c.FieldName) {
		p.addf(at+".field_name", "must be the name of a GraphQL field")
	}
	p.checkCount(at+".path", len(c.Path), maxSizeNames)
	given := len(c.Path) > 0 && !slices.Equal(c.Path, []string{""})
	if c.DisableDefaultMapping && given {
		p.addf(at+".path", "must be empty where disable_default_mapping is true: then the value is the whole response")
	}
	for i, name := range c.Path {
		if name == "" && given {
			p.addf(object.Item(at+".path", i), "must be the name of a member, or an index")
		}
	}
}
