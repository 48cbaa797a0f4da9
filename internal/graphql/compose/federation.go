package compose

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// federation defines what a subgraph may use without defining it. It is added behind the
// text of each subgraph, so that lines stay as they are.
const federation = `
scalar _Any
scalar _FieldSet
type _Service { sdl: String }
scalar link__Import
enum link__Purpose { SECURITY EXECUTION }
directive @key(fields: _FieldSet!, resolvable: Boolean = true) repeatable on OBJECT | INTERFACE
directive @external(reason: String) on FIELD_DEFINITION
directive @requires(fields: _FieldSet!) on FIELD_DEFINITION
directive @provides(fields: _FieldSet!) on FIELD_DEFINITION
directive @extends on OBJECT | INTERFACE
directive @shareable repeatable on OBJECT | FIELD_DEFINITION
directive @tag(name: String!) repeatable on FIELD_DEFINITION | INTERFACE | OBJECT | UNION | ARGUMENT_DEFINITION | SCALAR | ENUM | ENUM_VALUE | INPUT_OBJECT | INPUT_FIELD_DEFINITION | SCHEMA
directive @link(url: String!, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA
`

// noQuery is added where there is no query type: each subgraph has the field.
const noQuery = "type Query { _service: _Service! }\n"

// unsupported are directives of Federation 2 that change what a composition means.
var unsupported = []string{"override", "inaccessible", "interfaceObject", "composeDirective", "authenticated", "requiresScopes", "policy", "context", "fromContext", "cost", "listSize"}

// distinct are those of unsupported that are refused even where they are not imported:
// their names are not likely to be those of a subgraph's own directives.
var distinct = unsupported[:4]

// isFederation reports whether a type is part of the protocol, and not of the graph.
func isFederation(name string) bool {
	switch name {
	case "_Any", "_FieldSet", "FieldSet", "_Entity", "_Service":
		return true
	}
	return strings.HasPrefix(name, "federation__") || strings.HasPrefix(name, "link__")
}

func isFederationField(name string) bool { return name == "_service" || name == "_entities" }

// withoutOwn removes the subgraph's definitions of what federation defines. The subgraph's
// definitions end at an offset.
func withoutOwn(doc *syntax.Document, end uint32) {
	known := map[string]bool{}
	nameOf := func(def *syntax.TypeDef) string {
		if def.Kind == syntax.DirectiveDef {
			return "@" + doc.Text(def.Name)
		}
		return doc.Text(def.Name)
	}
	for i := range doc.TypeDefs {
		if def := &doc.TypeDefs[i]; def.Start >= end {
			known[nameOf(def)] = true
		}
	}
	doc.TypeDefs = slices.DeleteFunc(doc.TypeDefs, func(def syntax.TypeDef) bool {
		return def.Start < end && def.Kind != syntax.SchemaDef && doc.Text(def.Name) != "Query" && known[nameOf(&def)]
	})
}

const federationSpec = "https://specs.apollo.dev/federation/"

// links checks what the schema links, and notes whether that is Federation 2.
func (r *reader) links() {
	for i := range r.doc.TypeDefs {
		def := &r.doc.TypeDefs[i]
		if def.Kind != syntax.SchemaDef {
			continue
		}
		for _, use := range r.uses(def.Directives, "link") {
			r.link(use)
		}
	}
}

func (r *reader) link(use *syntax.Directive) {
	url := r.text(r.argument(use, "url"))
	switch {
	case strings.HasPrefix(url, "https://specs.apollo.dev/link/"):
		return
	case !strings.HasPrefix(url, federationSpec):
		r.refuse(use.Start, "@link to "+clip(url), "only "+federationSpec+" can be linked")
		return
	}
	r.out.v2 = r.out.v2 || strings.HasPrefix(url, federationSpec+"v2")
	imports := r.argument(use, "import")
	if imports == nil || imports.Kind != syntax.ListValue {
		return
	}
	for i := imports.Items.Lo; i < imports.Items.Hi; i++ {
		r.imported(&r.doc.Values[i])
	}
}

// imported checks one element of a link's import: "@key", or {name: "@key", as: "@id"}.
func (r *reader) imported(v *syntax.Value) {
	name := r.text(v)
	if v.Kind == syntax.ObjectValue {
		for _, member := range r.doc.Arguments[v.Items.Lo:v.Items.Hi] {
			text := r.text(&r.doc.Values[member.Value])
			switch string(r.doc.Bytes(member.Name)) {
			case "name":
				name = text
			case "as":
				r.refuse(v.Text.Start, "import of federation under the name "+clip(text), "import it under its own name")
			}
		}
	}
	if directive := strings.TrimPrefix(name, "@"); slices.Contains(unsupported, directive) {
		r.refuse(v.Text.Start, name, "")
	}
}

// refuseUses reports directives that are not supported.
func (r *reader) refuseUses() {
	for i := range r.doc.Directives {
		use := &r.doc.Directives[i]
		name := r.doc.Text(use.Name)
		if slices.Contains(distinct, name) || strings.HasPrefix(name, "federation__") {
			r.refused[name] = true
			r.refuse(use.Start, "@"+name, "")
		}
	}
}

func (r *reader) refuse(at uint32, what, remedy string) {
	if remedy != "" {
		remedy = "; " + remedy
	}
	r.report.add(Problem{
		Code: Unsupported, Message: "the schema uses a feature of federation that is not supported: " + what + remedy, Places: []Place{r.place(at)},
	})
}
