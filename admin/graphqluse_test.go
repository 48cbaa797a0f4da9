package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
	"github.com/sluicegate/sluice/internal/usage"
)

// What two gateways have counted of an API is added up.
func TestTheUseOfGraphQLAPIsIsAddedUp(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/apis", b.editor, `{"api_id":"shop","name":"Shop","active":true,"use_keyless":true,"proxy":{"listen_path":"/shop/","target_url":"http://127.0.0.1:1/"}}`).Want(200)
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	counted := map[string]usage.GraphQLAnswer{
		"near": {Since: noon, Operations: []usage.OperationUse{{Kind: "query", Name: "me", OK: 3}, {Kind: "mutation", Name: "", Refused: 1}}, Fields: &usage.FieldReport{Total: 2, Fields: []usage.FieldUse{
			{Type: "Query", Name: "me", Count: 3, LastUsed: noon, KeysTotal: 1, Keys: []usage.KeyUse{{Key: "k", Count: 3, LastUsed: noon}}},
			{Type: "User", Name: "email", Count: 1, LastUsed: noon, KeysTotal: 1, Keys: []usage.KeyUse{{Key: "k", Count: 1, LastUsed: noon}}},
		}}},
		"far": {Since: noon.Add(-time.Hour), Operations: []usage.OperationUse{{Kind: "query", Name: "me", OK: 2, Failed: 4}}, Fields: &usage.FieldReport{Total: 1, Fields: []usage.FieldUse{
			{Type: "Query", Name: "me", Count: 6, LastUsed: noon.Add(time.Minute), KeysTotal: 9, Others: &usage.OtherUse{Count: 1, LastUsed: noon}, Keys: []usage.KeyUse{{Key: "l", Count: 4, LastUsed: noon}, {Key: "k", Count: 1, LastUsed: noon}}},
		}}},
	}
	for name, answer := range counted {
		g := &fakeGateway{b: b, name: name}
		g.more = func(question string) any {
			q, ok := usage.ParseGraphQLQuestion(question)
			if !ok || q.API != "shop" {
				return nil
			}
			a := answer
			a.Gateway = name
			if q.Fields == 0 {
				a.Fields = nil
			} else {
				a.Operations = nil
			}
			return &a
		}
		g.run(b.Client)
	}
	wait.Until(t, "both gateways have reported", func() bool {
		return len(b.Call("GET", "/api/gateways", b.viewer, "").Object()["gateways"].([]any)) == 2
	})
	ask := func(path, who string) (r *admintest.Answer) {
		wait.Until(t, "the gateways have answered", func() bool {
			r = b.Call("GET", path, who, "")
			return r.Status != 503 && !strings.Contains(string(r.Body), `"silent":["`)
		})
		return r
	}
	var operations operationsUse
	ask("/api/apis/shop/usage/operations", b.viewer).Want(200).Into(&operations)
	want := []usage.OperationUse{{Kind: "query", Name: "me", OK: 5, Failed: 4}, {Kind: "mutation", Refused: 1}}
	if got := operations.Operations; len(got) != 2 || got[0] != want[0] || got[1] != want[1] || strings.Join(operations.Gateways, " ") != "far near" || !operations.Since.Equal(noon.Add(-time.Hour)) {
		t.Errorf("%+v", operations)
	}
	var fields fieldsUse
	ask("/api/apis/shop/usage/fields?type=Query", b.viewer).Want(200).Into(&fields)
	me := fields.Fields[0]
	if len(fields.Fields) != 2 || me.Count != 9 || me.KeysTotal != 9 || me.Keys[0] != (usage.KeyUse{Key: "k", Count: 4, LastUsed: noon}) || me.Others.Count != 1 || !me.LastUsed.Equal(noon.Add(time.Minute)) {
		t.Errorf("%+v", fields)
	}
	ask("/api/apis/shop/usage/operations", b.other).Want(404)
	ask("/api/apis/none/usage/fields", b.viewer).Want(404)
	ask("/api/apis/shop/usage/fields?type="+strings.Repeat("T", 201), b.viewer).Want(400).Says("type must be the name of a type")
}
