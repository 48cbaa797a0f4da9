package graph

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// emptySet is the response key of what stands in a selection set whose fields are all
// skipped: GraphQL has no empty selection sets.
const emptySet = "__sluice_empty"

// keyPrefix is what response keys of supergraphs get that would be in the way of the fields
// that subgraphs need beside those that the client selects: { user { id: name } }.
const keyPrefix = "sluice_"

// fieldNames returns the names of all fields of composite types.
func fieldNames(s *schema.Schema) map[string]bool {
	all := map[string]bool{schema.Typename: true}
	for i := range s.Fields {
		all[s.Fields[i].Name] = true
	}
	return all
}

// shown returns a response key as clients know it.
func (g *Graph) shown(key string) string {
	if !g.supergraph {
		return key
	}
	return strings.TrimPrefix(key, keyPrefix)
}

// show has a plan give values the response keys that clients know.
func (g *Graph) show(n resolve.Node) {
	switch n := n.(type) {
	case *resolve.Array:
		g.show(n.Item)
	case *resolve.Object:
		for _, f := range n.Fields {
			f.Name = []byte(g.shown(string(f.Name)))
			g.show(f.Value)
		}
	}
}

// A text is an operation as the planner gets it: without fragments that have names, without
// directives, and with a variable of its own for each argument. The planner's own ways to
// get there are far above linear.
type text struct {
	operation []byte
	arguments []argument
	empties   bool // emptySet is in it
	nothing   bool // it selects nothing
}

// An argument is the value of a variable of a text.
type argument struct {
	name  string
	value literal
}

// A printer prints one operation of a valid document.
type printer struct {
	schema   *schema.Schema
	doc      *syntax.Document
	taken    map[string]bool // response keys that only fields of these names may have; nil: none
	asked    map[string]bool // values of the variables that directives name; absent: false
	names    map[string]string
	inputs   map[uint32][]byte  // defaults of arguments as JSON, by their place in the schema
	defaults map[string]literal // of the client's variables
	out      []byte
	heads    []byte // definitions of variables
	text     text
}

// conditions returns the variables on which it depends which fields an operation selects.
func conditions(doc *syntax.Document) (names []string) {
	seen := make(map[string]bool)
	for i := range doc.Directives {
		d := &doc.Directives[i]
		if name := string(doc.Bytes(d.Name)); name != "skip" && name != "include" {
			continue
		}
		for a := d.Arguments.Lo; a < d.Arguments.Hi; a++ {
			v := &doc.Values[doc.Arguments[a].Value]
			if v.Kind != syntax.VariableValue {
				continue
			}
			if name := variableName(doc, v); !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

func variableName(doc *syntax.Document, v *syntax.Value) string { return doc.Text(v.Text)[1:] }

// defaultsOf returns the default values of an operation's variables.
func defaultsOf(doc *syntax.Document, op *syntax.Operation) map[string]literal {
	all := make(map[string]literal)
	for i := op.Variables.Lo; i < op.Variables.Hi; i++ {
		if v := &doc.Variables[i]; v.Default != syntax.None {
			all[doc.Text(v.Name)] = literalOf(doc, v.Default, nil)
		}
	}
	return all
}

// printText prints an operation.
func (g *Graph) printText(doc *syntax.Document, op *syntax.Operation, asked map[string]bool) text {
	s := g.data.Schema
	p := printer{schema: s, doc: doc, taken: g.fields, asked: asked, names: make(map[string]string), inputs: g.inputs, defaults: defaultsOf(doc, op)}
	root := [...]schema.TypeID{syntax.Query: s.Query, syntax.Mutation: s.Mutation, syntax.Subscription: s.Subscription}[op.Kind]
	if p.set(op.Selections, root) == 0 {
		p.text.nothing = true
		return p.text
	}
	head := append([]byte(nil), op.Kind.String()...)
	head = append(head, " O"...) // the planner finds operations by name
	if len(p.heads) > 0 {
		head = append(append(append(head, '('), p.heads[:len(p.heads)-1]...), ')')
	}
	p.text.operation = append(head, p.out...)
	return p.text
}

// set prints a selection set and returns how many selections of it are printed.
func (p *printer) set(set syntax.Range, parent schema.TypeID) (n int) {
	p.out = append(p.out, '{')
	for i := set.Lo; i < set.Hi; i++ {
		sel := &p.doc.Selections[i]
		if p.skips(sel.Directives) {
			continue
		}
		switch sel.Kind {
		case syntax.Field:
			p.field(sel, parent)
			n++
		case syntax.InlineFragment:
			n += p.fragment(sel.Name, sel.Selections, parent)
		case syntax.FragmentSpread:
			n += p.spread(sel, parent)
		}
	}
	p.out = append(p.out, '}')
	return n
}

func (p *printer) spread(sel *syntax.Selection, parent schema.TypeID) int {
	for i := range p.doc.Fragments {
		if f := &p.doc.Fragments[i]; string(p.doc.Bytes(f.Name)) == string(p.doc.Bytes(sel.Name)) {
			return p.fragment(f.TypeCondition, f.Selections, parent)
		}
	}
	return 0
}

// fragment prints an inline fragment, unless it selects nothing.
func (p *printer) fragment(condition syntax.Span, set syntax.Range, parent schema.TypeID) int {
	from := len(p.out)
	p.out = append(p.out, "..."...)
	if condition.End > condition.Start {
		t, ok := p.schema.TypeNamed(p.doc.Bytes(condition))
		if ok {
			parent = t
		}
		p.out = append(p.out, "on "...)
		p.out = append(p.out, p.doc.Bytes(condition)...)
	}
	n := p.set(set, parent)
	if n == 0 {
		p.out = p.out[:from]
	}
	return n
}

func (p *printer) field(sel *syntax.Selection, parent schema.TypeID) {
	if p.out[len(p.out)-1] != '{' {
		p.out = append(p.out, ' ')
	}
	name, key := p.doc.Bytes(sel.Name), p.doc.Bytes(sel.ResponseKey())
	if p.taken != nil && (string(key) != string(name) && p.taken[string(key)] || bytes.HasPrefix(key, []byte(keyPrefix))) {
		p.out = append(append(append(p.out, keyPrefix...), key...), ':')
	} else if sel.Alias.End > 0 {
		p.out = append(append(p.out, key...), ':')
	}
	p.out = append(p.out, name...)
	f, ok := p.schema.FieldNamed(parent, name)
	if !ok { // __typename
		return
	}
	p.arguments(sel, f)
	if sel.Selections.Len() == 0 {
		return
	}
	if p.set(sel.Selections, p.schema.Fields[f].Type.Type()) == 0 {
		p.out = append(p.out[:len(p.out)-1], emptySet+":__typename}"...)
		p.text.empties = true
	}
}

// arguments prints the arguments of a field: those that are given, and the defaults of
// others, which sources need not know.
func (p *printer) arguments(sel *syntax.Selection, f schema.FieldID) {
	from := len(p.out)
	p.out = append(p.out, '(')
	for i := p.schema.Fields[f].Arguments.Lo; i < p.schema.Fields[f].Arguments.Hi; i++ {
		in := &p.schema.Inputs[i]
		at := slices.IndexFunc(p.doc.Arguments[sel.Arguments.Lo:sel.Arguments.Hi], func(a syntax.Argument) bool {
			return string(p.doc.Bytes(a.Name)) == in.Name
		})
		var value literal
		var source string
		switch fallback := p.inputs[i]; {
		case at >= 0:
			v := p.doc.Arguments[int(sel.Arguments.Lo)+at].Value
			value, source = literalOf(p.doc, v, p.defaults), p.doc.Text(p.doc.Values[v].Text)
			if value.variable != "" && value.without == nil {
				value.without = fallback
				source += "=" + string(fallback)
			}
		case fallback != nil:
			value, source = literal{json: fallback}, string(fallback)
		default:
			continue
		}
		p.out = append(append(append(p.out, in.Name...), ":$"...), p.variable(value, source, in.Type)...)
		p.out = append(p.out, ',')
	}
	if p.out[len(p.out)-1] == '(' {
		p.out = p.out[:from]
		return
	}
	p.out[len(p.out)-1] = ')'
}

// variable returns the name of the variable that has an argument's value. Equal values of
// one type share it.
func (p *printer) variable(value literal, source string, t schema.TypeRef) string {
	typ := p.schema.RefString(t)
	key := typ + " " + source
	if name := p.names[key]; name != "" {
		return name
	}
	name := "v" + strconv.Itoa(len(p.names))
	p.names[key] = name
	p.text.arguments = append(p.text.arguments, argument{name, value})
	p.heads = append(append(append(append(append(p.heads, '$'), name...), ':'), typ...), ',')
	return name
}

// skips reports whether directives leave a selection out.
func (p *printer) skips(uses syntax.Range) bool {
	for i := uses.Lo; i < uses.Hi; i++ {
		d := &p.doc.Directives[i]
		name := string(p.doc.Bytes(d.Name))
		if name != "skip" && name != "include" || d.Arguments.Len() == 0 {
			continue
		}
		v := &p.doc.Values[p.doc.Arguments[d.Arguments.Lo].Value]
		on := string(p.doc.Bytes(v.Text)) == "true"
		if v.Kind == syntax.VariableValue {
			on = p.asked[variableName(p.doc, v)]
		}
		if on == (name == "skip") {
			return true
		}
	}
	return false
}

// A literal is a value of an operation as JSON, with the variables of the client in it.
type literal struct {
	json     []byte // of a value without variables
	variable string // of the client; "": none
	without  []byte // JSON of its default; nil: none
	list     []literal
	fields   []argument // of an object
}

func literalOf(doc *syntax.Document, at uint32, defaults map[string]literal) literal {
	v := &doc.Values[at]
	switch v.Kind {
	case syntax.VariableValue:
		name := variableName(doc, v)
		l := literal{variable: name}
		if d, ok := defaults[name]; ok {
			l.without, _ = d.append(nil, nil)
		}
		return l
	case syntax.StringValue, syntax.BlockStringValue:
		return literal{json: jsonscan.AppendString(nil, []byte(doc.StringValue(v)))}
	case syntax.EnumValueKind:
		return literal{json: jsonscan.AppendString(nil, doc.Bytes(v.Text))}
	case syntax.ListValue:
		l := literal{list: []literal{}}
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			l.list = append(l.list, literalOf(doc, i, defaults))
		}
		return l
	case syntax.ObjectValue:
		l := literal{fields: []argument{}}
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			a := &doc.Arguments[i]
			l.fields = append(l.fields, argument{doc.Text(a.Name), literalOf(doc, a.Value, defaults)})
		}
		return l
	}
	return literal{json: append([]byte(nil), doc.Bytes(v.Text)...)}
}

// append appends the value as JSON; false if it is a variable that has none.
func (l *literal) append(b []byte, given map[string]rawValue) ([]byte, bool) {
	switch {
	case l.json != nil:
		return append(b, l.json...), true
	case l.variable != "":
		if v, ok := given[l.variable]; ok {
			return append(b, v...), true
		}
		return append(b, l.without...), l.without != nil
	case l.list != nil:
		b = append(b, '[')
		for i := range l.list {
			if i > 0 {
				b = append(b, ',')
			}
			var ok bool
			if b, ok = l.list[i].append(b, given); !ok {
				b = append(b, "null"...)
			}
		}
		return append(b, ']'), true
	}
	return appendObject(b, l.fields, given), true
}

// appendObject appends an object of those values that there are.
func appendObject(b []byte, fields []argument, given map[string]rawValue) []byte {
	b = append(b, '{')
	for i := range fields {
		from := len(b)
		if b[from-1] != '{' {
			b = append(b, ',')
		}
		b = append(jsonscan.AppendString(b, []byte(fields[i].name)), ':')
		var ok bool
		if b, ok = fields[i].value.append(b, given); !ok {
			b = b[:from]
		}
	}
	return append(b, '}')
}

// inputsOf returns the defaults of all arguments of a schema as JSON.
func inputsOf(s *schema.Schema) map[uint32][]byte {
	all := make(map[uint32][]byte)
	for i := range s.Inputs {
		if !s.Inputs[i].HasDefault {
			continue
		}
		var doc syntax.Document
		if syntax.Parse(&doc, []byte("{a(a:"+s.Inputs[i].Default+")}"), syntax.Limits{}) != nil || len(doc.Arguments) == 0 {
			continue // of a schema that is served with its faults
		}
		l := literalOf(&doc, doc.Arguments[doc.Selections[doc.Operations[0].Selections.Lo].Arguments.Lo].Value, nil)
		all[uint32(i)], _ = l.append(nil, nil)
	}
	return all
}
