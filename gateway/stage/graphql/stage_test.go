package graphql_test

import (
	"strings"
	"testing"
)

func TestWhatPassesGoesUpAsItCame(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	for _, body := range []string{
		`{"query":"{ countries { name } }"}`,
		"{ \"query\" : \"query Q($c: ID!) {\\n country(code: $c) { n\\u0061me } }\", \"variables\": {\"c\": \"DE\", \"unused\": 1}, \"operationName\":\"Q\", \"extensions\": {\"x\": [1]}, \"other\": 1 }\n",
		`{"query":"{ countries { name } __typename }", "operationName": null, "variables": null, "extensions": null}`,
		`{"query":"query A { secret } query B { animals { name } }", "operationName": "B"}`,
		`{"query":"mutation { rename(code: 1, name: \"x\") { code } }"}`,
	} {
		for range 2 { // unseen, then seen
			got := w.post(body)
			if got.status != 200 || got.body != `{"data":{"up":true}}` || len(got.seen) != 1 || got.seen[0].body != body || got.seen[0].method != "POST" {
				t.Errorf("%s\n%v, upstream saw %q", body, got, got.seen)
			}
		}
	}
}

func TestInvalidOperationsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	for _, c := range []struct{ body, want string }{
		{`{"query":"{ nope }"}`, `{"errors":[{"message":"field: nope not defined on type: Query","locations":[{"line":1,"column":3}]}]}`},
		{`{"query":"{ secret"}`, `{"errors":[{"message":"Syntax Error: Expected Name, found <EOF>.","locations":[{"line":1,"column":9}]}]}`},
	} {
		for range 2 {
			got := w.post(c.body)
			if got.status != 400 || got.body != c.want || len(got.seen) != 0 || !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
				t.Errorf("%s\n got %v\nwant %s", c.body, got, c.want)
			}
		}
	}
}
