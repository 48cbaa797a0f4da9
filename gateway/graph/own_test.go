package graph_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// owning makes the scores those of a GraphQL source with an operation of its own.
func owning(api *definition.API) {
	e := api.GraphQL.Engine
	i := slices.IndexFunc(e.DataSources, func(s definition.GraphQLDataSource) bool { return s.Name == "scores" })
	s := &e.DataSources[i]
	s.Kind, s.Config = "GraphQL", definition.GraphQLSourceConfig{
		URL: s.Config.URL[:len(s.Config.URL)-len("score?of={{.object.id}}")] + "own", HasOperation: true,
		Operation: "query Points($of: ID!, $by: String) { points(of: $of, by: $by) { sum } }",
		Variables: json.RawMessage(`{"of": "{{.object.id}}", "by": "a \"{{.object.name}}\"", "more": {"n": [1]}}`),
	}
	e.FieldConfigs = append(e.FieldConfigs, definition.GraphQLFieldConfig{TypeName: "User", FieldName: "score", Path: []string{"points", "sum"}})
}

// A GraphQL source is sent its own operation for each object, and values are taken from data.
func TestASourceHasAnOperationOfItsOwn(t *testing.T) {
	w := newWorld(t, owning)
	w.does("/own", func(rw http.ResponseWriter, r *http.Request) {
		var request struct {
			Query     string
			Variables struct{ Of, By string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v: %v", r.Method, r.Header, err)
		}
		fmt.Fprintf(rw, `{"data":{"points":{"sum":%s7}},"extensions":{"by":%q}}`, request.Variables.Of, request.Variables.By)
	})
	w.asked()
	if _, got := w.ask(`{ users { s: score } }`); got != `{"data":{"users":[{"s":17},{"s":27}]}}` {
		t.Error(got)
	}
	const sent = `POST /own {"query":"query Points($of: ID!, $by: String) { points(of: $of, by: $by) { sum } }","variables":{"of": "1", "by": "a \"Ada\"", "more": {"n": [1]}}}`
	if asked := w.asked(); !slices.Contains(asked, sent) {
		t.Errorf("asked %q", asked)
	}
	for _, c := range []struct {
		answer http.HandlerFunc
		want   string
	}{
		{says(200, `{"data":{"points":null}}`), `{"data":{"me":{"score":null}}}`},
		{says(200, `{"data":{"points":{"sum":1}},"errors":[{"message":"half"}]}`), `{"errors":[{"message":"data source \"scores\": half","path":["me","score"]}],"data":{"me":{"score":null}}}`},
		{says(400, `{"errors":[{}]}`), `{"errors":[{"message":"data source \"scores\": an error without a message","path":["me","score"]}],"data":{"me":{"score":null}}}`},
		{says(500, `<html>`), `{"errors":[{"message":"data source \"scores\": status 500","path":["me","score"]}],"data":{"me":{"score":null}}}`},
		{says(200, `[]`), `{"errors":[{"message":"data source \"scores\": the response is not one of GraphQL","path":["me","score"]}],"data":{"me":{"score":null}}}`},
		{says(204, ``), `{"errors":[{"message":"data source \"scores\": the response is not one of GraphQL","path":["me","score"]}],"data":{"me":{"score":null}}}`},
	} {
		w.does("/own", c.answer)
		if _, got := w.ask(`{ me { score } }`); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
