package visible

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// SDL returns the part as the text of a schema; "" if it is empty. doc is the document
// that the schema was compiled from, for descriptions.
func (p *Part) SDL(doc *syntax.Document) (string, error) {
	if p.Empty() {
		return "", nil
	}
	answer, err := p.Introspection(doc)
	if err != nil {
		return "", err
	}
	return sdl.FromIntrospection(answer)
}

// Introspection returns the part as the data of the answer to a full introspection query:
// an object with "__schema", with all that is deprecated.
func (p *Part) Introspection(doc *syntax.Document) ([]byte, error) {
	n := newNotes(doc)
	s := object{"description": n.text("schema"), "queryType": p.rootName(p.Query), "mutationType": p.rootName(p.Mutation), "subscriptionType": p.rootName(p.Subscription)}
	types := []object{}
	for t := range p.Types {
		if p.shown[t] || p.Types[t].BuiltIn {
			types = append(types, p.describeType(n, schema.TypeID(t)))
		}
	}
	directives := []object{}
	for i := range p.Directives {
		if d := &p.Directives[i]; d.BuiltIn || p.isUsable(d) {
			at := "@" + d.Name
			directives = append(directives, object{
				"name": d.Name, "description": n.text(at), "isRepeatable": d.Repeatable, "locations": n.places[at], "args": p.describeInputs(n, at, d.Arguments),
			})
		}
	}
	s["types"], s["directives"] = types, directives
	answer, err := json.Marshal(object{"__schema": s})
	if err != nil {
		return nil, fmt.Errorf("describing a schema: %w", err)
	}
	return answer, nil
}

// object is a JSON object.
type object = map[string]any

func (p *Part) rootName(t schema.TypeID) any {
	if t == schema.NoType || !p.alive[t] {
		return nil
	}
	return p.named(t)
}

// named returns the reference to a type.
func (p *Part) named(t schema.TypeID) object {
	return object{"kind": p.kindOf(t), "name": p.Types[t].Name, "ofType": nil}
}

// kinds are the kinds of types as introspection names them.
var kinds = [...]string{
	schema.Scalar: "SCALAR", schema.Object: "OBJECT", schema.Interface: "INTERFACE", schema.Union: "UNION", schema.Enum: "ENUM", schema.InputObject: "INPUT_OBJECT",
}

func (p *Part) kindOf(t schema.TypeID) string {
	if p.unions[t] {
		return "UNION"
	}
	return kinds[p.Types[t].Kind]
}

// ref returns a reference with its wrappers.
func (p *Part) ref(r schema.TypeRef) object {
	switch {
	case r.IsNonNull():
		return object{"kind": "NON_NULL", "name": nil, "ofType": p.ref(r.Inner())}
	case r.IsList():
		return object{"kind": "LIST", "name": nil, "ofType": p.ref(r.Inner())}
	}
	return p.named(r.Type())
}

func (p *Part) describeType(n *notes, t schema.TypeID) object {
	def := &p.Types[t]
	o := object{
		"kind": p.kindOf(t), "name": def.Name, "description": n.text(def.Name), "specifiedByURL": nil, "fields": nil, "interfaces": nil,
		"possibleTypes": nil, "enumValues": nil, "inputFields": nil, "isOneOf": nil,
	}
	if url, ok := n.urls[def.Name]; ok {
		o["specifiedByURL"] = url
	}
	switch o["kind"] {
	case "OBJECT", "INTERFACE":
		o["fields"], o["interfaces"] = p.describeFields(n, t), p.names(p.implements[t])
	case "ENUM":
		values := []object{}
		for _, v := range p.Values[def.Values.Lo:def.Values.Hi] {
			values = append(values, n.member(def.Name+"."+v.Name, v.Name, v.Deprecated))
		}
		o["enumValues"] = values
	case "INPUT_OBJECT":
		o["inputFields"], o["isOneOf"] = p.describeInputs(n, def.Name, def.Inputs), def.OneOf
	}
	if kind := o["kind"]; kind == "INTERFACE" || kind == "UNION" {
		var members []schema.TypeID
		for object := range p.members(t) {
			members = append(members, object)
		}
		o["possibleTypes"] = p.names(members)
	}
	return o
}

func (p *Part) names(types []schema.TypeID) []object {
	all := []object{}
	for _, t := range types {
		all = append(all, p.named(t))
	}
	return all
}

func (p *Part) describeFields(n *notes, t schema.TypeID) []object {
	all := []object{}
	for f := range p.fieldsOf(t) {
		field := &p.Fields[f]
		at := p.Types[t].Name + "." + field.Name
		o := n.member(at, field.Name, field.Deprecated)
		o["args"], o["type"] = p.describeInputs(n, at, field.Arguments), p.ref(field.Type)
		all = append(all, o)
	}
	return all
}

func (p *Part) describeInputs(n *notes, of string, span schema.Span) []object {
	all := []object{}
	for i := range p.Inputs[span.Lo:span.Hi] {
		input := &p.Inputs[int(span.Lo)+i]
		o := n.member(of+"."+input.Name, input.Name, input.Deprecated)
		o["type"], o["defaultValue"] = p.ref(input.Type), nil
		if input.HasDefault {
			o["defaultValue"] = input.Default
		}
		all = append(all, o)
	}
	return all
}

// notes are what a document says and the tables of a schema do not, by the names of
// types, of fields and values behind a dot, and of arguments behind another one.
type notes struct {
	doc     *syntax.Document
	texts   map[string]string   // descriptions
	reasons map[string]string   // of what is deprecated
	urls    map[string]string   // that specify scalars
	places  map[string][]string // of directives
}

func newNotes(doc *syntax.Document) *notes {
	n := &notes{texts: map[string]string{}, reasons: map[string]string{}, urls: map[string]string{}, places: map[string][]string{}}
	for _, n.doc = range []*syntax.Document{sdl.BuiltIns(), doc} {
		for i := range n.doc.TypeDefs {
			n.addType(&n.doc.TypeDefs[i])
		}
	}
	return n
}

// text returns a description, or nil.
func (n *notes) text(at string) any {
	if text, ok := n.texts[at]; ok {
		return text
	}
	return nil
}

// member describes what may be deprecated.
func (n *notes) member(at, name string, deprecated bool) object {
	o := object{"name": name, "description": n.text(at), "isDeprecated": deprecated, "deprecationReason": nil}
	if reason, ok := n.reasons[at]; ok && deprecated {
		o["deprecationReason"] = reason
	}
	return o
}

func (n *notes) addType(def *syntax.TypeDef) {
	at := n.doc.Text(def.Name)
	switch def.Kind {
	case syntax.SchemaDef:
		at = "schema"
	case syntax.DirectiveDef:
		at = "@" + at
		n.places[at] = nil
		for _, place := range n.doc.Names[def.Members.Lo:def.Members.Hi] {
			n.places[at] = append(n.places[at], n.doc.Text(place))
		}
	}
	n.add(at, def.Description, def.Directives)
	if url, ok := n.argument(def.Directives, "specifiedBy", "url"); ok && url != "" {
		n.urls[at] = url
	}
	for i := range n.doc.FieldDefs[def.Fields.Lo:def.Fields.Hi] {
		f := &n.doc.FieldDefs[int(def.Fields.Lo)+i]
		field := at + "." + n.doc.Text(f.Name)
		n.add(field, f.Description, f.Directives)
		n.addInputs(field, f.Arguments)
	}
	for _, v := range n.doc.EnumValues[def.EnumValues.Lo:def.EnumValues.Hi] {
		n.add(at+"."+n.doc.Text(v.Name), v.Description, v.Directives)
	}
	n.addInputs(at, def.Inputs)
}

func (n *notes) addInputs(of string, inputs syntax.Range) {
	for _, input := range n.doc.InputDefs[inputs.Lo:inputs.Hi] {
		n.add(of+"."+n.doc.Text(input.Name), input.Description, input.Directives)
	}
}

// add adds what is said of one thing. Of repeated definitions the first counts.
func (n *notes) add(at string, description uint32, directives syntax.Range) {
	if _, twice := n.texts[at]; !twice && description != syntax.None {
		n.texts[at] = n.doc.StringValue(&n.doc.Values[description])
	}
	if reason, ok := n.argument(directives, "deprecated", "reason"); ok {
		if reason == "" {
			reason = "No longer supported"
		}
		n.reasons[at] = reason
	}
}

// argument returns a text argument of a directive, "" if it is left out. ok reports that
// the directive is there.
func (n *notes) argument(directives syntax.Range, directive, name string) (text string, ok bool) {
	for _, d := range n.doc.Directives[directives.Lo:directives.Hi] {
		if n.doc.Text(d.Name) != directive {
			continue
		}
		for _, a := range n.doc.Arguments[d.Arguments.Lo:d.Arguments.Hi] {
			if v := &n.doc.Values[a.Value]; n.doc.Text(a.Name) == name && v.Kind == syntax.StringValue {
				return n.doc.StringValue(v), true
			}
		}
		return "", true
	}
	return "", false
}
