package reference

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/portal/clean"
)

// lines writes a node and what is in it, one a line.
func lines(n *Node, indent string, b *strings.Builder) {
	fmt.Fprintf(b, "%s%s: %s", indent, n.Name, n.Type.Text)
	if n.Required {
		b.WriteString(" required")
	}
	if len(n.Facts) > 0 {
		fmt.Fprintf(b, " [%s]", strings.Join(n.Facts, "; "))
	}
	if len(n.Enum) > 0 {
		fmt.Fprintf(b, " {%s}", strings.Join(n.Enum, ","))
	}
	if n.Variants != "" {
		fmt.Fprintf(b, " %s", n.Variants)
	}
	if n.Cut {
		fmt.Fprintf(b, " → %s", n.Type.ID)
	}
	b.WriteByte('\n')
	for _, c := range n.Children {
		lines(c, indent+"  ", b)
	}
}

func shapeOf(t *testing.T, schemas, name string) string {
	t.Helper()
	ref, err := OpenAPI([]byte(`{"openapi":"3.1.0","info":{"title":"T","version":"1"},"paths":{},"components":{"schemas":` + schemas + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	lines(ref.Entry("type."+name).Shape, "", &b)
	return b.String()
}

func TestSchemasAreWrittenOut(t *testing.T) {
	for name, c := range map[string]struct{ schemas, want string }{
		"plain members": {
			`{"A":{"type":"object","required":["id"],"properties":{"id":{"type":"integer","format":"int64","minimum":1},"name":{"type":"string","maxLength":9,"default":"x"}}}}`,
			": object\n  id: integer (int64) required [at least 1]\n  name: string [length at most 9; default x]\n",
		},
		"null in 3.0 and 3.1": {
			`{"A":{"properties":{"a":{"type":"string","nullable":true},"b":{"type":["integer","null"]},"c":{"oneOf":[{"type":"string"},{"type":"null"}]}}}}`,
			": object\n  a: string or null\n  b: integer or null\n  c: string or null\n",
		},
		"a schema that contains itself": {
			`{"A":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/A"},"all":{"type":"array","items":{"$ref":"#/components/schemas/A"}}}}}`,
			": object\n  next: A → type.A\n  all: list of A → type.A\n",
		},
		"two that contain each other": {
			`{"A":{"properties":{"b":{"$ref":"#/components/schemas/B"}}},"B":{"properties":{"a":{"$ref":"#/components/schemas/A"}}}}`,
			": object\n  b: B\n    a: A → type.A\n",
		},
		"all of": {
			`{"A":{"allOf":[{"$ref":"#/components/schemas/B"},{"properties":{"own":{"type":"boolean"}}}]},"B":{"properties":{"from":{"type":"string"}}}}`,
			": object\n  from: string\n  own: boolean\n",
		},
		"one of": {
			`{"A":{"oneOf":[{"$ref":"#/components/schemas/B"},{"type":"string"}]},"B":{"properties":{"x":{"type":"number"}}}}`,
			": one of one of\n  : B\n    x: number\n  : string\n",
		},
		"enums and constants": {
			`{"A":{"properties":{"e":{"type":"string","enum":["a","b",null]},"c":{"const":4}}}}`,
			": object\n  e: string {a,b,null}\n  c: any {4}\n",
		},
		"names that are not listed": {
			`{"A":{"type":"object","additionalProperties":{"type":"string"}}}`,
			": object\n  (any other name): string\n",
		},
		"a reference that leads nowhere": {`{"A":{"properties":{"x":{"$ref":"#/components/schemas/None"}}}}`, ": object\n  x: None\n"},
	} {
		if got := shapeOf(t, c.schemas, "A"); got != c.want {
			t.Errorf("%s:\n%swant\n%s", name, got, c.want)
		}
	}
}

// Schemas that refer to each other many times do not grow without bounds.
func TestManyReferencesAreBounded(t *testing.T) {
	var all []string
	for i := range 40 {
		var members []string
		for j := range 40 {
			members = append(members, fmt.Sprintf(`"m%d":{"$ref":"#/components/schemas/S%d"}`, j, j))
		}
		all = append(all, fmt.Sprintf(`"S%d":{"type":"object","properties":{%s}}`, i, strings.Join(members, ",")))
	}
	if got := shapeOf(t, "{"+strings.Join(all, ",")+"}", "S0"); strings.Count(got, "\n") > 2*maxNodes {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}

const shop = `{"openapi":"3.0.3","info":{"title":"Shop","version":"2","description":"<p>All.</p>"},"servers":[{"url":"/shop"}],"tags":[{"name":"Orders"},{"name":"Empty"}],
 "paths":{"/orders/{id}":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"},"example":7}],
  "get":{"tags":["Orders"],"operationId":"get order","summary":"One","deprecated":true,"parameters":[{"$ref":"#/components/parameters/limit"}],
   "responses":{"200":{"description":"<p>It.</p>","headers":{"X-Left":{"schema":{"type":"integer"}}},"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Order"}}}}}},
  "put":{"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Order"},"examples":{"one":{"value":{"z":1,"a":2}}}}}},"responses":{"204":{"description":"Done"}}}}},
 "components":{"parameters":{"limit":{"name":"limit","in":"query","schema":{"type":"integer","maximum":10}}},"schemas":{"Order":{"type":"object","properties":{"id":{"type":"integer","example":7},"state":{"enum":["open","<b>"]}}}}}}`

func TestOperationsHaveParametersBodiesAndAnswers(t *testing.T) {
	ref, err := OpenAPI([]byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	if ref.Title != "Shop" || ref.Server != "/shop" || len(ref.Groups) != 2 || ref.Groups[0].Name != "Orders" || ref.Groups[1].Name != "Operations" {
		t.Errorf("%+v", ref)
	}
	get := ref.Entry("get-order")
	if get == nil || get.Method != "GET" || !get.Deprecated || len(get.Parameters) != 2 || get.Parameters[0].Name != "limit" || get.Parameters[1].Example != "7" {
		t.Fatalf("%+v", get)
	}
	answer := get.Responses[0]
	if answer.Status != "200" || len(answer.Headers) != 1 || answer.Headers[0].Name != "X-Left" || answer.Formats[0].Shape.Type.ID != "type.Order" {
		t.Errorf("%+v", answer)
	}
	if want := "{\n  \"id\": 7,\n  \"state\": \"open\"\n}"; answer.Formats[0].Example != want {
		t.Errorf("example %s", answer.Formats[0].Example)
	}
	put := ref.Entry("put-orders-id")
	if put == nil || !put.Body.Required || put.Body.Formats[0].Example != "{\n  \"z\": 1,\n  \"a\": 2\n}" {
		t.Errorf("%+v", put)
	}
	if ref.Entry("nope") != nil {
		t.Error("an unknown entry")
	}
}

func TestVersion2IsRead(t *testing.T) {
	ref, err := OpenAPI([]byte(`{"swagger":"2.0","basePath":"/v2","info":{"title":"Old","version":"1"},"produces":["application/xml"],"paths":{"/pets":{"post":{
	 "parameters":[{"in":"body","name":"pet","required":true,"schema":{"$ref":"#/definitions/Pet"}},{"in":"query","name":"dry","type":"boolean"}],
	 "responses":{"200":{"description":"ok","schema":{"$ref":"#/definitions/Pet"}}}}}},"definitions":{"Pet":{"type":"object","properties":{"name":{"type":"string"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := ref.Groups[0].Entries[0]
	if ref.Server != "/v2" || e.Body == nil || !e.Body.Required || e.Body.Formats[0].Shape.Type.ID != "type.Pet" || len(e.Parameters) != 1 || e.Parameters[0].Type.Text != "boolean" {
		t.Errorf("%+v", e)
	}
	if f := e.Responses[0].Formats[0]; f.Media != "application/xml" || len(f.Shape.Children) != 1 {
		t.Errorf("%+v", f)
	}
}

// The documents that the package clean is tested with are read.
func TestDocumentsOfTheTestDataAreRead(t *testing.T) {
	files, err := filepath.Glob("../../clean/testdata/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	read := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		if text, err := clean.Clean(clean.OpenAPI, string(source)); err == nil {
			read++
			if _, err := OpenAPI([]byte(text)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		if text, err := clean.Clean(clean.GraphQL, string(source)); err == nil {
			read++
			if _, err := GraphQL(text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	t.Logf("%d documents", read)
}

// Whatever a description says, reading it ends.
func FuzzOpenAPI(f *testing.F) {
	f.Add([]byte(shop))
	f.Add([]byte(`{"paths":{"/":{"get":{"parameters":[{"$ref":"#/paths"},null,1]}}},"components":{"schemas":{"A":{"allOf":[{"$ref":"#/components/schemas/A"}]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		_, _ = OpenAPI(text) // must return
	})
}

func TestGraphQLIsWrittenOut(t *testing.T) {
	ref, err := GraphQL(`schema { query: Root mutation: Change }
"All there is" type Root { "One" user(id: ID!, deep: Int = 3): User! old: String @deprecated(reason: "slow") all: [Either!]! }
type Change { drop(which: Filter!): Boolean }
interface Node { id: ID! }
type User implements Node { id: ID! friends(first: Int): [User!] role: Role }
extend type User { name: String }
union Either = User | Other
type Other { x: Int }
enum Role { ADMIN GUEST @deprecated }
input Filter { name: String! = "a" }
scalar Time`)
	if err != nil {
		t.Fatal(err)
	}
	user := ref.Entry("query.user")
	if user == nil || user.Text != "One" || user.Returns.ID != "type.User" || user.Returns.After != "!" || len(user.Parameters) != 2 || !user.Parameters[0].Required || user.Parameters[1].Facts[0] != "default 3" {
		t.Fatalf("%+v", user)
	}
	if want := "query($id: ID!) {\n  user(id: $id) {\n    id\n    role\n  }\n}"; user.Query != want {
		t.Errorf("%s", user.Query)
	}
	if old := ref.Entry("query.old"); !old.Deprecated || old.Why != "slow" {
		t.Errorf("%+v", old)
	}
	if fields := ref.Entry("type.User").Fields; len(fields) != 4 || fields[3].Name != "name" || fields[1].Type.Text != "[User!]" || len(fields[1].Arguments) != 1 {
		t.Errorf("%+v", fields)
	}
	if m := ref.Entry("type.Either").Members; len(m) != 2 || m[0].ID != "type.User" {
		t.Errorf("%+v", m)
	}
	if ref.Entry("type.Root") != nil || ref.Entry("mutation.drop") == nil || len(ref.Entry("type.Role").Values) != 2 || ref.Entry("type.Filter").Fields[0].Required {
		t.Error("roots, mutations, enums or inputs")
	}
}
