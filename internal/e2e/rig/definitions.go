package rig

import (
	"encoding/json"
	"maps"
	"strings"
)

// Transport sets the transport options of an API and returns it.
func Transport(api Object, with Object) Object {
	api["proxy"].(Object)["transport"] = with
	return api
}

// GraphSchema is the schema of most tests. No name in it is part of another or of a
// message of the gateway.
const GraphSchema = `
type Query {
  a: A
  country(code: ID!): Country
  countries(first: Int, filter: Filter): [Country!]!
  animals: [Animal!]!
  pet: Pet
  secret: String
}
type Mutation { rename(code: ID!, name: String!): Country }
type Subscription { renamed: Country }
type A { a: A b: String }
type Country { code: ID! name: String! continent: Continent! }
type Continent { code: ID! countries: [Country!]! }
interface Animal { name: String! }
type Cat implements Animal { name: String! lives: Int! }
type Dog implements Animal { name: String! barks: Boolean! }
union Pet = Cat | Dog
enum Order { ASCENDING DESCENDING }
input Filter { prefix: String = "x", minimum: Int!, order: Order }
`

// GraphDef returns an API with GraphSchema below /<id>/. more is merged into its
// graphql object.
func GraphDef(id, target string, keyless bool, more Object) Object {
	def := APIDef(id, target, keyless)
	graph := Object{"enabled": true, "execution_mode": "proxyOnly", "schema": GraphSchema}
	maps.Copy(graph, more)
	def["graphql"] = graph
	return def
}

// AccessWith returns access rights to one API with rules.
func AccessWith(id string, rules Object) Object {
	rights := AccessTo(id)
	maps.Copy(rights[id].(Object), rules)
	return rights
}

// Restrict returns an entry of restricted_types.
func Restrict(of string, fields ...string) Object { return Object{"name": of, "fields": fields} }

// JSONMedia is the media type of JSON.
const JSONMedia = "application/json"

// QueryBody returns the body of a POST with one operation.
func QueryBody(query string) string { return `{"query":` + Quoted(query) + `}` }

// Quoted returns a text as JSON.
func Quoted(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // strings always encode
	return strings.TrimSpace(b.String())
}

// QueryString returns the query string of a GET with one operation.
func QueryString(query string) string {
	return "?query=" + strings.NewReplacer(" ", "+", "\"", "%22").Replace(query)
}
