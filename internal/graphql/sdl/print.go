package sdl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A printer writes a schema that an answer describes. The first defect ends it:
// err says what that is.
type printer struct {
	b   strings.Builder
	err error
}

func (p *printer) writef(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// fail notes the first defect. where names what it is in.
func (p *printer) fail(where, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: %s", where, shorten(fmt.Sprintf(format, args...), maxMessage))
	}
}

// name returns a name that can be written as it is, and notes any other.
func (p *printer) name(where, name string) string {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			p.fail(where, "%q cannot be a name", clip(name))
			break
		}
	}
	if name == "" {
		p.fail(where, "a name is missing")
	}
	return name
}

func (p *printer) schema(said *saidSchema) {
	p.roots(said)
	slices.SortStableFunc(said.Directives, func(a, b saidDirective) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(said.Types, func(a, b saidType) int { return cmp.Compare(a.Name, b.Name) })
	builtIn := builtInNames()
	for i := range said.Directives {
		if d := &said.Directives[i]; !builtIn["@"+d.Name] {
			p.directive(d)
		}
	}
	for i := range said.Types {
		// Introspection types go by their prefix: servers have more of them than the specification.
		if t := &said.Types[i]; !strings.HasPrefix(t.Name, "__") && !(t.Kind == "SCALAR" && builtIn[t.Name]) {
			p.typ(t)
		}
	}
}

// builtInNames returns the names of what every schema has, those of directives
// with "@".
func builtInNames() map[string]bool {
	doc := BuiltIns()
	names := map[string]bool{}
	for i := range doc.TypeDefs {
		def := &doc.TypeDefs[i]
		name := doc.Text(def.Name)
		if def.Kind == syntax.DirectiveDef {
			name = "@" + name
		}
		names[name] = true
	}
	return names
}

// roots writes the schema definition where it says something: not for roots of
// the default names, unless such a name is that of a type that is no root.
func (p *printer) roots(said *saidSchema) {
	roots := []struct {
		operation, usual string
		ref              *saidRef
	}{
		{"query", "Query", said.QueryType},
		{"mutation", "Mutation", said.MutationType},
		{"subscription", "Subscription", said.SubscriptionType},
	}
	needed := said.Description != ""
	for _, r := range roots {
		if r.ref != nil {
			needed = needed || p.name("the "+r.operation+" type", r.ref.Name) != r.usual
			continue
		}
		needed = needed || slices.ContainsFunc(said.Types, func(t saidType) bool { return t.Name == r.usual })
	}
	if !needed {
		return
	}
	p.description("", said.Description)
	p.writef("schema {\n")
	for _, r := range roots {
		if r.ref != nil {
			p.writef("  %s: %s\n", r.operation, r.ref.Name)
		}
	}
	p.writef("}\n\n")
}

// directive writes a directive. Places that this specification does not have
// are left out, and so is a directive that no place is left for: it can stand
// nowhere that there is.
func (p *printer) directive(d *saidDirective) {
	where := "directive @" + clip(d.Name)
	p.name(where, d.Name)
	known := slices.DeleteFunc(slices.Clone(d.Locations), func(at string) bool { return !directivePlace(at) })
	if len(known) == 0 {
		return
	}
	p.description("", d.Description)
	p.writef("directive @%s", d.Name)
	p.arguments(where, "", d.Args)
	if d.IsRepeatable {
		p.writef(" repeatable")
	}
	p.writef(" on %s\n\n", strings.Join(known, " | "))
}

// directivePlace reports whether a directive can stand at a place of that name.
func directivePlace(name string) bool {
	executable := []string{
		"QUERY", "MUTATION", "SUBSCRIPTION", "FIELD",
		"FRAGMENT_DEFINITION", "FRAGMENT_SPREAD", "INLINE_FRAGMENT", "VARIABLE_DEFINITION",
	}
	return slices.Contains(executable, name) || slices.Contains(places[:], name)
}

func (p *printer) typ(t *saidType) {
	where := "type " + clip(t.Name)
	p.name(where, t.Name)
	p.description("", t.Description)
	switch t.Kind {
	case "SCALAR":
		p.writef("scalar %s", t.Name)
		if t.SpecifiedByURL != "" {
			p.writef(" @specifiedBy(url: %s)", Quote(t.SpecifiedByURL))
		}
	case "OBJECT":
		p.writef("type %s%s", t.Name, p.list(where, " implements ", " & ", t.Interfaces))
		p.fields(where, t.Fields)
	case "INTERFACE":
		p.writef("interface %s%s", t.Name, p.list(where, " implements ", " & ", t.Interfaces))
		p.fields(where, t.Fields)
	case "UNION":
		p.writef("union %s%s", t.Name, p.list(where, " = ", " | ", t.PossibleTypes))
	case "ENUM":
		p.writef("enum %s", t.Name)
		p.values(where, t.EnumValues)
	case "INPUT_OBJECT":
		p.inputObject(where, t)
	default:
		p.fail(where, `"kind" is %q; it has to be SCALAR, OBJECT, INTERFACE, UNION, ENUM or INPUT_OBJECT`, clip(t.Kind))
	}
	p.writef("\n\n")
}

// list writes the names of types, "" for none.
func (p *printer) list(where, before, between string, refs []saidRef) string {
	if len(refs) == 0 {
		return ""
	}
	names := make([]string, len(refs))
	for i := range refs {
		names[i] = p.name(where, refs[i].Name)
	}
	return before + strings.Join(names, between)
}

func (p *printer) fields(where string, fields []saidField) {
	if len(fields) == 0 {
		return
	}
	p.writef(" {\n")
	for i := range fields {
		f := &fields[i]
		at := where + ", field " + clip(f.Name)
		p.description("  ", f.Description)
		p.writef("  %s", p.name(at, f.Name))
		p.arguments(at, "  ", f.Args)
		p.writef(": %s%s\n", p.ref(at, f.Type), f.deprecation())
	}
	p.writef("}")
}

func (p *printer) values(where string, values []saidMember) {
	if len(values) == 0 {
		return
	}
	p.writef(" {\n")
	for i := range values {
		v := &values[i]
		at := where + ", value " + clip(v.Name)
		if v.Name == "true" || v.Name == "false" || v.Name == "null" {
			p.fail(at, "a value of an enum cannot have this name")
		}
		p.description("  ", v.Description)
		p.writef("  %s%s\n", p.name(at, v.Name), v.deprecation())
	}
	p.writef("}")
}

func (p *printer) inputObject(where string, t *saidType) {
	p.writef("input %s", t.Name)
	if t.IsOneOf {
		p.writef(" @oneOf")
	}
	if len(t.InputFields) == 0 {
		return
	}
	p.writef(" {\n")
	for i := range t.InputFields {
		p.input(where+", field "+clip(t.InputFields[i].Name), "  ", &t.InputFields[i])
	}
	p.writef("}")
}

func (p *printer) arguments(where, indent string, args []saidInput) {
	if len(args) == 0 {
		return
	}
	p.writef("(\n")
	for i := range args {
		p.input(where+", argument "+clip(args[i].Name), indent+"  ", &args[i])
	}
	p.writef("%s)", indent)
}

func (p *printer) input(where, indent string, input *saidInput) {
	p.description(indent, input.Description)
	p.writef("%s%s: %s", indent, p.name(where, input.Name), p.ref(where, input.Type))
	if input.DefaultValue != nil {
		p.writef(" = %s", p.defaultValue(where, *input.DefaultValue))
	}
	p.writef("%s\n", input.deprecation())
}

// defaultValue returns a default value, which has to be one value of the query
// language and nothing beside it: whatever else it were would be read as part of
// the schema.
func (p *printer) defaultValue(where, value string) string {
	const before, after = "input I { i: I = ", "\n}"
	value = strings.TrimSpace(value)
	doc := &syntax.Document{}
	err := syntax.ParseSchema(doc, []byte(before+value+after), syntax.Limits{ValueDepth: maxNesting})
	if err != nil {
		p.fail(where, "the default value %s is no value of the query language: %v", clip(value), err)
		return value
	}
	alone := len(doc.TypeDefs) == 1 && len(doc.InputDefs) == 1 && len(doc.Directives) == 0
	if whole := alone && doc.Text(doc.Values[doc.InputDefs[0].Default].Text) == value; !whole {
		p.fail(where, "the default value %s is more than one value", clip(value))
	}
	return value
}

// ref returns a type with its wrappers.
func (p *printer) ref(where string, ref *saidRef) string {
	var before, after string
	bang := false
	for depth := 0; ref != nil && depth <= MaxWrappers; depth++ {
		switch {
		case ref.Kind != "LIST" && ref.Kind != "NON_NULL":
			return before + p.name(where, ref.Name) + after
		case ref.Kind == "LIST":
			before, after, bang = before+"[", "]"+after, false
		case bang:
			p.fail(where, "its type is a non-null of a non-null")
			return ""
		default:
			after, bang = "!"+after, true
		}
		ref = ref.OfType
	}
	if ref == nil && before == "" && after == "" {
		p.fail(where, "its type is missing")
		return ""
	}
	p.fail(where, "its type %s…%s has no name within; the lists and non-nulls around it may be more than were asked for, or than the %d that are possible",
		before, after, MaxWrappers)
	return ""
}

// deprecation returns the directive of what is deprecated, else "".
func (m *saidMember) deprecation() string {
	switch {
	case !m.IsDeprecated:
		return ""
	case m.DeprecationReason == nil || *m.DeprecationReason == "No longer supported":
		return " @deprecated"
	default:
		return " @deprecated(reason: " + Quote(*m.DeprecationReason) + ")"
	}
}
