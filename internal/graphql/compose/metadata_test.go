package compose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// describe returns what a composition says about its subgraphs.
func describe(made *compose.Supergraph) string {
	var b strings.Builder
	for _, s := range made.Subgraphs {
		fmt.Fprintf(&b, "%s\n", s.Name)
		for _, t := range s.Types {
			fmt.Fprintf(&b, "  %s root=%t entity=%t %v external=%v keys=%v requires=%v provides=%v\n",
				t.Name, t.Root, t.Entity, t.Fields, t.External, t.Keys, t.Requires, t.Provides)
		}
		b.WriteString(s.SDL)
	}
	return b.String()
}

func TestMetadata(t *testing.T) {
	made, found := compose.Compose([]compose.Subgraph{
		{Name: "accounts", SDL: `
			schema { query: Root }
			type Root { me(
				"which one" id: ID @deprecated
			): User }
			"""A person"""
			type User @key(fields: "id") @key(fields: "org { id }") { id: ID! name: String @tag(name: "x") org: Org }
			type Org { id: ID! }`},
		{Name: "reviews", SDL: `
			extend type User @key(fields: "org { id }") {
				org: Org @external
				name: String @external
				"what they wrote" reviews(first: Int = 3, kind: [Kind!] = [GOOD, BAD]): [Review] @deprecated(reason: "use \"feed\"")
				greeting: String @requires(fields: "name")
			}
			type Org { "given" id: ID! }
			enum Kind { GOOD "not so" BAD }
			type Review { body: String author: User @provides(fields: "name") }`},
	})
	if made == nil {
		t.Fatal(problems(found))
	}
	const schema = `enum Kind {
  GOOD
  """
  not so
  """
  BAD
}

type Org {
  """
  given
  """
  id: ID!
}

type Query {
  me(
    """
    which one
    """
    id: ID @deprecated(reason: "No longer supported")
  ): User
}

type Review {
  body: String
  author: User
}

"""
A person
"""
type User {
  id: ID!
  name: String
  org: Org
  """
  what they wrote
  """
  reviews(
    first: Int = 3
    kind: [Kind!] = [GOOD, BAD]
  ): [Review] @deprecated(reason: "use \"feed\"")
  greeting: String
}
`
	if made.SDL != schema {
		t.Errorf("got\n%s\nwant\n%s", made.SDL, schema)
	}
	const want = `accounts
  Org root=false entity=false [id] external=[] keys=[] requires=[] provides=[]
  Query root=true entity=false [me] external=[] keys=[] requires=[] provides=[]
  User root=false entity=true [id name org] external=[] keys=[{id true} {org { id } true}] requires=[] provides=[]
type Org {
  id: ID!
}

type Query {
  me(
    """
    which one
    """
    id: ID @deprecated(reason: "No longer supported")
  ): User
}

"""
A person
"""
type User {
  id: ID!
  name: String
  org: Org
}
reviews
  Org root=false entity=false [id] external=[] keys=[] requires=[] provides=[]
  Review root=false entity=false [author body] external=[] keys=[] requires=[] provides=[{author name}]
  User root=false entity=true [greeting org reviews] external=[name] keys=[{org { id } true}] requires=[{greeting name}] provides=[]
enum Kind {
  GOOD
  """
  not so
  """
  BAD
}

type Org {
  """
  given
  """
  id: ID!
}

type Review {
  body: String
  author: User
}

type User {
  org: Org
  name: String
  """
  what they wrote
  """
  reviews(
    first: Int = 3
    kind: [Kind!] = [GOOD, BAD]
  ): [Review] @deprecated(reason: "use \"feed\"")
  greeting: String
}

type Query {
  _service: _Service!
}

type _Service {
  sdl: String
}
`
	if got := describe(made); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestServed(t *testing.T) {
	for _, c := range []struct{ sdl, want string }{
		{
			`extend type User @key(fields: "id") { id: ID! @external age: Int } type Post @key(fields: "id") { id: ID! }`,
			`union _Entity = Post | User

type _Service {
  sdl: String
}
`,
		},
		{`type Query { a: Int _service: _Service! }`, "type Query {\n  a: Int\n  _service: _Service!\n}\n"},
		{`schema { query: Root } type Root { a: Int } type T @key(fields: "id") { id: ID! }`, "  a: Int\n  _entities(\n    representations: [_Any!]!\n  ): [_Entity]!\n  _service: _Service!\n}\n"},
	} {
		text, found := compose.Served(compose.Subgraph{Name: "a", SDL: c.sdl})
		if len(found) > 0 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q\n%s", c.sdl, problems(found), text)
		}
		if _, err := sdl.Parse(text); err != nil {
			t.Errorf("%s: %v\n%s", c.sdl, err, text)
		}
	}
	text, found := compose.Served(compose.Subgraph{Name: "a", SDL: "type Query { a: Nope }"})
	if text != "" || len(found) != 1 || found[0].Code != compose.InvalidSubgraph {
		t.Errorf("%q, %q", text, problems(found))
	}
}
