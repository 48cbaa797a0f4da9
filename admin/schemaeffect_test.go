package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/wait"
	"github.com/sluicegate/sluice/internal/usage"
)

// counting starts a gateway that has counted reads of the fields of one API.
func counting(t *testing.T, b *bench, api string, fields ...usage.FieldUse) {
	t.Helper()
	g := &fakeGateway{b: b, name: "near"}
	g.more = func(question string) any {
		q, ok := usage.ParseGraphQLQuestion(question)
		if !ok || q.Fields == 0 {
			return nil
		}
		a := &usage.GraphQLAnswer{Gateway: "near", Since: noon, Fields: &usage.FieldReport{Fields: []usage.FieldUse{}}}
		if q.API == api {
			a.Fields.Fields, a.Fields.Total = fields, len(fields)
		}
		return a
	}
	g.run(b.Client)
	wait.Until(t, "the gateway has reported", func() bool {
		return len(b.Call("GET", "/api/gateways", b.viewer, "").Object()["gateways"].([]any)) == 1
	})
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// read is a field that the key ann has read nine times.
func read(owner, name string) usage.FieldUse {
	return usage.FieldUse{Type: owner, Name: name, Count: 9, LastUsed: noon, KeysTotal: 1, Keys: []usage.KeyUse{{Key: "ann", Count: 9, LastUsed: noon}}}
}

// sansName are the users without a field that clients read.
const sansName = `type Query { me: User } type User @key(fields: \"id\") { id: ID! }`

func TestTheSchemaOfASubgraphIsCheckedForItsSupergraphs(t *testing.T) {
	b := composedOfBoth(t)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"shop":{"restricted_types":[{"name":"User","fields":["name"]}]}}}`).Want(200)
	counting(t, b, "shop", read("User", "name"), read("User", "id"))
	var got checked
	wait.Until(t, "the gateway has answered", func() bool {
		b.Call("POST", "/api/apis/users/schema/check", b.viewer, `{"schema":"`+sansName+`"}`).Want(200).Into(&got)
		return len(got.Effects) == 2 && len(got.Effects[1].Used.Gateways) == 1
	})
	own, shop := got.Effects[0], got.Effects[1]
	if own.API != "users" || own.Breaking != 1 || own.Changes[0].Place != "User.name" || len(own.Used.Fields) > 0 || own.BrokenTotal > 0 {
		t.Errorf("%+v", own)
	}
	if shop.API != "shop" || shop.Breaking != 1 || shop.Changes[0].Place != "User.name" || len(shop.Problems) > 0 || shop.BrokenTotal != 1 || shop.Broken[0].Policy != "p" {
		t.Errorf("%+v", shop)
	}
	if use := shop.Used; len(use.Fields) != 1 || use.Fields[0].Name != "name" || use.Fields[0].Keys[0].Key != "ann" || !use.Since.Equal(noon) {
		t.Errorf("%+v", use)
	}
	broken := strings.Replace(users, `@key(fields: \"id\")`, "", 1)
	b.Call("POST", "/api/apis/users/schema/check", b.viewer, `{"schema":"`+broken+`"}`).Want(200).Into(&got)
	if problems := got.Effects[1].Problems; len(problems) == 0 || problems[0].Places[0].Subgraph == "" {
		t.Errorf("%+v", got.Effects[1])
	}
	b.Call("POST", "/api/apis/users/schema/check", b.viewer, `{"schema":"`+users+`"}`).Want(200).Says(`"effects":[]`)
	b.Call("POST", "/api/apis/users/schema/check", b.viewer, `{"schema":"type Query { a: Nope }"}`).Want(400).Says("Invalid GraphQL schema", "graphql.subgraph.sdl")
	b.Call("POST", "/api/apis/users/schema/check", b.viewer, `{}`).Want(400).Says("schema: is required")
	b.Call("POST", "/api/apis/shop/schema/check", b.viewer, `{"schema":"type Query { a: Int }"}`).Want(400).Says("must be left out")
	b.Call("POST", "/api/apis/users/schema/check", b.other, `{"schema":"type Query { a: Int }"}`).Want(404)

	const says = `supergraph \"shop\": breaks clients: User.name was removed; read 9 times, last at 2026-11-21T12:00:00Z, by ann (counted since 2026-11-21T12:00:00Z)`
	const policy = `supergraph \"shop\": breaks policy \"p\" access_rights[\"shop\"].restricted_types[0].fields[0]`
	next := subgraphAPI("users", sansName, "")
	said := func(method, path, body string, want ...string) {
		t.Helper()
		wait.Until(t, "the gateway has answered", func() bool {
			r := b.Call(method, path, b.editor, body).Want(200)
			if strings.Contains(string(r.Body), "did not answer") {
				return false
			}
			r.Says(want...)
			return true
		})
	}
	said("POST", "/api/apis/validate", next, `"effects":[{"api_id":"users"`, says, policy)
	said("POST", "/api/config/apply", `{"dry_run":true,"apis":[`+next+`]}`, `apis[\"users\"].graphql.schema: breaks clients: User.name was removed; not read (counted`, says, policy)
	said("POST", "/api/config/apply", `{"dry_run":true,"apis":[`+next+`,`+supergraphAPI("shop", ofBoth)+`]}`, `apis[\"shop\"].graphql.schema: breaks clients: User.name was removed; read 9 times`)
	b.Call("PUT", "/api/apis/users", b.editor, next).Want(200).Says(`supergraph \"shop\": breaks clients: User.name was removed`, policy)

	// The supergraph has what it was composed of, until it is saved with the new schema.
	b.Call("GET", "/api/apis/shop/schema", b.viewer, "").Want(200).Says("name: String")
	stored := string(b.Call("GET", "/api/apis/shop", b.viewer, "").Want(200).Body)
	const outdated = `graphql.supergraph.subgraphs[0].sdl: differs from the schema that API \"users\" has now; leave it out to take that over`
	b.Call("POST", "/api/apis/validate", b.viewer, stored).Want(200).Says(outdated)
	b.Call("PUT", "/api/apis/shop", b.editor, stored).Want(200).Says(outdated)
	b.Call("POST", "/api/config/apply", b.editor, `{"dry_run":true,"apis":[`+stored+`]}`).Want(200).Says(`apis[\"shop\"].` + outdated)
	b.Call("POST", "/api/apis/shop/schema/check", b.viewer, `{}`).Want(200).Says(`"api_id":"shop"`, `"breaking":1`)
	b.Call("PUT", "/api/apis/shop", b.editor, supergraphAPI("shop", ofBoth)).Want(200).Says("graphql.schema: breaks clients: User.name was removed")
	b.Call("POST", "/api/apis/shop/schema/check", b.viewer, `{}`).Want(200).Says(`"effects":[]`)
}

// The schema of an API that is proxied is checked in the same way.
func TestTheSchemaOfAnAPIIsChecked(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/apis", b.editor, aGraph).Want(200)
	var got checked
	b.Call("POST", "/api/apis/g/schema/check", b.viewer, `{"schema":"type Query { pets: [Pet] } interface Pet { name: String }"}`).Want(200).Into(&got)
	if len(got.Effects) != 1 || got.Effects[0].Breaking != 3 || got.Effects[0].Used.Since != nil {
		t.Errorf("%+v", got.Effects)
	}
	b.Call("PUT", "/api/apis/g", b.editor, strings.Replace(aGraph, "code: ID", "", 1)).Want(200).
		Says("graphql.schema: breaks clients: Country.code was removed; no gateway has counted how it is read")
	b.Call("POST", "/api/apis/g/schema/check", b.viewer, `{"schema":"type Query { a: Nope }"}`).Want(400).Says("Invalid GraphQL schema")
}
