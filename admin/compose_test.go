package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/internal/definition"
)

const (
	users = `type Query { me: User } type User @key(fields: \"id\") { id: ID! name: String }`
	posts = `extend type User @key(fields: \"id\") { id: ID! @external posts: [String] }`
)

func TestSubgraphsCanBeComposedWithoutSaving(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/graphql/compose", b.viewer, `{"subgraphs":[{"name":"users","sdl":"`+users+`"},{"name":"posts","sdl":"`+posts+`"}]}`).Want(200).
		Says(`"valid":true`, `"problems":[]`, `type User {\n  id: ID!\n  name: String\n  posts: [String]\n}`)
	b.Call("POST", "/api/graphql/compose", b.viewer, `{"subgraphs":[{"name":"users","sdl":"`+users+`"},{"name":"posts","sdl":"\n\nextend type User { a: Int } extend enum E { A }"}]}`).Want(200).
		Says(`"valid":false`, `"code":"KEY_MISSING_ON_EXTENSION"`, `"message":"an extension of the entity named 'User' does not have a key directive"`, `"code":"EXTENSION_WITH_NO_BASE"`, `"places":[{"subgraph":"posts","line":3}]`)
	b.Call("POST", "/api/graphql/compose", b.viewer, `{"subgraphs":[]}`).Want(200).Says("NO_SUBGRAPHS")
	b.Call("POST", "/api/graphql/compose", b.viewer, `{"subgraphs":[{"name":"a","api_id":"none"}]}`).Want(400).Says("subgraphs[0].api_id", "names no API")
	b.Call("POST", "/api/graphql/compose", b.viewer, `{"subgraphs":[`+strings.Repeat(`{},`, 1000)+`{}]}`).Want(400).Says("at most 1000")
	b.Call("POST", "/api/graphql/compose", b.viewer, `{"graphs":[]}`).Want(400)
	b.Call("POST", "/api/graphql/compose", "", `{"subgraphs":[]}`).Want(401)

	b.Call("POST", "/api/apis", b.editor, subgraphAPI("users", users, "")).Want(200)
	b.Call("POST", "/api/graphql/compose", b.viewer, `{"subgraphs":[{"name":"u","api_id":"users"},{"name":"posts","sdl":"`+posts+`"}]}`).Want(200).Says(`"valid":true`)
	b.Call("POST", "/api/graphql/compose", b.other, `{"subgraphs":[{"name":"u","api_id":"users"}]}`).Want(400).Says("names no API")
}

// subgraphAPI is a definition of a subgraph, with more members of the API.
func subgraphAPI(id, sdl, more string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":%q,"use_keyless":true,"proxy":{"listen_path":"/%s/","target_url":"http://up.example"}%s,
		"graphql":{"enabled":true,"execution_mode":"subgraph","subgraph":{"sdl":"%s"}}}`, id, id, id, more, sdl)
}

func TestASubgraphIsInternalAndHasItsSchemaFromTheSDL(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/apis", b.editor, subgraphAPI("a", users, "")).Want(200)
	b.Call("GET", "/api/apis/a", b.viewer, "").Want(200).Says(`"internal":true`, `_entities(\n    representations: [_Any!]!\n  ): [_Entity]!`, "union _Entity = User", "_service: _Service!")
	b.Call("POST", "/api/apis", b.editor, subgraphAPI("b", posts, `,"internal":false`)).Want(200)
	b.Call("GET", "/api/apis/b", b.viewer, "").Want(200).Says(`"internal":false`, `@key`, `posts: [String]\n}`)
	b.Call("PUT", "/api/apis/b", b.editor, subgraphAPI("b", `type Query {\n a: Nope }`, "")).Want(400).
		Says("Invalid GraphQL schema", `graphql.subgraph.sdl: INVALID_SUBGRAPH: Unknown type \"Nope\". (this subgraph, line 2)`)
}

// TestASubgraphGetsTheSDLOfItsUpstream: the schema by introspection lacks the directives of
// federation.
func TestASubgraphGetsTheSDLOfItsUpstream(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	says := func(sdl string) { u.answer(200, `{"data":{"_service":{"sdl":"`+sdl+`"}}}`) }
	bare := strings.Replace(graphAPI("users", u.url, ""), "proxyOnly", "subgraph", 1)
	bare = strings.Replace(bare, `"not_versioned"`, `"x":1,"not_versioned"`, 1)
	bare = strings.Replace(bare, `{"method":"GET","path":"/capital","operation":"{ country(code: \"CH\") { capital } }"}`, "", 1)

	u.answer(200, `{"errors":[{"message":"Cannot query field \"_service\" on type \"Query\"."}]}`)
	b.Call("POST", "/api/apis", b.editor, bare).Want(400).
		Says(`it does not report its schema for federation, { _service { sdl } }: Cannot query field \"_service\"`, "; and it refuses to be introspected: Cannot query field", "check that proxy.target_url")
	says("type Query { a: Nope }")
	b.Call("POST", "/api/apis", b.editor, bare).Want(400).Says("The upstream's schema for federation is invalid", `Unknown type \"Nope\"`)
	says(users)
	b.Call("POST", "/api/apis", b.editor, bare).Want(200)
	b.Call("GET", "/api/apis/users", b.viewer, "").Want(200).Says(`"sdl":"`+users+`"`, "union _Entity = User", `"last_schema_update":"2`)
	if seen := u.seen[len(u.seen)-1]; seen != "s3cret" {
		t.Errorf("asked with X-Admin %q", seen)
	}
	b.Call("PUT", "/api/apis/users", b.editor, bare).Want(200)
	b.Call("GET", "/api/apis/users", b.viewer, "").Want(200).Says(`"sdl":"` + users + `"`)
	b.Call("POST", "/api/apis", b.editor, subgraphAPI("posts", posts, "")).Want(200)
	b.Call("POST", "/api/apis", b.editor, supergraphAPI("shop", ofBoth)).Want(200)

	b.Call("POST", "/api/apis/users/schema/sync", b.editor, "").Want(200).Says("up to date", `"sdl_changed":false`)
	says(strings.ReplaceAll(users, "}", `}\n`))
	b.Call("POST", "/api/apis/users/schema/sync", b.editor, "").Want(200).Says(`"applied":false`, `"sdl_changed":false`)
	says(sansName)
	b.Call("POST", "/api/apis/users/schema/sync?apply=false", b.editor, "").Want(200).Says(`"applied":false`, `"sdl_changed":true`, `"supergraphs":[{"api_id":"shop"`, `"place":"User.name"`)
	b.Call("POST", "/api/apis/users/schema/sync", b.editor, "").Want(200).Says(`"applied":true`)
	b.Call("GET", "/api/apis/users", b.viewer, "").Want(200).Says(`"sdl":"` + sansName + `"`)
	says(strings.Replace(sansName, "id: ID! }", `id: ID! } type Extra @key(fields: \"id\") { id: ID! @deprecated }`, 1))
	b.Call("POST", "/api/apis/users/schema/sync", b.editor, "").Want(200).Says(`"applied":true`)

	u.answer(200, `{"errors":[{"message":"no"}]}`)
	b.Call("POST", "/api/apis/users/schema/sync", b.editor, "").Want(502).Says("the stored one stays", "{ _service { sdl } }: no", "graphql.subgraph.sdl")
	u.answer(0, "")
	plain := strings.ReplaceAll(strings.Replace(bare, `"api_id":"users"`, `"api_id":"plain"`, 1), "/users/", "/plain/")
	b.Call("POST", "/api/apis", b.editor, plain).Want(200)
	b.Call("GET", "/api/apis/plain", b.viewer, "").Want(200).Says("type Country")
}

// supergraphAPI is a definition of a supergraph.
func supergraphAPI(id, subgraphs string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":%q,"use_keyless":true,"proxy":{"listen_path":"/%s/"},
		"graphql":{"enabled":true,"execution_mode":"supergraph","supergraph":{"subgraphs":%s}}}`, id, id, id, subgraphs)
}

// parsed returns a definition of a supergraph as its route would have it.
func parsed(t *testing.T, subgraphs string) *definition.API {
	t.Helper()
	api, err := definition.ParseAPI([]byte(supergraphAPI("s", subgraphs)))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func TestASupergraphIsComposedWhenItIsSaved(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/apis", b.editor, subgraphAPI("users", users, "")).Want(200)
	org, err := b.store.FirstOrg(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	api := parsed(t, `[{"name":"users","api_id":"users"},{"name":"posts","url":"http://posts.example","sdl":"`+posts+`"}]`)
	if _, err := b.server.schemas.Complete(t.Context(), org, api, nil, nil); err != nil {
		t.Fatal(err)
	}
	g := api.GraphQL
	if !strings.Contains(g.Schema, "posts: [String]") || g.Supergraph.MergedSDL != g.Schema || g.Supergraph.UpdatedAt == "" || g.Supergraph.Subgraphs[0].URL != "svc://users" || g.Supergraph.Subgraphs[0].SDL == "" {
		t.Errorf("%+v %+v", g, g.Supergraph)
	}
	g.Supergraph.UpdatedAt = "2025-01-01T00:00:00Z"
	again := parsed(t, `[{"name":"users","api_id":"users"},{"name":"posts","url":"http://posts.example","sdl":"`+posts+`"}]`)
	if _, err := b.server.schemas.Complete(t.Context(), org, again, nil, api); err != nil || again.GraphQL.Supergraph.UpdatedAt != "2025-01-01T00:00:00Z" {
		t.Errorf("%v, updated at %s", err, again.GraphQL.Supergraph.UpdatedAt)
	}

	broken := parsed(t, `[{"name":"users","api_id":"users"},{"name":"posts","url":"http://posts.example","sdl":"extend type User { a: Int }\nextend enum E { A }"}]`)
	_, err = b.server.schemas.Complete(t.Context(), org, broken, nil, nil)
	refused, ok := errors.AsType[*schemas.Refusal](err)
	want := []string{
		"graphql.supergraph.subgraphs[1].sdl: EXTENSION_WITH_NO_BASE: the extension orphan named 'E' was never resolved in the supergraph (posts, line 2)",
		"graphql.supergraph.subgraphs[1].sdl: KEY_MISSING_ON_EXTENSION: an extension of the entity named 'User' does not have a key directive (posts, line 1, users, line 1)",
	}
	if !ok || refused.Message != "Invalid GraphQL schema" || !slices.Equal(refused.Errors, want) {
		t.Errorf("%v: %q", err, refused.Errors)
	}
	_, err = b.server.schemas.Complete(t.Context(), org, parsed(t, `[{"name":"a","api_id":"none"}]`), nil, nil)
	if err == nil || err.Error() != "graphql.supergraph.subgraphs[0].api_id: names no API of the organisation" {
		t.Error(err)
	}
}

const ofBoth = `[{"name":"users","api_id":"users"},{"name":"posts","api_id":"posts"}]`

// composedOfBoth starts an admin with two subgraphs and the supergraph "shop".
func composedOfBoth(t *testing.T, change ...func(*Deps)) *bench {
	b := start(t, change...)
	b.Call("POST", "/api/apis", b.editor, subgraphAPI("users", users, "")).Want(200)
	b.Call("POST", "/api/apis", b.editor, subgraphAPI("posts", posts, "")).Want(200)
	b.Call("POST", "/api/apis", b.editor, supergraphAPI("shop", ofBoth)).Want(200)
	return b
}

func TestAPIsThatSupergraphsNameStay(t *testing.T) {
	b := composedOfBoth(t)
	b.Call("GET", "/api/apis/users/uses", b.viewer, "").Want(200).Says(`"supergraphs":[{"id":"shop","name":"shop"}]`)
	b.Call("DELETE", "/api/apis/users", b.editor, "").Want(409).Says("Supergraphs are composed of this API", "graphql.supergraph.subgraphs", `"Errors":["shop"]`)
	b.Call("POST", "/api/config/apply", b.editor, `{"delete":{"apis":["users"]}}`).Want(409).Says("Supergraphs are composed of an API", ": shop")

	const says = `must stay that of a GraphQL API with a schema of its own: the supergraph \"shop\" is composed of the API`
	plain := anAPI("users", "/users")
	b.Call("PUT", "/api/apis/users", b.editor, plain).Want(400).Says(`graphql: ` + says)
	b.Call("PUT", "/api/apis/users", b.editor, supergraphAPI("users", `[{"name":"a","url":"http://a.example","sdl":"type Query { a: Int }"}]`)).Want(400).Says(says)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+plain+`]}`).Want(400).Says(`apis[\"users\"].graphql: ` + says)

	alone := supergraphAPI("shop", `[{"name":"own","sdl":"type Query { a: Int }","url":"http://own.example"}]`)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+plain+`,`+alone+`],"delete":{"apis":["posts"]}}`).Want(200)
	b.Call("PUT", "/api/apis/shop", b.editor, supergraphAPI("shop", `[{"name":"a","api_id":"users"}]`)).Want(400).Says("graphql.supergraph.subgraphs[0].api_id: names an API that is not a GraphQL API with a schema")
	b.Call("DELETE", "/api/apis/users", b.editor, "").Want(200)
}

// What a supergraph names can be deleted by force, and the supergraph keeps what it has of it.
func TestASupergraphOutlivesItsSubgraph(t *testing.T) {
	b := composedOfBoth(t)
	b.Call("DELETE", "/api/apis/posts?force=true", b.editor, "").Want(200)
	kept := string(b.Call("GET", "/api/apis/shop", b.viewer, "").Want(200).Says("posts: [String]").Body)
	b.Call("PUT", "/api/apis/shop", b.editor, kept).Want(200)
	b.Call("POST", "/api/apis", b.editor, strings.NewReplacer(`"api_id":"shop"`, `"api_id":"copy"`, "/shop/", "/copy/").Replace(kept)).Want(400).
		Says("graphql.supergraph.subgraphs[1].api_id: names no API of the organisation")
}

func TestASupergraphComesWithItsSubgraphs(t *testing.T) {
	b := start(t)
	a, p := subgraphAPI("users", users, ""), subgraphAPI("posts", posts, "")
	shop := supergraphAPI("shop", ofBoth)
	const wrong = `type Query { a: Nope }`
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+shop+`,`+a+`,`+subgraphAPI("posts", wrong, "")+`]}`).Want(400).
		Says(`apis[\"posts\"]: graphql.subgraph.sdl: INVALID_SUBGRAPH`, `apis[\"shop\"].graphql.supergraph.subgraphs[1].api_id: names an API of this batch that has problems of its own`)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+shop+`,`+a+`,`+subgraphAPI("posts", "extend type User { a: Int }", "")+`]}`).Want(400).
		Says(`apis[\"shop\"]: graphql.supergraph.subgraphs[1].sdl: KEY_MISSING_ON_EXTENSION`)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+shop+`,`+a+`]}`).Want(400).Says(`subgraphs[1].api_id: names no API of the organisation`)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+p+`,`+shop+`,`+a+`]}`).Want(200)
	b.Call("GET", "/api/apis/shop", b.viewer, "").Want(200).Says("posts: [String]")

	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+shop+`,`+strings.Replace(p, "posts: [String]", "posts: [ID]", 1)+`]}`).Want(200)
	b.Call("GET", "/api/apis/shop", b.viewer, "").Want(200).Says("posts: [ID]")
}
