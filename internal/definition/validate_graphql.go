package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

const (
	maxBatch        = 100
	maxHeaders      = 1_000 // of each list
	maxHeaderValue  = 8 << 10
	maxDocuments    = 100_000
	maxSizeNames    = 100
	maxListSize     = 1_000_000
	minSyncInterval = 10 // seconds
)

// SchemaPath is the path of the problem that a GraphQL API has no schema. The
// admin fills in that of the upstream.
const SchemaPath = "graphql.schema"

// checkGraphQL checks the GraphQL part. What is switched off need not be
// complete.
func (p *Problems) checkGraphQL(g *GraphQL) {
	if g == nil {
		return
	}
	p.checkSwitch("graphql.playground", g.Playground, "enabled")
	if path := g.PlaygroundPath(); isOn(g.Playground, "enabled") && !playgroundPath.MatchString(path) {
		p.addf("graphql.playground.path", "must be a path of letters, digits, - and _, such as /playground, of at most 256 bytes")
	}
	if g.Enabled {
		p.checkMode(g.ExecutionMode)
		if g.ExecutionMode == ModeSupergraph {
			p.checkSupergraph(g.Supergraph)
		} else if strings.TrimSpace(g.Schema) == "" {
			p.addf(SchemaPath, "is required: the schema of the upstream in SDL, such as type Query { a: Int }")
		}
	}
	if g.DepthBase != nil && *g.DepthBase != 0 && *g.DepthBase != 1 {
		p.addf("graphql.depth_base", "must be 0, which counts nested fields only, or 1, which adds one for the operation")
	}
	if g.BatchMax < 0 || g.BatchMax > maxBatch {
		p.addf("graphql.batch_max", "must be from 0 (batches are refused) to %d", maxBatch)
	}
	p.checkGraphQLProxy(g.Proxy)
	p.checkGraphQLLimits(g.Limits)
	p.checkCost(g.Cost)
	p.checkTrusted(g.TrustedDocuments)
	if s := g.SchemaSync; s != nil && (s.Interval < 0 || s.Interval > maxPeriod || s.Interval > 0 && s.Interval < minSyncInterval) {
		p.addf("graphql.schema_sync.interval", "must be 0 (on demand) or from %d to %d seconds", minSyncInterval, maxPeriod)
	}
}

// checkMode leaves modes that other releases may have to features.go.
func (p *Problems) checkMode(mode string) {
	const path = "graphql.execution_mode"
	switch mode {
	case ModeProxy, ModeDataGraph, ModeSubgraph, ModeSupergraph:
	case "":
		const old = "GraphQL engine 1"
		p.add(Problem{Path: path, Feature: old, Weight: RouteWeight, Message: `is not set, which asks for a feature that this release does not have: ` + old + `; set it to "proxyOnly"`})
	default:
		p.addf(path, `must be "proxyOnly", "executionEngine", "subgraph" or "supergraph"`)
	}
}

func (p *Problems) checkGraphQLProxy(proxy *GraphQLProxy) {
	if proxy == nil {
		return
	}
	const path = "graphql.proxy"
	checkHeaders(p, path+".auth_headers", proxy.AuthHeaders, func(value string) string { return value })
	checkHeaders(p, path+".request_headers", proxy.RequestHeaders, func(value string) string { return value })
	checkHeaders(p, path+".request_headers_rewrite", proxy.RequestHeadersRewrite, func(r *GraphQLHeaderRewrite) string {
		if r == nil {
			return ""
		}
		return r.Value
	})
	p.checkSubscriptionType(path+".subscription_type", proxy.SubscriptionType)
	p.checkSubscriptions(path+".subscriptions", proxy.Subscriptions)
}

func (p *Problems) checkSubscriptionType(path, kind string) {
	switch kind {
	case "", "graphql-ws", "graphql-transport-ws", "sse":
	default:
		p.addf(path, `must be "graphql-ws", "graphql-transport-ws" or "sse"`)
	}
}

// maxReconnects bounds how often a lost subscription is begun again.
const maxReconnects = 20

func (p *Problems) checkSubscriptions(path string, s *GraphQLSubscriptions) {
	if s == nil {
		return
	}
	if s.Reconnect < 0 || s.Reconnect > maxReconnects {
		p.addf(path+".reconnect", "is %d; it must be between 0 and %d", s.Reconnect, maxReconnects)
	}
	switch s.AtLimit {
	case "", "drop", "delay", "end":
	default:
		p.addf(path+".at_limit", `must be "drop", "delay" or "end"`)
	}
	at := path + ".forward_headers"
	p.checkCount(at, len(s.ForwardHeaders), maxHeaders)
	for i, name := range s.ForwardHeaders {
		if !isToken(name) {
			p.addf(at+"["+strconv.Itoa(i)+"]", "must be the name of a header, such as X-Api-Key")
		}
	}
}

// checkHeaders checks headers by name. It never repeats a value: that may be a
// secret.
func checkHeaders[T any](p *Problems, path string, headers map[string]T, value func(T) string) {
	p.checkCount(path, len(headers), maxHeaders)
	seen := make(map[string]string, len(headers))
	for _, name := range object.SortedKeys(headers) {
		at, lower := object.Entry(path, name), strings.ToLower(name)
		first, twice := seen[lower]
		switch {
		case !isToken(name):
			p.addf(at, "must be named as a header, such as X-Api-Key")
		case isFraming(lower):
			p.addf(at, "must be left out: the gateway writes this header itself")
		case twice:
			p.addf(at, "is the same header as %q: names are compared without case", first)
		}
		seen[lower] = name
		switch text := value(headers[name]); {
		case len(text) > maxHeaderValue:
			p.addf(at, "has a value of %d bytes; at most %d are allowed", len(text), maxHeaderValue)
		case strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f }):
			p.addf(at, "has a value with control characters, such as the end of a line")
		}
	}
}

// isFraming reports whether a header says where it and the message go and end, so
// that a value from elsewhere would break the connection.
func isFraming(lower string) bool {
	switch lower {
	case "host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive", "proxy-connection":
		return true
	}
	return false
}

func (p *Problems) checkGraphQLLimits(l *GraphQLLimits) {
	if l == nil {
		return
	}
	const path = "graphql.limits"
	for _, one := range []struct {
		name  string
		value int64
	}{
		{"max_tokens", int64(l.MaxTokens)},
		{"max_depth", int64(l.MaxDepth)},
		{"max_aliases", int64(l.MaxAliases)},
		{"max_root_fields", int64(l.MaxRootFields)},
		{"max_directives", int64(l.MaxDirectives)},
		{"max_cost", l.MaxCost},
	} {
		if one.value < 0 || one.value > maxQuota {
			p.addf(object.Member(path, one.name), "must be from 0 (the gateway's own limit) to %d", maxQuota)
		}
	}
}

func (p *Problems) checkCost(c *GraphQLCost) {
	if c == nil {
		return
	}
	const path = "graphql.cost"
	if c.ListSize < 0 || c.ListSize > maxListSize {
		p.addf(path+".list_size", "must be from 0 (the gateway's default) to %d", maxListSize)
	}
	p.checkCount(path+".size_arguments", len(c.SizeArguments), maxSizeNames)
	for i, name := range c.SizeArguments {
		if !isGraphQLName(name) {
			p.addf(object.Item(path+".size_arguments", i), "must be the name of an argument, such as first")
		}
	}
}

// isGraphQLName reports whether s is a name as GraphQL has them.
func isGraphQLName(s string) bool {
	for i, c := range []byte(s) {
		if !isAlnum(c) && c != '_' || i == 0 && '0' <= c && c <= '9' {
			return false
		}
	}
	return s != "" && len(s) <= math.MaxUint16
}

func (p *Problems) checkTrusted(t *GraphQLTrustedDocuments) {
	if t == nil {
		return
	}
	const path = "graphql.trusted_documents"
	if t.Required && t.Register {
		p.addf(path+".register", "must be false where required is true: clients could add any operation")
	}
	p.checkCount(path+".documents", len(t.Documents), maxDocuments)
	for _, name := range object.SortedKeys(t.Documents) {
		text, at := t.Documents[name], object.Entry(path+".documents", name)
		sum := sha256.Sum256([]byte(text))
		switch right := hex.EncodeToString(sum[:]); {
		case strings.TrimSpace(text) == "":
			p.addf(at, "must be the text of an operation")
		case name != right:
			p.addf(at, "must be named by the SHA-256 of its text: %s", right)
		}
	}
}
