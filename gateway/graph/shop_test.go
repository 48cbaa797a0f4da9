package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/compose"
)

// shop is what most tests of supergraphs ask: what every kind of key and directive of
// federation is used in.
var shop = []compose.Subgraph{
	{Name: "accounts", SDL: `
		type Query { me: User users: [User!]! user(id: ID!): User node(id: ID!): Node nobody: User }
		type Mutation { rename(id: ID!, name: String!): User }
		interface Node { id: ID! }
		type User implements Node @key(fields: "id") @key(fields: "email") {
			id: ID! email: String! name: String role: Role address: Address friends: [User!] manager: User
		}
		enum Role { ADMIN GUEST }
		type Address { city: String zip: String }`},
	{Name: "products", SDL: `
		extend type Query { top(first: Int = 2, above: Int): [Product!]! product(upc: String!): Product things: [Thing!]! }
		type Product implements Thing @key(fields: "upc") @key(fields: "sku brand { name }") {
			upc: String! sku: String brand: Brand name(upper: Boolean = false): String price: Int weight: Int secret: String!
		}
		type Brand { name: String country: String }
		interface Thing { upc: String! name(upper: Boolean = false): String }
		type Service implements Thing { upc: String! name(upper: Boolean = false): String hours: Int }`},
	{Name: "reviews", SDL: `
		extend type Query { reviews: [Review!]! feed: [Item] }
		extend type Mutation { review(upc: String!, input: NewReview!): Review }
		input NewReview { body: String! stars: Int = 3 }
		union Item = Review | Product
		type Review @key(fields: "id") { id: ID! body: String stars: Int author: User @provides(fields: "name") writer: User product: Product flagged: Boolean! }
		type Address { city: String zip: String }
		extend type User @key(fields: "id") {
			id: ID! @external name: String @external address: Address @external
			reviews(first: Int): [Review!] greeting(word: String = "Hello"): String @requires(fields: "name") town: String @requires(fields: "address { city }")
		}
		extend type Product @key(fields: "upc") { upc: String! @external reviews: [Review!] }`},
	{Name: "inventory", SDL: `
		extend type Product @key(fields: "upc") {
			upc: String! @external weight: Int @external price: Int @external
			inStock: Boolean shipping: Int @requires(fields: "price weight") warehouse: Warehouse warehouses: [Warehouse]
		}
		type Warehouse @key(fields: "id") { id: ID! city: String }`},
	{Name: "logistics", SDL: `
		extend type Warehouse @key(fields: "id") { id: ID! @external capacity: Int trucks: [Truck!]! }
		type Truck { plate: String load: [Product] }
		extend type User @key(fields: "email") { email: String! @external parcels: Int }
		extend type Product @key(fields: "sku brand { name }") { sku: String @external brand: Brand @external pallets: Int }
		type Brand { name: String country: String }`},
}

// shopWorld returns the data of the shop: the fields of the root types, and entities.
func shopWorld() (root object, entities map[string][]object) {
	var users, products, reviews, warehouses []object
	for i, name := range []string{"Ada", "Bob", "Cem"} {
		users = append(users, object{
			"__typename": "User", "id": fmt.Sprint(i + 1), "email": strings.ToLower(name) + "@x.org", "name": name, "role": []any{"ADMIN", "GUEST"}[min(i, 1)],
			"address": object{"city": []any{"Ulm", "Rom", nil}[i], "zip": fmt.Sprint(10 + i)}, "parcels": 5 * i,
			"greeting": resolver(func(o, a object) any { return fmt.Sprint(or(a["word"], "Hello"), " ", o["name"]) }),
			"town": resolver(func(o, _ object) any {
				address, _ := o["address"].(object)
				return fmt.Sprint("in ", address["city"])
			}),
		})
	}
	for i := range 3 {
		warehouses = append(warehouses, object{"__typename": "Warehouse", "id": fmt.Sprint("w", i), "city": []string{"Köln", "Genf", "Prag"}[i], "capacity": 100 * i, "trucks": []any{object{"plate": fmt.Sprint("T", i)}}})
	}
	for i := range 4 {
		brand := object{"name": []string{"Acme", "Bolt"}[i%2], "country": "DE"}
		p := object{
			"__typename": "Product", "upc": fmt.Sprint("p", i), "sku": fmt.Sprint("s", i/2), "brand": brand, "price": 10 * i, "weight": i, "inStock": i%2 == 0, "pallets": 7 * i,
			"name": resolver(func(_, a object) any {
				if a["upper"] == true {
					return fmt.Sprint("PRODUCT ", i)
				}
				return fmt.Sprint("Product ", i)
			}),
			"shipping":  resolver(func(o, _ object) any { return number(o["price"]) + 2*number(o["weight"]) }),
			"warehouse": nil, "warehouses": []any{warehouses[0], nil, warehouses[i%3]}, "secret": errors.New("the secret is kept"),
		}
		if i < 3 {
			p["warehouse"] = warehouses[i]
		}
		products = append(products, p)
	}
	for i := range 5 {
		reviews = append(reviews, object{
			"__typename": "Review", "id": fmt.Sprint("r", i), "body": fmt.Sprint("text ", i), "stars": i, "flagged": i == 2,
			"author": users[i%3], "writer": users[(i+1)%3], "product": products[i%4],
		})
	}
	of := func(key string, o object) []any {
		list := []any{}
		for _, r := range reviews {
			if r[key].(object)["__typename"] == o["__typename"] && (r[key].(object)["id"] == o["id"] && r[key].(object)["upc"] == o["upc"]) {
				list = append(list, r)
			}
		}
		return list
	}
	for i, u := range users {
		u["friends"], u["manager"] = []any{users[(i+1)%3], users[(i+2)%3]}, []any{nil, users[0], users[1]}[i]
		u["reviews"] = resolver(func(o, a object) any {
			list := of("author", o)
			if first, ok := a["first"]; ok && first != nil {
				list = list[:min(number(first), len(list))]
			}
			return list
		})
	}
	for _, p := range products {
		p["reviews"] = of("product", p)
	}
	for i, w := range warehouses {
		w["trucks"].([]any)[0].(object)["load"] = []any{products[i], nil, products[3]}
	}
	root = object{
		"me": users[0], "users": anys(users), "nobody": nil, "reviews": anys(reviews),
		"user": resolver(func(_, a object) any { return find(users, "id", a["id"]) }), "node": resolver(func(_, a object) any { return find(users, "id", a["id"]) }),
		"product": resolver(func(_, a object) any { return find(products, "upc", a["upc"]) }),
		"top": resolver(func(_, a object) any {
			list := []any{}
			for _, p := range products {
				if a["above"] == nil || number(p["price"]) > number(a["above"]) {
					list = append(list, p)
				}
			}
			return list[:min(number(or(a["first"], 2)), len(list))]
		}),
		"things": []any{products[1], object{"__typename": "Service", "upc": "s9", "name": "Repair", "hours": 3}, products[0]},
		"feed":   []any{reviews[0], products[2], nil, products[1], reviews[3]},
		"rename": resolver(func(_, a object) any {
			u, ok := find(users, "id", a["id"]).(object)
			if !ok {
				return nil
			}
			u = maps.Clone(u)
			u["name"] = a["name"]
			return u
		}),
		"review": resolver(func(_, a object) any {
			in := a["input"].(object)
			return object{"__typename": "Review", "id": "new", "body": in["body"], "stars": or(in["stars"], 3), "author": users[1], "product": find(products, "upc", a["upc"])}
		}),
	}
	return root, map[string][]object{"User": users, "Product": products, "Review": reviews, "Warehouse": warehouses}
}

func or(v, other any) any {
	if v == nil {
		return other
	}
	return v
}

func number(v any) int {
	switch v := v.(type) {
	case int:
		return v
	case float64:
		return int(v)
	}
	return 0
}

func anys(list []object) (all []any) {
	for _, o := range list {
		all = append(all, o)
	}
	return all
}

func find(list []object, key string, value any) any {
	for _, o := range list {
		if o[key] == fmt.Sprint(value) {
			return o
		}
	}
	return nil
}

// served serves the subgraphs of a composition from a world, each below its name.
func served(t testing.TB, s *sources, subgraphs []compose.Subgraph, root object, entities map[string][]object) *compose.Supergraph {
	t.Helper()
	made, problems := compose.Compose(subgraphs)
	if made == nil {
		t.Fatal(problems)
	}
	for i := range made.Subgraphs {
		m := &made.Subgraphs[i]
		for _, sub := range subgraphs {
			if sub.Name == m.Name {
				text, problems := compose.Served(sub)
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				s.does("/"+m.Name, newExecutor(text, root, entities, m).ServeHTTP)
			}
		}
	}
	return made
}

// supergraphOf returns the definition of a supergraph whose subgraphs are sources.
func supergraphOf(s *sources, subgraphs []compose.Subgraph) *definition.API {
	var members []object
	for _, sub := range subgraphs {
		members = append(members, object{"name": sub.Name, "url": s.URL + "/" + sub.Name, "sdl": sub.SDL})
	}
	text, err := json.Marshal(object{
		"api_id": "graph", "name": "graph", "use_keyless": true, "enable_context_vars": true, "proxy": object{"listen_path": "/graph/"},
		"graphql": object{"enabled": true, "execution_mode": "supergraph", "batch_max": 5, "supergraph": object{"subgraphs": members}},
	})
	if err != nil {
		panic(err)
	}
	api, err := definition.ParseAPI(text)
	if err != nil {
		panic(err)
	}
	return api
}

// newShop returns a gateway that serves the shop.
func newShop(t testing.TB, change ...func(*definition.API)) *world {
	t.Helper()
	w := newSupergraph(t, shop, change...)
	root, entities := shopWorld()
	served(t, w.sources, shop, root, entities)
	return w
}

// newSupergraph returns a gateway with a supergraph whose subgraphs answer nothing yet.
func newSupergraph(t testing.TB, subgraphs []compose.Subgraph, change ...func(*definition.API)) *world {
	t.Helper()
	w := newEmptyWorld(t)
	w.serve("1", supergraphOf(w.sources, subgraphs), change...)
	return w
}

// serve replaces the API of the gateway.
func (w *world) serve(revision string, api *definition.API, change ...func(*definition.API)) {
	w.t.Helper()
	for _, c := range change {
		c(api)
	}
	if failed := w.Gateway.Apply(&definition.Bundle{Revision: revision, APIs: []*definition.API{api}}); len(failed) > 0 {
		w.t.Fatal(failed)
	}
}
