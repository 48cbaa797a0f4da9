package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// graphAPI is an API whose GraphQL part is right, and holds more.
func graphAPI(more string) string {
	return plainAPI + `, "graphql": {"enabled": true, "execution_mode": "proxyOnly", "schema": "type Query { a: Int }"` + more + `}}`
}

// persisting is an API with one list of persisted operations.
func persisting(list string) string {
	return plainAPI + `, "version_data": {"not_versioned": true, "versions": {"Default": {"use_extended_paths": true, "extended_paths": {"persist_graphql": ` + list + `}}}}}`
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestGraphQLProblemsSayWhatWouldBeRight(t *testing.T) {
	const headerName, most = "must be named as a header, such as X-Api-Key", "9007199254740991"
	for _, c := range []struct{ more, want string }{
		{`, "execution_mode": ""`, "graphql.execution_mode: stands twice; leave one of them out"},
		{`, "depth_base": 2`, "graphql.depth_base: must be 0, which counts nested fields only, or 1, which adds one for the operation"},
		{`, "depth_base": -1`, "graphql.depth_base: must be 0, which counts nested fields only, or 1, which adds one for the operation"},
		{`, "batch_max": 101`, "graphql.batch_max: must be from 0 (batches are refused) to 100"},
		{`, "batch_max": -1`, "graphql.batch_max: must be from 0 (batches are refused) to 100"},
		{`, "suggestions": 1`, "graphql.suggestions: must be true or false, not a number"},
		{`, "playground": []`, "graphql.playground: must be an object, not an array"},
		{`, "playground": {"enabled": "yes"}`, "graphql.playground.enabled: must be true or false, not a string"},
		{`, "proxy": {"auth_headers": {"a b": "x"}}`, `graphql.proxy.auth_headers["a b"]: ` + headerName},
		{`, "proxy": {"request_headers": {"": "x"}}`, `graphql.proxy.request_headers[""]: ` + headerName},
		{`, "proxy": {"request_headers": {"A": "x\r\nB: y"}}`, `graphql.proxy.request_headers["A"]: has a value with control characters, such as the end of a line`},
		{`, "proxy": {"request_headers": {"X-A": "1", "x-a": "2"}}`, `graphql.proxy.request_headers["x-a"]: is the same header as "X-A": names are compared without case`},
		{`, "proxy": {"request_headers": {"Transfer-Encoding": "chunked"}}`, `graphql.proxy.request_headers["Transfer-Encoding"]: must be left out: the gateway writes this header itself`},
		{`, "proxy": {"request_headers": {"A": "` + strings.Repeat("x", 8193) + `"}}`, `graphql.proxy.request_headers["A"]: has a value of 8193 bytes; at most 8192 are allowed`},
		{`, "proxy": {"request_headers_rewrite": {"A": {"value": "\u0000"}}}`, `graphql.proxy.request_headers_rewrite["A"]: has a value with control characters, such as the end of a line`},
		{`, "proxy": {"request_headers_rewrite": {"A": "x"}}`, `graphql.proxy.request_headers_rewrite["A"]: must be an object, not a string`},
		{`, "proxy": {"subscription_type": "ws"}`, `graphql.proxy.subscription_type: must be "graphql-ws", "graphql-transport-ws" or "sse"`},
		{`, "limits": {"max_tokens": -1}`, "graphql.limits.max_tokens: must be from 0 (the gateway's own limit) to " + most},
		{`, "limits": {"max_cost": 9007199254740992}`, "graphql.limits.max_cost: must be from 0 (the gateway's own limit) to " + most},
		{`, "cost": {"list_size": -1}`, "graphql.cost.list_size: must be from 0 (the gateway's default) to 1000000"},
		{`, "cost": {"size_arguments": ["first", "la-st"]}`, "graphql.cost.size_arguments[1]: must be the name of an argument, such as first"},
		{`, "trusted_documents": {"required": true, "register": true}`, "graphql.trusted_documents.register: must be false where required is true: clients could add any operation"},
		{`, "trusted_documents": {"documents": {"abc": "{ a }"}}`, `graphql.trusted_documents.documents["abc"]: must be named by the SHA-256 of its text: ` + hashOf("{ a }")},
		{`, "trusted_documents": {"documents": {"` + strings.ToUpper(hashOf("{ a }")) + `": "{ a }"}}`, `graphql.trusted_documents.documents["` + strings.ToUpper(hashOf("{ a }")) + `"]: must be named by the SHA-256 of its text: ` + hashOf("{ a }")},
		{`, "trusted_documents": {"documents": {"` + hashOf(" ") + `": " "}}`, `graphql.trusted_documents.documents["` + hashOf(" ") + `"]: must be the text of an operation`},
		{`, "schema_sync": {"interval": 5}`, "graphql.schema_sync.interval: must be 0 (on demand) or from 10 to 3153600000 seconds"},
		{`, "schema_sync": {"interval": -1}`, "graphql.schema_sync.interval: must be 0 (on demand) or from 10 to 3153600000 seconds"},
	} {
		if got := problemsOf(t, "api", graphAPI(c.more)); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.more, got, c.want)
		}
	}
}

func TestAGraphQLAPINeedsItsModeAndSchema(t *testing.T) {
	for _, c := range []struct{ part, want string }{
		{`{"enabled": true, "schema": "x"}`, `graphql.execution_mode: is not set, which asks for a feature that this release does not have: GraphQL engine 1; set it to "proxyOnly"`},
		{`{"enabled": true, "schema": "x", "execution_mode": "proxy"}`, `graphql.execution_mode: must be "proxyOnly", "executionEngine", "subgraph" or "supergraph"`},
		{`{"enabled": true, "schema": " \n", "execution_mode": "proxyOnly"}`, SchemaPath + ": is required: the schema of the upstream in SDL, such as type Query { a: Int }"},
	} {
		if got := problemsOf(t, "api", plainAPI+`, "graphql": `+c.part+`}`); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.part, got, c.want)
		}
	}
}

func TestGraphQLThatIsRightIsAccepted(t *testing.T) {
	for _, more := range []string{
		``, `, "version": "3-preview", "last_schema_update": "2025-01-01T00:00:00Z", "subgraph": {"sdl": ""}, "engine": {"data_sources": []}`,
		`, "depth_base": 0, "batch_max": 100, "limits": {"max_tokens": 100, "max_cost": 1}, "cost": {"list_size": 5, "size_arguments": ["first"]}`,
		`, "proxy": {"request_headers": {"X-Path": "$svc_context.path", "x-b": "a\tb"}, "request_headers_rewrite": {"X-C": {"value": "", "remove": true}}, "subscription_type": "sse"}`,
		`, "trusted_documents": {"required": true, "documents": {"` + hashOf("{ a }") + `": "{ a }"}}, "schema_sync": {"interval": 3600}`,
	} {
		if got := problemsOf(t, "api", graphAPI(more)); got != nil {
			t.Errorf("%s: %q", more, got)
		}
	}
}

func TestDefaultsOfGraphQL(t *testing.T) {
	zero, one := 0, 1
	for base, want := range map[*int]int{nil: 1, &zero: 0, &one: 1} {
		if got := (&GraphQL{DepthBase: base}).Base(); got != want {
			t.Errorf("base %v is %d", base, got)
		}
	}
	hidden := &GraphQL{Introspection: &GraphQLIntrospection{Disabled: true}}
	if !hidden.HidesSchema() || (&GraphQL{}).HidesSchema() {
		t.Error("HidesSchema does not follow introspection.disabled")
	}
	if (&API{}).IsGraphQL() || (&API{GraphQL: &GraphQL{}}).IsGraphQL() || !(&API{GraphQL: &GraphQL{Enabled: true}}).IsGraphQL() {
		t.Error("IsGraphQL does not follow enabled")
	}
}

func TestALargeSchemaIsNoLargeDefinition(t *testing.T) {
	large := strings.Repeat("x", 2<<20)
	if got := problemsOf(t, "api", " "+strings.Replace(graphAPI(""), "a: Int", "a: Int # "+large, 1)); got != nil {
		t.Errorf("got %q", got)
	}
	got := problemsOf(t, "api", strings.Replace(graphAPI(""), `"graphql"`, `"x": "`+large+`", "graphql"`, 1))
	if len(got) != 1 || !strings.HasSuffix(got[0], "at most 1048576 are read beside its graphql part") {
		t.Errorf("got %q", got)
	}
}

func TestProblemsOfPersistedOperations(t *testing.T) {
	const at = `version_data.versions["Default"].extended_paths.persist_graphql`
	one := func(more string) string {
		return `[{"method": "GET", "path": "/a/{code}", "operation": "query ($c: ID!) { a(c: $c) }"` + more + `}]`
	}
	path := func(p string) string { return `[{"method": "GET", "operation": "{ a }", "path": "` + p + `"}]` }
	for _, c := range []struct{ list, want string }{
		{`{}`, ": must be an array, not an object"},
		{`[5]`, "[0]: must be an object, not a number"},
		{`[{"method": "GET", "path": "/", "operation": 1}]`, "[0].operation: must be a string, not a number"},
		{`[{"method": "get", "path": "/", "operation": "{ a }"}]`, "[0].method: must be GET, POST, PUT, PATCH or DELETE"},
		{`[{"method": "GET", "path": "/", "operation": " "}]`, "[0].operation: is required: the GraphQL operation that the path stands for"},
		{path(""), `[0].path: must begin with "/", as in /countries/{code}`},
		{path("a"), `[0].path: must begin with "/", as in /countries/{code}`},
		{path("/a//b"), "[0].path: has two slashes in a row; write one"},
		{path("/a/x{b}"), `[0].path: segment "x{b}": a parameter must be the whole segment, as in /{name}/`},
		{path("/a/{b:[0-9]+}"), "[0].path: parameter {b:[0-9]+}: its name must consist of letters, digits, _ and -, beginning with a letter or _"},
		{path("/{a}/{a}"), "[0].path: parameter {a} stands twice"},
		{path("/a/../b"), `[0].path: segment "..": must not be . or .., also not in part or encoded: paths are compared without such segments`},
		{path("/a?b"), `[0].path: segment "a?b": must not hold spaces, control characters, ?, # or \`},
		{path("/" + strings.Repeat("a", 4096)), "[0].path: has 4097 bytes; at most 4096 are allowed"},
		{one(`, "variables": []`), "[0].variables: must be an object, not an array"},
		{one(`, "variables": {"c": "$path.codeX"}`), `[0].variables["c"]: refers to $path.codeX, and the path has no parameter {codeX}`},
		{one(`, "variables": {"c": {"d": ["$path.code", "x-$path.no-y"]}}`), `[0].variables["c"].d[1]: refers to $path.no-y, and the path has no parameter {no-y}`},
		{`[{"method": "GET", "path": "/a/{b}/", "operation": "{ a }"}, {"method": "GET", "path": "/%61/{c}", "operation": "{ b }"}]`, "[1].path: takes the same calls as an operation before it"},
	} {
		if got := problemsOf(t, "api", persisting(c.list)); len(got) != 1 || got[0] != at+c.want {
			t.Errorf("%s\n got %q\nwant %q", c.list, got, at+c.want)
		}
	}
}

func TestPersistedOperationsAreReadWhereTheyAreInUse(t *testing.T) {
	const list = `[
		{"method": "GET", "path": "/", "operation": "{ a }", "x": 1},
		{"method": "POST", "path": "/{code}", "operation": "{ b }", "variables": {"c": "$path.code", "n": 5, "h": "$svc_context.headers_Code"}},
		{"method": "nonsense", "disabled": true}]`
	a, err := ParseAPI([]byte(persisting(list)))
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, o := range a.Unversioned().PersistedOperations() {
		calls = append(calls, fmt.Sprint(o.Method, " ", o.Path, " ", o.Operation, " ", len(o.Variables)))
	}
	if want := []string{"GET / { a } 0", "POST /{code} { b } 3"}; !slices.Equal(calls, want) {
		t.Errorf("got %q", calls)
	}
	off, err := ParseAPI([]byte(strings.Replace(persisting(`"nonsense"`), `"use_extended_paths": true, `, "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if got := off.Unversioned().PersistedOperations(); got != nil {
		t.Errorf("without use_extended_paths: %v", got)
	}
}

func TestTheVersionOfAnAPIWithoutVersions(t *testing.T) {
	d, o := &Version{Name: "d"}, &Version{Name: "o"}
	for name, c := range map[string]struct {
		data *VersionData
		want *Version
	}{
		"none":          {nil, nil},
		"empty":         {&VersionData{NotVersioned: true}, nil},
		"the only one":  {&VersionData{NotVersioned: true, Versions: map[string]*Version{"o": o}}, o},
		"Default":       {&VersionData{NotVersioned: true, Versions: map[string]*Version{"o": o, "Default": d}}, d},
		"one of others": {&VersionData{NotVersioned: true, Versions: map[string]*Version{"o": o, "p": d}}, nil},
		"versioned":     {&VersionData{Versions: map[string]*Version{"o": o}}, nil},
	} {
		if got := (&API{VersionData: c.data}).Unversioned(); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestProblemsOfFieldRules(t *testing.T) {
	in := func(body string) string { return `{"access_rights": {"a": {` + body + `}}}` }
	const size = "must be from 1 to 2147483647, -1 (unlimited) or 0 (not set)"
	for _, c := range []struct{ data, want string }{
		{in(`"allowed_types": [{"name": "Query", "fields": []}]`), `access_rights["a"].allowed_types[0].fields: must name fields, or * for all of the type`},
		{in(`"allowed_types": [{"name": "", "fields": ["a"]}]`), `access_rights["a"].allowed_types[0].name: must be the name of a GraphQL type, such as Query`},
		{in(`"restricted_types": [{"name": "A", "fields": ["a"]}, {"name": "A", "fields": ["b"]}]`), `access_rights["a"].restricted_types[1].name: A stands twice; put all of its fields in one entry`},
		{in(`"restricted_types": [{"name": "A", "fields": ["a", "b.c"]}]`), `access_rights["a"].restricted_types[0].fields[1]: must be the name of a GraphQL field, or * for all of the type`},
		{in(`"restricted_types": [{"name": "A", "fields": ["a", 1]}]`), `access_rights["a"].restricted_types[0].fields[1]: must be a string, not a number`},
		{in(`"field_access_rights": [{"type_name": "1", "field_name": "a"}]`), `access_rights["a"].field_access_rights[0].type_name: must be the name of a GraphQL type, such as Query`},
		{in(`"field_access_rights": [{"type_name": "Query", "field_name": "*"}]`), `access_rights["a"].field_access_rights[0].field_name: must be the name of a GraphQL field`},
		{in(`"field_access_rights": [{"type_name": "Query", "field_name": "a", "limits": {"max_query_depth": -2}}]`), `access_rights["a"].field_access_rights[0].limits.max_query_depth: ` + size},
		{in(`"field_access_rights": [{"type_name": "Q", "field_name": "a"}, {"type_name": "Q", "field_name": "a"}]`), `access_rights["a"].field_access_rights[1]: limits Q.a, as an entry before it does`},
		{in(`"limit": {"max_query_aliases": -2}`), `access_rights["a"].limit.max_query_aliases: ` + size},
		{in(`"trusted_documents_only": 1`), `access_rights["a"].trusted_documents_only: must be true or false, not a number`},
		{`{"max_query_depth": -2}`, "max_query_depth: " + size},
		{`{"max_query_root_fields": 2147483648}`, "max_query_root_fields: " + size},
		{`{"max_query_directives": -9}`, "max_query_directives: " + size},
		{`{"max_query_tokens": 1.5}`, "max_query_tokens: must be a whole number, not 1.5"},
		{`{"max_query_cost": 9007199254740992}`, "max_query_cost: must be from 1 to 9007199254740991, -1 (unlimited) or 0 (not set)"},
	} {
		for _, kind := range []string{"session", "policy"} {
			if got := problemsOf(t, kind, c.data); len(got) != 1 || got[0] != c.want {
				t.Errorf("%s %s\n got %q\nwant %q", kind, c.data, got, c.want)
			}
		}
	}
}

func TestLimitsThatAreNotSetAreNotWritten(t *testing.T) {
	out, err := json.Marshal(&Session{Limits: Limits{MaxQueryAliases: -1, MaxQueryCost: 7}})
	if err != nil || !strings.Contains(string(out), `"max_query_aliases":-1,"max_query_cost":7`) || strings.Contains(string(out), "tokens") {
		t.Errorf("%s, %v", out, err)
	}
}
