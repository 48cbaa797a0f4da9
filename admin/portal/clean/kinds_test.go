package clean

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

func TestYAMLAndJSONSayTheSame(t *testing.T) {
	text := `openapi: 3.1.0
info: &i
  title: Orders
  description: |
    # Big

    *text*
  version: 1.0
x-own: 1
tags: [{name: a, description: plain}]
paths:
  /a:
    get: &get
      operationId: getA
      parameters: [{name: q, in: query, required: yes, schema: {type: integer, minimum: 0x10, default: 1e3, example: 2024-01-02, nullable: null}}]
      responses: {200: {description: ok}, default: {description: no}}
    post:
      <<: *get
      operationId: postA
components: {schemas: {A: {properties: {x-a: {type: string}, required: {type: boolean}}, required: [x-a]}}}
`
	want := `{"openapi":"3.1.0","info":{"title":"Orders","description":"\u003ch1\u003eBig\u003c/h1\u003e\n\u003cp\u003e\u003cem\u003etext\u003c/em\u003e\u003c/p\u003e","version":1},` +
		`"tags":[{"name":"a","description":"\u003cp\u003eplain\u003c/p\u003e"}],"paths":{"/a":{"get":{"operationId":"getA","parameters":[{"name":"q","in":"query","required":"yes","schema":{"type":"integer","minimum":16,"default":1000,"example":"2024-01-02","nullable":null}}],` +
		`"responses":{"200":{"description":"\u003cp\u003eok\u003c/p\u003e"},"default":{"description":"\u003cp\u003eno\u003c/p\u003e"}}},` +
		`"post":{"operationId":"postA","parameters":[{"name":"q","in":"query","required":"yes","schema":{"type":"integer","minimum":16,"default":1000,"example":"2024-01-02","nullable":null}}],"responses":{"200":{"description":"\u003cp\u003eok\u003c/p\u003e"},"default":{"description":"\u003cp\u003eno\u003c/p\u003e"}}}}},` +
		`"components":{"schemas":{"A":{"properties":{"x-a":{"type":"string"},"required":{"type":"boolean"}},"required":["x-a"]}}}}`
	fromYAML, err := Clean(OpenAPI, text)
	if err != nil || fromYAML != want {
		t.Errorf("%v\n%s\nwant\n%s", err, fromYAML, want)
	}
	tree, err := parseTree(text)
	if err != nil {
		t.Fatal(err)
	}
	written, err := tree.write()
	if err != nil {
		t.Fatal(err)
	}
	if fromJSON, err := Clean(OpenAPI, written); err != nil || fromJSON != fromYAML {
		t.Errorf("as JSON: %v\n%s\nand as YAML\n%s", err, fromJSON, fromYAML)
	}
}

func TestAliasesDoNotMultiply(t *testing.T) {
	var text strings.Builder
	text.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		text.WriteString(fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", ")))
	}
	if shown, err := Clean(OpenAPI, text.String()); err == nil || !strings.Contains(err.Error(), "more than 400000 values") {
		t.Errorf("%d bytes, %v", len(shown), err)
	}
}

func TestNamesOfPeopleStayAndExtensionsGo(t *testing.T) {
	const doc = `{"openapi":"3.0.0","info":{"title":"t","x-a":1,"contact":{"url":"https://example.com"},"license":{"url":"javascript:x"}},"paths":{"x-b":{},"/p":{"x-c":1,"parameters":[{"x-d":1,"name":"x-name","in":"header","example":{"x-e":1,"servers":[1]},"examples":{"x-f":{"value":{"x-g":1},"x-h":1}}}],
		"get":{"callbacks":{"x-i":{"{$request.body#/url}":{"post":{"x-j":1,"responses":{}}}}},"security":[{"x-key":[]}],"responses":{"200":{"description":"","links":{"x-k":{"server":{"url":"http://up"},"operationId":"o"}},"headers":{"X-L":{"schema":{"enum":["x-m"],"default":{"x-n":1},"pattern":"(?<y>a)"}}}}}}}},
		"components":{"x-o":1,"schemas":{"x-p":{"x-q":1,"properties":{"x-r":{},"servers":{"type":"string"},"host":{}},"List<User>":1}},"securitySchemes":{"x-s":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"https://auth.example.com/token","scopes":{"x-t":"read"}}}}}},"externalDocs":{"url":"http://up/doc"},"servers":[{"url":"http://up"}]}`
	shown, err := Clean(OpenAPI, doc)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq("x-name x-e x-f x-g x-i x-key x-k X-L x-m x-n x-p x-r x-s x-t") {
		if !strings.Contains(shown, `"`+name+`"`) {
			t.Errorf("%s is lost in %s", name, shown)
		}
	}
	for name := range strings.FieldsSeq("x-a x-b x-c x-d x-h x-j x-o x-q server up javascript:x") {
		if strings.Contains(shown, `"`+name+`"`) {
			t.Errorf("%s is in %s", name, shown)
		}
	}
	for _, part := range []string{`"servers":{"type":"string"}`, `"servers":[1]`, `"host":{}`, `(?\u003cy\u003ea)`, `List‹User\u003e`, `"url":"https://example.com"`, "https://auth.example.com/token"} {
		if !strings.Contains(shown, part) {
			t.Errorf("%s is not in %s", part, shown)
		}
	}
	if strings.Contains(shown, "http://up") {
		t.Errorf("an upstream is in %s", shown)
	}
}

func TestSchemasPrintedAnewAreTheSame(t *testing.T) {
	const text = `# a comment
"""
All of it.

  Indented.
"""
schema @own(list: [1, 2.5, true, null, RED, {a: "x"}]) { query: Q mutation: M }
directive @own(list: [Mixed]) repeatable on SCHEMA | FIELD_DEFINITION
directive @flag on ENUM_VALUE
scalar Mixed @specifiedBy(url: "https://example.com")
interface Node { id: ID! }
interface Named implements Node { id: ID! "the name" name: String }
type Q implements Node & Named { id: ID! name: String
  find("what" what: String! = "a\"b\\c\n" """block "quoted" text""" like: [Filter!]! = [{size: 3}], max: Int = 10): [U!] @own(list: []) }
type M { a: Color }
union U = Q | M
"colours" enum Color { "red" RED @flag GREEN @deprecated(reason: "ends in \"") }
input Filter { size: Int = 1 more: Filter }
extend type M { b: Int }
`
	once, err := Clean(GraphQL, text)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := Clean(GraphQL, once)
	if err != nil || twice != once {
		t.Errorf("printed twice: %v\n%s\nand once\n%s", err, twice, once)
	}
	for _, part := range []string{
		"\"\"\"\nAll of it.\n\n  Indented.\n\"\"\"\nschema @own(list: [1, 2.5, true, null, RED, {a: \"x\"}]) {\n  query: Q\n  mutation: M\n}",
		"directive @own(list: [Mixed]) repeatable on SCHEMA | FIELD_DEFINITION", "type Q implements Node & Named {", "union U = Q | M", "max: Int = 10",
		`what: String! = "a\"b\\c\n"`, "  \"\"\"\n  red\n  \"\"\"\n  RED @flag", `GREEN @deprecated(reason: "ends in \"")`, "extend type M {\n  b: Int\n}", "like: [Filter!]! = [{size: 3}]",
	} {
		if !strings.Contains(once, part) {
			t.Errorf("%s is not in\n%s", part, once)
		}
	}
	if strings.Contains(once, "# a comment") {
		t.Error("comments are shown")
	}
}

func TestUpstreamsAreHiddenWhereverTheyStand(t *testing.T) {
	for text, want := range map[string]string{
		"http://up": "{gateway}", "at http://up.": "at {gateway}.", "http://up/a http://up:80/b": "{gateway}/a http://up:80/b", "http://up.example": "http://up.example",
		"http://upper": "http://upper", "http://up-1": "http://up-1", "http://up: see": "{gateway}: see", "": "", "(http://up)": "({gateway})",
		"HTTP://UP/a": "{gateway}/a", "https://up/a": "{gateway}/a", "wss://up": "{gateway}", "//up/a": "{gateway}/a", "up up/a": "up up/a", "http://a.up/": "http://a.up/", "http://x@up": "http://x@up",
		"\xff HTTP://up/\xff": "\xff {gateway}/\xff",
	} {
		if got := HideOrigin(text, "http://up"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.1:80": "{gateway}", "curl 10.0.0.1:80/a": "curl {gateway}/a", "110.0.0.1:80": "110.0.0.1:80", "10.0.0.1:8080 HTTPS://10.0.0.1:80": "10.0.0.1:8080 {gateway}", "me@10.0.0.1:80": "me@10.0.0.1:80",
	} {
		if got := HideOrigin(text, "http://10.0.0.1:80"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := HideOrigin("a", ""); got != "a" {
		t.Errorf("no origin: %q", got)
	}
}

func TestServersOfSingleOperationsAreHidden(t *testing.T) {
	text, err := Clean(OpenAPI, `{"openapi":"3.0.0","info":{"title":"t","description":"see http://inner/x and http://linked/x"},
		"paths":{"/a":{"get":{"servers":[{"url":"http://Inner/v1"}],"responses":{"200":{"description":"ok","links":{"l":{"server":{"url":"http://linked"}}}}}}}}}`)
	if err != nil || !strings.Contains(text, "see {gateway}/x and {gateway}/x") {
		t.Errorf("%v: %s", err, text)
	}
}

func FuzzClean(f *testing.F) {
	kinds := []Kind{OpenAPI, GraphQL, Markdown}
	for _, attack := range attacks(f) {
		f.Add(uint8(2), attack)
		f.Add(uint8(0), `{"openapi":"3.0.0","info":{"title":"a","description":`+quote(f, attack)+`},"paths":{}}`)
	}
	f.Add(uint8(0), "openapi: 3.0.0\ninfo: {title: &a b, x: *a}\npaths: {}\n")
	f.Add(uint8(0), "swagger: '2.0'\nhost: up:1\ninfo: {title: at http://up:1}\npaths: {}\n")
	schemas, err := filepath.Glob("../../../../internal/graphql/sdl/testdata/*.graphql")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range schemas {
		if text, err := os.ReadFile(path); err == nil && len(text) < 16<<10 {
			f.Add(uint8(1), string(text))
		}
	}
	f.Add(uint8(1), `"a" type Query { "b" a(b: String = "\u003c"): Int }`)
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		kind := kinds[int(n)%len(kinds)]
		shown, err := Clean(kind, text)
		if err != nil {
			if _, ok := errors.AsType[*Problem](err); !ok {
				t.Errorf("%T: %v", err, err)
			}
			return
		}
		switch kind {
		case Markdown:
			if found := dangers(shown); len(found) > 0 {
				t.Errorf("%q becomes %q with %q", text, shown, found)
			}
		case OpenAPI:
			if !json.Valid([]byte(shown)) || strings.ContainsAny(shown, "<>&") {
				t.Errorf("%q becomes %q", text, shown)
			}
		case GraphQL:
			if again, err := Clean(kind, shown); err != nil || again != shown {
				t.Errorf("%q becomes %q and then %q, %v", text, shown, again, err)
			}
			if _, err := sdl.Parse(shown); err != nil && !strings.Contains(err.Error(), "invalid schema") {
				t.Error(err)
			}
		}
	})
}
