package compose

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A fieldSet is the argument fields of @key, @requires or @provides.
type fieldSet struct {
	line   int
	fields []selected
	text   string // in one notation, in the order of the schema
	sorted string // the same, sorted
}

// A selected is one field of a set.
type selected struct {
	name string
	of   []selected
}

// Bounds of a set of fields.
const (
	maxSetBytes  = 16 << 10
	maxSetTokens = 1000
	maxSetDepth  = 20
)

// fieldSet reads the argument fields of a directive. If it is not a set of fields, that is
// reported and the result has no fields.
func (r *reader) fieldSet(use *syntax.Directive) *fieldSet {
	set := &fieldSet{line: r.line(use.Start)}
	text := r.text(r.argument(use, "fields"))
	doc := &syntax.Document{}
	err := syntax.Parse(doc, []byte("{"+text+"}"), syntax.Limits{Bytes: maxSetBytes, Tokens: maxSetTokens, Depth: maxSetDepth})
	wrong := ""
	switch {
	case err != nil:
		wrong = err.Error()
	case len(doc.Operations) != 1 || len(doc.Definitions) != 1 || len(doc.Arguments) > 0 || len(doc.Directives) > 0:
		wrong = "only names of fields and braces are possible"
	default:
		set.fields, wrong = selections(doc, doc.Operations[0].Selections)
	}
	if wrong != "" {
		set.fields = nil
		r.report.add(Problem{
			Code: InvalidFieldSet, Message: "@" + r.doc.Text(use.Name) + `(fields: "` + clip(text) + `") is not a set of fields such as id organisation { id }`,
			Detail: wrong, Places: []Place{r.place(use.Start)},
		})
	}
	set.text, set.sorted = write(set.fields, false), write(set.fields, true)
	return set
}

// selections returns the fields of a selection set, or what is wrong with them.
func selections(doc *syntax.Document, in syntax.Range) (fields []selected, wrong string) {
	for i := in.Lo; i < in.Hi; i++ {
		s := &doc.Selections[i]
		name := doc.Text(s.Name)
		twice := slices.ContainsFunc(fields, func(f selected) bool { return f.name == name })
		switch {
		case s.Kind != syntax.Field || s.Alias.End > 0 || strings.HasPrefix(name, "__"):
			return nil, "only names of fields and braces are possible"
		case twice:
			return nil, "it names " + clip(name) + " twice"
		}
		f := selected{name: name}
		if f.of, wrong = selections(doc, s.Selections); wrong != "" {
			return nil, wrong
		}
		fields = append(fields, f)
	}
	return fields, ""
}

func write(fields []selected, sorted bool) string {
	texts := make([]string, 0, len(fields))
	for _, f := range fields {
		text := f.name
		if len(f.of) > 0 {
			text += " { " + write(f.of, sorted) + " }"
		}
		texts = append(texts, text)
	}
	if sorted {
		slices.Sort(texts)
	}
	return strings.Join(texts, " ")
}

// A setCheck checks the sets of fields of one kind against the types of their subgraph.
type setCheck struct {
	c         *composer
	in        *subgraph
	set       *fieldSet
	directive string
	code      Code
	owner     string // the type that has the directive
	field     string // that has the directive; "": the type
}

// fail reports a field of the set.
func (s *setCheck) fail(code Code, detail string) {
	on := "the type named '" + s.owner + "'"
	if s.field != "" {
		on = "the field '" + s.field + "' of the type named '" + s.owner + "'"
	}
	s.c.add(Problem{
		Code: code, Message: "@" + s.directive + `(fields: "` + clip(s.set.text) + `") of ` + on + " is not valid",
		Detail: detail, Type: s.owner, Field: s.field, Places: []Place{{s.in.name, s.set.line}},
	})
}

// check reports fields that the type named does not have in the subgraph, and selections
// that do not fit them.
func (s *setCheck) check(name string, fields []selected) {
	p := s.in.types[name]
	for _, sel := range fields {
		var f *field
		if p != nil {
			f = p.byName[sel.name]
		}
		if f == nil {
			s.fail(s.code, "'"+clip(name)+"' has no field '"+clip(sel.name)+"' in this subgraph")
			continue
		}
		s.checkField(clip(name+"."+sel.name), f, sel)
	}
}

func (s *setCheck) checkField(at string, f *field, sel selected) {
	of := s.in.types[f.of]
	composite := of != nil && (of.kind == syntax.ObjectDef || of.kind == syntax.InterfaceDef || of.kind == syntax.UnionDef)
	needs := slices.ContainsFunc(f.arguments, func(in *input) bool { return in.required })
	switch {
	case s.code == KeyUnknownField && len(f.arguments) > 0:
		s.fail(s.code, "'"+at+"' has arguments")
	case needs:
		s.fail(s.code, "'"+at+"' has arguments that are required")
	case s.code == KeyUnknownField && (f.list || composite && of.kind != syntax.ObjectDef):
		s.fail(s.code, "'"+at+"' is of the type "+clip(f.ref)+"; the fields of a key cannot be lists, interfaces or unions")
	case composite && of.kind == syntax.UnionDef:
		s.fail(s.code, "'"+at+"' is of the union "+clip(f.of)+", which has no fields")
	case composite && len(sel.of) == 0:
		s.fail(s.code, "'"+at+"' needs fields in braces: it is of the type "+clip(f.ref))
	case !composite && len(sel.of) > 0:
		s.fail(s.code, "'"+at+"' is of the type "+clip(f.ref)+", which has no fields")
	case composite:
		s.check(f.of, sel.of)
	}
}
