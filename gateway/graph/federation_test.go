package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/compose"
)

// A federated world is what a table of operations is asked of.
type federated struct {
	name      string
	subgraphs []compose.Subgraph
	data      func() (root object, entities map[string][]object)
	cases     []federationCase
}

type federationCase struct{ name, query, variables string }

// library has nested keys, @extends, and entities that lead to entities of a third subgraph.
var library = []compose.Subgraph{
	{Name: "books", SDL: `
		type Query { books: [Book!]! book(code: String!): Book }
		type Book @key(fields: "isbn { code }") { isbn: Isbn! title: String year: Int edition: Edition }
		type Isbn { code: String! }
		type Edition { group: String count: Int }`},
	{Name: "pages", SDL: `
		type Book @extends @key(fields: "isbn { code }") {
			isbn: Isbn! @external title: String @external year: Int @external edition: Edition @external
			pages: Int blurb: String @requires(fields: "title edition { group }") author: Author next: Book
		}
		type Isbn { code: String! }
		type Edition { group: String count: Int }
		extend type Author @key(fields: "id") { id: ID! @external }`},
	{Name: "authors", SDL: `
		extend type Query { search(text: String): [Found!]! names: [Named] }
		type Author implements Named @key(fields: "id") @key(fields: "name") { id: ID! name: String! born: Int books: [Book!] }
		extend type Book @key(fields: "isbn { code }") { isbn: Isbn! @external }
		type Isbn { code: String! }
		union Found = Book | Author
		interface Named { name: String! }
		type Shop implements Named { name: String! open: Boolean stock: [Book] }`},
	{Name: "prizes", SDL: `
		extend type Author @key(fields: "name") { name: String! @external born: Int @external prizes: [String!]! age(in: Int!): Int @requires(fields: "born") }`},
}

func libraryWorld() (root object, entities map[string][]object) {
	var authors, books []object
	for i, name := range []string{"Eco", "Le Guin"} {
		authors = append(authors, object{
			"__typename": "Author", "id": fmt.Sprint("a", i), "name": name, "born": 1930 + i, "prizes": []any{fmt.Sprint("prize of ", name)},
			"age": resolver(func(o, a object) any { return number(a["in"]) - number(o["born"]) }),
		})
	}
	for i := range 4 {
		books = append(books, object{
			"__typename": "Book", "isbn": object{"code": fmt.Sprint("c", i)}, "edition": object{"group": fmt.Sprint("g", i%2), "count": i}, "title": []any{"Rose", nil, "Dune", "Left Hand"}[i], "year": 1980 + i, "pages": 100 * i,
			"author": []any{authors[0], authors[1], nil, authors[0]}[i],
			"blurb": resolver(func(o, _ object) any {
				edition, _ := o["edition"].(object)
				return fmt.Sprint(o["title"], " of ", edition["group"])
			}),
		})
	}
	for i, b := range books {
		b["next"] = books[(i+1)%4]
	}
	authors[0]["books"], authors[1]["books"] = []any{books[0], books[3]}, []any{}
	root = object{
		"books": anys(books), "search": []any{books[1], authors[0], books[0]}, "names": []any{authors[1], nil, object{"__typename": "Shop", "name": "Shop", "open": true, "stock": []any{nil, books[2]}}},
		"book": resolver(func(_, a object) any {
			for _, b := range books {
				if b["isbn"].(object)["code"] == a["code"] {
					return b
				}
			}
			return nil
		}),
	}
	return root, map[string][]object{"Author": authors, "Book": books}
}

const link = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable", "@external", "@requires", "@provides"]) `

// spots has fields that several subgraphs resolve, by Federation 2.
var spots = []compose.Subgraph{
	{Name: "map", SDL: link + `type Query { spots: [Spot!]! spot(id: ID!): Spot }
		type Spot @key(fields: "id") { id: ID! name: String @shareable position: Position! kind: Kind }
		type Position @shareable { x: Int! y: Int! } enum Kind { PEAK LAKE }`},
	{Name: "tours", SDL: link + `type Query { tour: [Spot!]! favourite: Spot @shareable }
		type Spot @key(fields: "id") { id: ID! name: String @shareable visits: Int near(within: Range): [Spot!] }
		type Position @shareable { x: Int! y: Int! } input Range { metres: Int! from: [Float!] }`},
	{Name: "photos", SDL: link + `type Query { favourite: Spot @shareable }
		type Spot @key(fields: "id") { id: ID! photos(kind: Kind): [Photo!]! } type Photo { url: String taken: Position kind: Kind }
		type Position @shareable { x: Int! y: Int! } enum Kind { PEAK LAKE }`},
}

func spotsWorld() (root object, entities map[string][]object) {
	var list []object
	for i, kind := range []string{"PEAK", "LAKE", "PEAK"} {
		list = append(list, object{
			"__typename": "Spot", "id": fmt.Sprint(i), "name": fmt.Sprint("Spot ", i), "position": object{"x": i, "y": -i}, "kind": kind, "visits": 100 * i,
			"photos": resolver(func(_, a object) any {
				return []any{object{"url": fmt.Sprint("/", i), "taken": object{"x": i, "y": 0}, "kind": a["kind"]}}
			}),
		})
	}
	for i, s := range list {
		s["near"] = resolver(func(_, a object) any {
			within, _ := a["within"].(object)
			if number(or(within["metres"], 1000)) < 10 {
				return []any{}
			}
			return []any{list[(i+1)%3], list[(i+2)%3]}
		})
	}
	root = object{
		"spots": anys(list), "tour": []any{list[2], list[0]}, "favourite": list[1],
		"spot": resolver(func(_, a object) any { return find(list, "id", a["id"]) }),
	}
	return root, map[string][]object{"Spot": list}
}

var federations = []federated{
	{"shop", shop, shopWorld, []federationCase{
		{"one subgraph", `{ me { id name role } users { email } }`, ``},
		{"two subgraphs at the root", `{ me { name } top { upc } }`, ``},
		{"a key", `{ me { reviews { body stars } } }`, ``},
		{"a key in a list", `{ top(first: 3) { name inStock } }`, ``},
		{"a key in a list in a list", `{ users { friends { reviews { body } } } }`, ``},
		{"nulls in a list of entities", `{ top(first: 2) { warehouses { city capacity } } }`, ``},
		{"an entity that is null", `{ nobody { name parcels } top(first: 4) { warehouse { capacity } } }`, ``},
		{"a second key", `{ me { parcels } }`, ``},
		{"a key that a third subgraph has", `{ reviews { author { parcels } } }`, ``},
		{"a compound key", `{ product(upc: "p3") { pallets } }`, ``},
		{"a compound key that a third subgraph has", `{ reviews { product { pallets } } }`, ``},
		{"requires", `{ top(first: 4) { shipping } }`, ``},
		{"requires beside what it requires", `{ top { price shipping weight } }`, ``},
		{"requires through another subgraph", `{ reviews { product { shipping } } }`, ``},
		{"nested requires", `{ users { town } }`, ``},
		{"nested requires with the object selected", `{ users { address { zip } town } }`, ``},
		{"requires with arguments", `{ me { greeting(word: "Hi") other: greeting } }`, ``},
		{"provides", `{ reviews { author { id name } } }`, ``},
		{"provides and more", `{ reviews { author { name email } writer { name } } }`, ``},
		{"an entity of a third subgraph through an entity", `{ reviews { product { warehouse { city capacity trucks { plate } } } } }`, ``},
		{"there and back", `{ me { reviews { product { reviews { author { name role } } } } } }`, ``},
		{"an interface of one subgraph", `{ node(id: "2") { __typename id ... on User { name reviews { body } } } }`, ``},
		{"an interface with entities and others", `{ things { __typename upc name ... on Product { inStock pallets } ... on Service { hours } } }`, ``},
		{"a union with nulls", `{ feed { __typename ... on Review { body author { email } } ... on Product { name shipping } } }`, ``},
		{"a fragment on an interface in a union", `{ feed { ... on Thing { upc name } } }`, ``},
		{"aliases", `{ a: me { n: name r: reviews { b: body } x: parcels } b: user(id: 2) { n: email r: greeting } }`, ``},
		{"an alias that hides a key", `{ me { id: name email: role parcels reviews { id: body } } }`, ``},
		{"variables", `query($f: Int, $u: String!, $w: String) { top(first: $f) { upc } product(upc: $u) { reviews { author { greeting(word: $w) } } } }`, `{"f": 1, "u": "p1", "w": "Hey"}`},
		{"variables that are not given", `query($f: Int, $w: String = "Yo") { top(first: $f) { upc } me { reviews(first: $f) { body } greeting(word: $w) } }`, `{}`},
		{"one argument in two subgraphs", `query($n: Int) { top(first: $n) { upc } me { reviews(first: $n) { id } } }`, `{"n": 1}`},
		{"fragments", `{ me { ...U } users { ...U ...V } } fragment U on User { name ...V } fragment V on User { reviews { ...R } parcels } fragment R on Review { body }`, ``},
		{"fields of two fragments", `{ me { ... on User { address { city } } ... { address { zip } reviews { id } } reviews { body } } }`, ``},
		{"skip and include", `query($y: Boolean!, $n: Boolean!) { me { name @include(if: $n) parcels @skip(if: $n) reviews @include(if: $y) { body } } }`, `{"y": true, "n": false}`},
		{"skip and include by constants", `{ me { name @include(if: false) parcels @skip(if: false) reviews @include(if: true) { body } town @skip(if: true) } }`, ``},
		{"skip and include by both", `query($y: Boolean!) { me { reviews @include(if: $y) { body } greeting @include(if: false) } }`, `{"y": true}`},
		{"a fragment that is skipped", `query($y: Boolean!) { me { id ... @skip(if: $y) { parcels } ...F @include(if: $y) } } fragment F on User { town }`, `{"y": true}`},
		{"the same entity by two ways", `{ a: user(id: 1) { name parcels } b: user(id: 1) { name town } me { parcels } }`, ``},
		{"typenames", `{ __typename me { __typename reviews { __typename product { __typename } } } }`, ``},
		{"enums and value types", `{ users { role address { city zip } } }`, ``},
		{"an argument with a default", `{ top { name } product(upc: "p2") { name(upper: true) plain: name(upper: false) } }`, ``},
		{"a mutation", `mutation { rename(id: 2, name: "Eve") { name reviews { body } } }`, ``},
		{"mutations of several subgraphs in order", `mutation { a: rename(id: 1, name: "X") { name } review(upc: "p1", input: {body: "new"}) { body stars author { name email } product { name } } b: rename(id: 2, name: "Y") { parcels } }`, ``},
		{"an error in a nullable field of a list", `{ top { upc brand { name } } product(upc: "p1") { secret } me { name } }`, ``},
		{"an error below an entity", `{ me { name } reviews { id product { upc secret } } }`, ``},
		{"an unknown entity", `{ user(id: 9) { name parcels } product(upc: "none") { inStock } }`, ``},
	}},
	{"library", library, libraryWorld, []federationCase{
		{"a nested key", `{ books { title pages } }`, ``},
		{"a nested key that is selected too", `{ books { isbn { code } pages } }`, ``},
		{"nested requires beside a nested key", `{ books { blurb } }`, ``},
		{"nested requires from below", `{ search { ... on Book { blurb title } } }`, ``},
		{"an extension without fields", `{ books { author { name born } } }`, ``},
		{"a chain of four subgraphs", `{ books { author { prizes books { title author { prizes } } } } }`, ``},
		{"requires by a second key", `{ book(code: "c1") { author { age(in: 2000) } } }`, ``},
		{"a union of entities", `{ search { __typename ... on Book { title pages } ... on Author { name prizes books { year } } } }`, ``},
		{"an interface of which one type is an entity", `{ names { __typename name ... on Author { prizes } ... on Shop { open stock { title pages } } } }`, ``},
		{"an entity through itself", `{ book(code: "c0") { next { title next { pages next { title author { name } } } } } }`, ``},
		{"requires twice", `{ books { a: blurb next { blurb } author { x: age(in: 1990) y: age(in: 2020) } } }`, ``},
	}},
	{"spots", spots, spotsWorld, []federationCase{
		{"shareable fields", `{ spots { name visits } tour { name position { x } } }`, ``},
		{"a shareable root field", `{ favourite { id name visits photos { url } } }`, ``},
		{"shareable value types", `{ tour { position { x y } photos { taken { x y } } } }`, ``},
		{"enums as arguments", `query($k: Kind) { spots { kind photos(kind: PEAK) { kind } other: photos(kind: $k) { kind } } }`, `{"k": "LAKE"}`},
		{"input objects", `query($r: Range) { spots { near(within: $r) { id visits position { y } } far: near(within: {metres: 5, from: [1, 2.5]}) { id } } }`, `{"r": {"metres": 50}}`},
		{"an entity of two definitions through itself", `{ spot(id: 1) { near { name near { photos { url } kind } } } }`, ``},
	}},
}

// An answered operation, without what differs between gateways: the texts of errors.
type answered struct {
	data  any
	paths []string // of errors, sorted
}

func readAnswer(t testing.TB, body string) (a answered) {
	t.Helper()
	var read struct {
		Data   any
		Errors []struct{ Path []any }
	}
	if err := json.Unmarshal([]byte(body), &read); err != nil {
		t.Fatal(err, body)
	}
	a.data = read.Data
	for _, e := range read.Errors {
		a.paths = append(a.paths, fmt.Sprint(e.Path))
	}
	slices.Sort(a.paths)
	return a
}

func requestOf(c federationCase) string {
	body := `{"query":` + quoted(c.query)
	if c.variables != "" {
		body += `,"variables":` + c.variables
	}
	return body + "}"
}

// Each operation has the answer that one service with all data gives.
func TestFederation(t *testing.T) {
	for _, f := range federations {
		w := newSupergraph(t, f.subgraphs)
		root, entities := f.data()
		whole := newExecutor(served(t, w.sources, f.subgraphs, root, entities).SDL, root, entities, nil)
		for _, c := range f.cases {
			status, got := w.post(requestOf(c), nil)
			want := string(whole.answer([]byte(requestOf(c))))
			if status != 200 || !reflect.DeepEqual(readAnswer(t, got), readAnswer(t, want)) {
				t.Errorf("%s: %s: %s\n got %d %s\nwant %s\nasked\n%s", f.name, c.name, c.query, status, got, want, strings.Join(w.asked(), "\n"))
			}
			w.asked()
		}
	}
}

// theirFaults are the cases that the reference answers wrongly: TestFederation holds our
// answers against those of one service.
var theirFaults = map[string]string{
	"an alias that hides a key":     "the key is answered in place of the field with its name as alias",
	"skip and include by constants": "a field is null that is included",
	"skip and include by both":      "a field is null that is included",
}

// TestTheReferenceHasTheSameAnswers asks @apollo/gateway for the operations of TestFederation,
// from the directory in SLUICE_TEST_FEDERATION:
//
//	npm install --ignore-scripts @apollo/gateway@2.14.4 graphql@16.15.0
func TestTheReferenceHasTheSameAnswers(t *testing.T) {
	dir := os.Getenv("SLUICE_TEST_FEDERATION")
	if _, err := os.Stat(filepath.Join(dir, "node_modules/@apollo/gateway")); dir == "" || err != nil {
		t.Skip("SLUICE_TEST_FEDERATION names no directory with the npm packages @apollo/gateway and graphql")
	}
	script, err := filepath.Abs("testdata/reference.cjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range federations {
		w := newSupergraph(t, f.subgraphs)
		root, entities := f.data()
		served(t, w.sources, f.subgraphs, root, entities)
		var input struct {
			Subgraphs []object          `json:"subgraphs"`
			Requests  []json.RawMessage `json:"requests"`
		}
		for _, s := range f.subgraphs {
			input.Subgraphs = append(input.Subgraphs, object{"name": s.Name, "url": w.URL + "/" + s.Name, "sdl": s.SDL})
		}
		for _, c := range f.cases {
			input.Requests = append(input.Requests, json.RawMessage(requestOf(c)))
		}
		asked, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		node := exec.Command("node", script)
		node.Dir, node.Stdin, node.Stderr = dir, bytes.NewReader(asked), os.Stderr
		answer, err := node.Output()
		if err != nil {
			t.Fatal(err)
		}
		var theirs []json.RawMessage
		if err := json.Unmarshal(answer, &theirs); err != nil {
			t.Fatal(err)
		}
		for i, c := range f.cases {
			_, got := w.post(requestOf(c), nil)
			ours, reference := readAnswer(t, got), readAnswer(t, string(theirs[i]))
			same, verdict := reflect.DeepEqual(ours, reference), "same"
			if !same {
				verdict = "different: " + theirFaults[c.name]
			}
			if same != (theirFaults[c.name] == "") {
				t.Errorf("%s\n ours %s\ntheirs %s", c.query, got, theirs[i])
			}
			t.Logf("%-8s %-50s %s", f.name, c.name, verdict)
		}
	}
}
