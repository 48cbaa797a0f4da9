package traffic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// limitRefused is the refusal of an operation that is too much of something.
func limitRefused(of string) expectation {
	return expectation{403, "operation_limit", errorBody(of + " limit exceeded")}
}

// repeated is an operation with a number of fields, made by how the i-th reads.
func repeated(n int, field func(i int) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		b.WriteString(" " + field(i))
	}
	return b.String() + " }"
}

// Aliases, root fields, directives, tokens and cost are limited by policies, by
// keys, and by the API for all.
func TestOperationsAreLimitedInEveryRespect(t *testing.T) {
	t.Parallel()
	policies := object{}
	for field, most := range map[string]int{
		"max_query_aliases": 2, "max_query_root_fields": 2, "max_query_directives": 2, "max_query_tokens": 8, "max_query_cost": 30,
	} {
		policies[field] = object{"name": field, field: most, "access_rights": rig.AccessTo("g")}
	}
	g := newGraphs(t, nil, policies, func(target string) []object {
		return []object{
			rig.GraphDef("g", target, false, object{"cost": object{"list_size": 4, "size_arguments": []string{"first"}}}),
			rig.GraphDef("capped", target, false, object{"limits": object{"max_tokens": 20, "max_depth": 3, "max_aliases": 1, "max_root_fields": 3, "max_directives": 1}}),
		}
	})
	keys := map[string]string{}
	for name := range policies {
		keys[name] = g.newKey(object{"apply_policies": []string{name}})
	}
	free := g.newKey(object{"access_rights": rig.AccessTo("g", "capped"), "max_query_depth": -1, "max_query_aliases": -1, "max_query_tokens": -1})
	for _, c := range []struct {
		key, query string
		want       expectation
	}{
		{"max_query_aliases", "{ x: secret y: secret }", passes},
		{"max_query_aliases", "{ x: secret y: secret secret: secret }", limitRefused("alias")},
		{"max_query_aliases", "{ ...F ... { ...F } a { ...G ...G } } fragment F on Query { x: secret } fragment G on A { y: b }", limitRefused("alias")},
		{"max_query_root_fields", "{ secret pet { __typename } }", passes},
		{"max_query_root_fields", "{ x: secret y: secret z: secret }", limitRefused("root field")},
		{"max_query_root_fields", "{ secret ...F ... { a { b } } } fragment F on Query { pet { __typename } }", limitRefused("root field")},
		{"max_query_directives", "{ secret @skip(if: true) a @include(if: true) { b } }", passes},
		{"max_query_directives", "{ secret @skip(if: true) a @include(if: true) { b @skip(if: false) } }", limitRefused("directive")},
		{"max_query_directives", "{ ...F @skip(if: true) ... @skip(if: true) { secret } } fragment F on Query { a { b @skip(if: true) } }", limitRefused("directive")},
		{"max_query_tokens", "{ a { b a { b } }", expectation{400, invalidReason, ""}},
		{"max_query_tokens", "{ a { b secret: b } #, comment, \n }", limitRefused("token")},
		{"max_query_tokens", "{ a { b } secret },,,\n# comment", passes},
		{"max_query_cost", "{ countries(first: 10) { code name } }", passes},
		{"max_query_cost", "{ countries(first: 15) { code name } }", limitRefused("cost")},
		{"max_query_cost", "{ countries { code continent { code } } }", passes},
		{"max_query_cost", "{ countries { continent { countries { code name } } } }", limitRefused("cost")},
		{"max_query_cost", "{ ...F ...G x: countries { code name continent { code } } } fragment F on Query { y: countries { code } } fragment G on Query { z: countries { code continent { code } } }", limitRefused("cost")},
	} {
		g.check(c.key+": "+c.query, g.ask("g", keys[c.key], c.query), c.want)
		if c.want.reason == "operation_limit" {
			g.check("another key: "+c.query, g.ask("g", free, c.query), passes)
		}
	}
	sized := `{"query":"query($n: Int = 100) { countries(first: $n) { code name } }","variables":{%s}}`
	for variables, want := range map[string]expectation{ // none at all asks for the default, which upstreams may take 0 for as well
		`"n":5`: passes, `"n":1000`: limitRefused("cost"), ``: limitRefused("cost"), `"n":0`: limitRefused("cost"), `"x":1,"n":2147483647`: limitRefused("cost"),
		`"\u006e":5`: passes, `"\u006e":1000`: limitRefused("cost"),
	} {
		g.check("a list of "+variables, g.post("g", fmt.Sprintf(sized, variables), "Authorization", keys["max_query_cost"]), want)
	}
	for query, want := range map[string]expectation{
		"{ secret }":              passes,
		"{ a { b } }":             passes,
		"{ a { a { b } } }":       tooDeep,
		"{ x: secret y: secret }": limitRefused("alias"),
		"{ x: secret secret a { b } pet { __typename } }": limitRefused("root field"),
		"{ secret @skip(if: true) @include(if: true) }":   limitRefused("directive"),
		"{ a {" + strings.Repeat(" b", 20) + " } }":       limitRefused("token"),
	} {
		g.check("for all: "+query, g.ask("capped", free, query), want)
	}
}

// Whatever keys are allowed, documents have bounds, which the configuration sets.
func TestDocumentsHaveBoundsForAll(t *testing.T) {
	t.Parallel()
	g := newGraphs(t, settings{
		"graphql.max_tokens": "500", "graphql.max_depth": "10", "graphql.max_value_depth": "5", "graphql.max_aliases": "10", "graphql.max_directives": "10",
		"graphql.max_literals": "20", "graphql.max_fragments": "5", "graphql.max_operations": "3", "graphql.max_root_fields": "20", "graphql.max_fields": "200",
		"graphql.max_body": "8KiB",
	}, nil, func(target string) []object { return []object{rig.GraphDef("g", target, true, nil)} })
	nested := func(n int) string { return "{" + strings.Repeat(" a {", n-1) + " b " + strings.Repeat("}", n) }
	doubling := func(n int) string {
		var b strings.Builder
		b.WriteString("{ a { ...F0 } }")
		for i := range n {
			fmt.Fprintf(&b, " fragment F%d on A { x: a { ...F%d } y: a { ...F%d } }", i, i+1, i+1)
		}
		fmt.Fprintf(&b, " fragment F%d on A { b }", n)
		return b.String()
	}
	for what, query := range map[string][2]string{ // of each the first is within the bounds, the second beyond
		"depth":       {strings.Replace(nested(9), "b", "a { b }", 1), nested(12)},
		"value depth": {"{ secret }", "{ country(code: [[[[[[1]]]]]]) { code } }"},
		"aliases":     {repeated(9, func(i int) string { return fmt.Sprintf("x%d: secret", i) }), repeated(11, func(i int) string { return fmt.Sprintf("x%d: secret", i) })},
		"directives":  {repeated(9, func(int) string { return "secret @skip(if: true)" }), "{ secret" + strings.Repeat(" @skip(if: true)", 11) + " }"},
		"root fields": {repeated(20, func(int) string { return "secret" }), repeated(21, func(int) string { return "secret" })},
		"tokens":      {"{ a {" + strings.Repeat(" b", 150) + " } }", "{ a {" + strings.Repeat(" b", 500) + " } }"},
		"literals":    {"{ countries(filter: {minimum: 1}) { code } }", "{ country(code: [" + strings.Repeat("1 ", 21) + "]) { code } }"},
		"fragments":   {doubling(2), doubling(6)},
		"operations":  {"query A { secret }", "query A { secret } query B { secret } query C { secret } query D { secret }"},
		"fields":      {"{ a { " + strings.Repeat("...F ", 10) + "} } fragment F on A { b b b b b b b b b b }", "{ a { " + strings.Repeat("...F ", 10) + "} } fragment F on A { " + strings.Repeat("...G ", 10) + "} fragment G on A { b b b }"},
	} {
		g.check(what, g.ask("g", "", query[0]), passes)
		got := g.ask("g", "", query[1])
		if reached := g.up.reached(); got.Status != 400 || got.Reason() != "graphql_too_large" || !strings.HasPrefix(got.Body, `{"errors":[{"message":"The `) || len(reached) > 0 {
			t.Errorf("%s: %s; the upstream saw %q", what, got, reached)
		}
	}
	body := secretBody + strings.Repeat(" ", 8<<10-len(secretBody))
	g.check("a body as large as may be", g.post("g", body), passes)
	g.check("a body larger", g.post("g", body+" "), expectation{413, "body_too_large", ""})
}

// batchOf is several operations in one body.
func batchOf(queries ...string) string {
	var all []string
	for _, q := range queries {
		all = append(all, rig.QueryBody(q))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Operations of a batch are governed and counted each: all go up, as they came,
// or none.
func TestBatchesAreGovernedOperationByOperation(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, false, object{"batch_max": 3})
	rules := rig.AccessWith("g", object{"disable_introspection": true, "restricted_types": []object{rig.Restrict("Cat", "lives")}})
	session := func(quota, rate int) object {
		return object{"access_rights": rules, "quota_max": quota, "quota_renewal_rate": 3600, "rate": rate, "per": 3600, "max_query_depth": 3}
	}
	key := g.newKey(session(100, 10_000))
	three := " [ " + rig.QueryBody("{ secret }") + "\t," + rig.QueryBody("{ a { b } }") + `,{"query":"query A { secret } query B { pet { __typename } }","operationName":"B","variables":{}} ] `
	got := g.post("g", three, "Authorization", key)
	if reached := g.up.reached(); got.Status != 200 || remaining(got) != "97" || len(reached) != 1 || reached[0].body != three {
		t.Errorf("three: %s; the upstream saw %q", got, reached)
	}
	notRun := graphError("Not run, because another operation of the batch was refused.")
	for _, c := range []struct {
		body string
		want expectation
	}{
		{"[]", expectation{400, invalidReason, graphError("A batch must have at least one operation.")}},
		{batchOf("{ secret }", "{ secret }", "{ secret }", "{ secret }"), expectation{400, invalidReason, graphError("A batch may have at most 3 operations.")}},
		{"[" + secretBody + ", null]", expectation{400, invalidReason, graphError("Operation 2 of the batch: The request body must be a JSON object with the member query.")}},
		{"[[" + secretBody + "]]", expectation{400, invalidReason, ""}},
		{batchOf("{ secret }", "{ nope }"), expectation{400, invalidReason, "[" + notRun + "," + graphErrorAt("field: nope not defined", 1, 3) + "]"}},
		{batchOf("{ a { a { b } } }", "{ secret }", "{ nope }"), expectation{403, "depth_limit", "[" + graphError("depth limit exceeded") + "," + notRun + "," + notRun + "]"}},
		{batchOf("{ secret }", "{ __schema { queryType { name } } }"), expectation{403, "introspection_disabled", "[" + notRun + "," + graphError("introspection is disabled") + "]"}},
		{batchOf("{ pet { ... on Cat { lives } } }"), expectation{400, "field_restricted", "[" + graphError("field: lives is restricted on type: Cat") + "]"}},
		{`[{"query":"{ secret }","query":"{ secret }"}]`, expectation{400, invalidReason, graphError("Operation 1 of the batch: The request gives query more than once.")}},
	} {
		got := g.post("g", c.body, "Authorization", key)
		g.check(c.body, got, c.want)
	}
	if got := g.post("g", batchOf("{ secret }"), "Authorization", key); remaining(got) != "96" {
		t.Errorf("refused batches cost quota: %s", got)
	}
	g.up.reached()

	// A quota of five has room for a batch of three, and then for two by themselves.
	poor := g.newKey(session(5, 10_000))
	batch := batchOf("{ secret }", "{ secret }", "{ secret }")
	for i, want := range []expectation{passes, {403, "quota_exceeded", errorBody(textQuota)}, {403, "quota_exceeded", errorBody(textQuota)}} {
		got := g.post("g", batch, "Authorization", poor)
		g.check(fmt.Sprintf("batch %d", i+1), got, want)
		if remaining(got) != "2" {
			t.Errorf("batch %d: %q left", i+1, remaining(got))
		}
	}
	g.check("two", g.post("g", batchOf("{ secret }", "{ secret }"), "Authorization", poor), passes)
	g.check("one", g.ask("g", poor, "{ secret }"), expectation{403, "quota_exceeded", errorBody(textQuota)})

	slow := g.newKey(session(100, 7))
	for i, want := range []expectation{passes, passes, {429, "rate_limit", errorBody(textRate)}} {
		g.check(fmt.Sprintf("batch %d of a slow key", i+1), g.post("g", batch, "Authorization", slow), want)
	}
}

// hashed is a request that names a document by its hash.
func hashed(query, hash string) string {
	member := ""
	if query != "" {
		member = `"query":` + rig.Quoted(query) + `,`
	}
	return `{` + member + `"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`
}

// What is stored can be run by its hash, and nothing else where that is asked
// for; clients add documents only where they may.
func TestDocumentsByTheirHash(t *testing.T) {
	t.Parallel()
	const stored, other = "query A { secret } # stored", "{ secret } # other"
	documents := object{sumText(stored): stored}
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{
			rig.GraphDef("g", target, false, nil), rig.GraphDef("some", target, false, object{"trusted_documents": object{"documents": documents}}),
			rig.GraphDef("only", target, true, object{"trusted_documents": object{"documents": documents, "required": true}}),
			rig.GraphDef("more", target, false, object{"trusted_documents": object{"register": true}}),
		}
	})
	free := g.newKey(object{"access_rights": rig.AccessTo("g", "some", "more"), "quota_max": 100, "quota_renewal_rate": 3600})
	bound := g.newKey(object{"access_rights": rig.AccessWith("some", object{"trusted_documents_only": true})})
	poor := g.newKey(object{"access_rights": rig.AccessWith("more", object{"restricted_types": []object{rig.Restrict("Query", "secret")}})})
	unsupported := expectation{200, invalidReason, `{"errors":[{"message":"PersistedQueryNotSupported","extensions":{"code":"PERSISTED_QUERY_NOT_SUPPORTED"}}]}`}
	unknown := expectation{200, invalidReason, `{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}`}
	mismatch := expectation{400, invalidReason, graphError("provided sha does not match query")}
	untrusted := expectation{403, "untrusted_document", errorBody("Only stored documents can be run; this is none of them")}
	for i, c := range []struct {
		api, key, body string
		want           expectation
		up             string // "": the body that was sent
	}{
		{"g", free, hashed("", sumText(stored)), unsupported, ""},
		{"g", free, hashed(stored, sumText(stored)), passes, ""},
		{"g", free, hashed(stored, sumText(other)), mismatch, ""},
		{"some", free, hashed("", sumText(stored)), passes, rig.QueryBody(stored)},
		{"some", free, hashed("", sumText(other)), unknown, ""},
		{"some", free, hashed(other, sumText(other)), passes, ""},
		{"some", free, hashed("", sumText(other)), unknown, ""},
		{"some", free, hashed(other, sumText(stored)), mismatch, ""},
		{"some", free, rig.QueryBody(other), passes, ""},
		{"some", bound, rig.QueryBody(other), untrusted, ""},
		{"some", bound, hashed(other, sumText(other)), untrusted, ""},
		{"some", bound, rig.QueryBody(stored), passes, ""},
		{"some", bound, rig.QueryBody(stored + " "), untrusted, ""},
		{"some", bound, hashed("", sumText(stored)), passes, rig.QueryBody(stored)},
		{"some", bound, rig.QueryBody("{ __typename }"), untrusted, ""},
		{"some", bound, rig.QueryBody(introspections[0]), untrusted, ""},
		{"only", "", rig.QueryBody(other), untrusted, ""},
		{"only", "", hashed("", sumText(stored)), passes, rig.QueryBody(stored)},
		{"only", "", hashed("", sumText(other)), unknown, ""},
		{"more", free, hashed("", sumText(other)), unknown, ""},
		{"more", poor, hashed(other, sumText(other)), fieldRefused("secret", "Query"), ""},
		{"more", free, hashed("", sumText(other)), unknown, ""},
		{"more", free, hashed("{ nope }", sumText("{ nope }")), expectation{400, invalidReason, ""}, ""},
		{"more", free, hashed("", sumText("{ nope }")), unknown, ""},
		{"more", free, hashed(other, sumText(other)), passes, ""},
		{"more", free, hashed("", sumText(other)), passes, rig.QueryBody(other)},
		{"more", poor, hashed("", sumText(other)), fieldRefused("secret", "Query"), ""},
		{"some", free, hashed("", sumText(other)), unknown, ""},
		{"g", free, `{"extensions":{"persistedQuery":{"version":2,"sha256Hash":"` + sumText(stored) + `"}}}`, expectation{400, invalidReason, ""}, ""},
		{"g", free, hashed("", strings.ToUpper(sumText(stored))), expectation{400, invalidReason, ""}, ""},
	} {
		got := g.post(c.api, c.body, "Authorization", c.key)
		reached := g.up.reached()
		if c.up == "" {
			c.up = c.body
		}
		if got.Status != c.want.status || got.Reason() != c.want.reason || c.want.body != "" && got.Body != c.want.body || len(reached) > 0 != (c.want.reason == "") {
			t.Errorf("%d: %s, %s\n got %s\nwant %v\nthe upstream saw %q", i, c.api, c.body, got, c.want, reached)
		}
		if len(reached) > 0 && reached[0].body != c.up {
			t.Errorf("%d: the upstream saw %q, want %q", i, reached[0].body, c.up)
		}
	}
	if got := g.ask("g", free, "{ secret }"); remaining(got) != "93" {
		t.Errorf("seven calls ran; %s are left of 100", remaining(got))
	}
}
