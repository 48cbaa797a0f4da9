package reference

import (
	"slices"
	"strings"
)

// A trail is the references that lead to a schema, which end where one comes again.
type trail []string

// schema returns the node of a schema. What is too deep, too much, or contains itself is
// left to the page of its type.
func (r *reader) schema(s *object, by trail) *Node {
	r.left--
	n := new(Node)
	if s == nil {
		n.Type.Text = "any"
		return n
	}
	if ref := s.text("$ref"); ref != "" {
		return r.reference(s, ref, by)
	}
	n.HTML, n.Deprecated = s.text("description"), s.flag("deprecated")
	n.Type, n.Facts = r.typeOf(s), factsOf(s)
	for _, value := range s.list("enum") {
		n.Enum = append(n.Enum, inline(value))
	}
	if s.has("const") {
		n.Enum = append(n.Enum, inline(s.get("const")))
	}
	if s.has("example") {
		n.Example = inline(s.get("example"))
	} else if all := s.list("examples"); len(all) > 0 {
		n.Example = inline(all[0])
	}
	if len(n.Example) > 200 {
		n.Example = ""
	}
	if len(by) > maxDepth || r.left <= 0 {
		n.Cut = s.has("properties") || s.has("items")
		return n
	}
	r.inside(n, s, by)
	return n
}

// reference returns the node of a reference to a schema.
func (r *reader) reference(s *object, ref string, by trail) *Node {
	to, name := r.root.at(ref), ref[strings.LastIndexByte(ref, '/')+1:]
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	link := Type{Text: name, Name: name, ID: r.ids[ref]}
	if to == nil || slices.Contains(by, ref) || len(by) > maxDepth || r.left <= 0 {
		return &Node{Type: link, HTML: s.text("description"), Cut: to != nil}
	}
	n := r.schema(to, append(by[:len(by):len(by)], ref))
	if n.Type.ID == "" {
		link.After = ""
		n.Type = link
	}
	if own := s.text("description"); own != "" {
		n.HTML = own
	}
	return n
}

// inside adds what a schema consists of.
func (r *reader) inside(n *Node, s *object, by trail) {
	by = append(by[:len(by):len(by)], "")
	required := s.texts("required")
	properties := s.object("properties")
	for _, name := range properties.members() {
		child := r.schema(properties.object(name), by)
		child.Name, child.Required = name, slices.Contains(required, name)
		n.Children = append(n.Children, child)
		if property := properties.object(name); property.flag("readOnly") {
			child.Facts = append(child.Facts, "read only")
		} else if property.flag("writeOnly") {
			child.Facts = append(child.Facts, "write only")
		}
	}
	if more := s.object("additionalProperties"); more != nil {
		child := r.schema(more, by)
		child.Name = "(any other name)"
		n.Children = append(n.Children, child)
	}
	if items := s.object("items"); items != nil {
		of := r.schema(items, by)
		n.Type = listOf(of.Type, n.Type.After)
		n.Cut = n.Cut || of.Cut
		n.Enum, n.Facts = append(n.Enum, of.Enum...), append(n.Facts, of.Facts...)
		n.Children, n.Variants = append(n.Children, of.Children...), of.Variants
		if n.HTML == "" {
			n.HTML = of.HTML
		}
	}
	r.variants(n, s, by)
}

// listOf returns the type of lists of another.
func listOf(t Type, after string) Type {
	t.Before, t.After = "list of "+t.Before, t.After+after
	t.Text = t.Before + t.Name + t.After
	if t.Name == "" {
		t.Text = "list of " + strings.TrimPrefix(t.Text, "list of ")
	}
	return t
}

// variants adds what allOf, oneOf and anyOf name. Members of all that allOf names are
// those of the schema itself.
func (r *reader) variants(n *Node, s *object, by trail) {
	for _, item := range s.list("allOf") {
		part, _ := item.(*object)
		child := r.schema(part, by)
		n.Children = append(n.Children, child.Children...)
		n.Cut = n.Cut || child.Cut
		n.Facts = append(n.Facts, child.Facts...)
		if n.HTML == "" {
			n.HTML = child.HTML
		}
		if child.Variants != "" {
			n.Variants = child.Variants
		}
		if n.Type.Text == "any" || n.Type.Text == "" {
			n.Type = Type{Text: "object"}
			if len(child.Children) == 0 && child.Variants == "" && child.Type.Text != "" {
				n.Type = child.Type
			}
		}
	}
	for _, kind := range []struct{ member, words string }{{"oneOf", "one of"}, {"anyOf", "any of"}} {
		list := s.list(kind.member)
		if len(list) == 0 {
			continue
		}
		var options []*Node
		null := false
		for _, item := range list {
			part, _ := item.(*object)
			if part.text("type") == "null" {
				null = true
				continue
			}
			options = append(options, r.schema(part, by))
		}
		r.options(n, options, kind.words)
		if null {
			n.Type.After += " or null"
			n.Type.Text += " or null"
		}
	}
}

// options adds alternatives; a single one is the type itself.
func (r *reader) options(n *Node, options []*Node, words string) {
	if len(options) == 1 {
		one := options[0]
		n.Type, n.Children, n.Variants, n.Cut = one.Type, append(n.Children, one.Children...), one.Variants, n.Cut || one.Cut
		n.Enum, n.Facts = append(n.Enum, one.Enum...), append(n.Facts, one.Facts...)
		return
	}
	n.Variants = words
	n.Children = append(n.Children, options...)
	if n.Type.Text == "any" {
		n.Type.Text = words
	}
}

// typeOf returns the type of a schema in words.
func (r *reader) typeOf(s *object) Type {
	var names []string
	null := s.flag("nullable")
	for _, name := range append(s.texts("type"), textList(s.text("type"))...) {
		if name == "null" {
			null = true
			continue
		}
		names = append(names, name)
	}
	text := strings.Join(names, " or ")
	switch {
	case text == "" && s.has("properties"):
		text = "object"
	case text == "" && s.has("items"), text == "array":
		text = "list"
	case text == "":
		text = "any"
	}
	if format := s.text("format"); format != "" {
		text += " (" + format + ")"
	}
	t := Type{Text: text}
	if null {
		t.Text, t.After = text+" or null", " or null"
	}
	return t
}

func textList(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// bounds are the members of a schema that limit values, with words for them.
var bounds = []struct{ member, words string }{
	{"minimum", "at least "},
	{"exclusiveMinimum", "more than "},
	{"maximum", "at most "},
	{"exclusiveMaximum", "less than "},
	{"multipleOf", "a multiple of "},
	{"minLength", "length at least "},
	{"maxLength", "length at most "},
	{"minItems", "items at least "},
	{"maxItems", "items at most "},
	{"minProperties", "members at least "},
	{"maxProperties", "members at most "},
	{"pattern", "matches "},
}

// factsOf returns what else a schema says of values.
func factsOf(s *object) (all []string) {
	for _, b := range bounds {
		if text := s.text(b.member); text != "" {
			all = append(all, b.words+text)
		}
	}
	if s.flag("uniqueItems") {
		all = append(all, "no item twice")
	}
	if s.has("default") {
		all = append(all, "default "+inline(s.get("default")))
	}
	return all
}

// exampleText returns an example of a schema as JSON.
func (r *reader) exampleText(s *object) string {
	if s == nil {
		return ""
	}
	value := r.example(s, nil)
	if value == nil {
		return ""
	}
	return pretty(value)
}

// example makes an example value of a schema: what the description gives, or something of
// its type. Schemas that contain themselves end.
func (r *reader) example(s *object, by trail) any {
	if len(by) > 8 {
		return nil
	}
	if ref := s.text("$ref"); ref != "" {
		if slices.Contains(by, ref) {
			return nil
		}
		to := r.root.at(ref)
		if to == nil {
			return nil
		}
		return r.example(to, append(by[:len(by):len(by)], ref))
	}
	switch all := s.list("examples"); {
	case s.has("example"):
		return s.get("example")
	case len(all) > 0:
		return all[0]
	case s.has("const"):
		return s.get("const")
	case s.has("default"):
		return s.get("default")
	case len(s.list("enum")) > 0:
		return s.list("enum")[0]
	}
	return r.made(s, append(by[:len(by):len(by)], ""))
}

// made makes a value of a schema's type.
func (r *reader) made(s *object, by trail) any {
	for _, member := range []string{"oneOf", "anyOf"} {
		for _, item := range s.list(member) {
			if part, ok := item.(*object); ok && part.text("type") != "null" {
				return r.example(part, by)
			}
		}
	}
	kind := s.text("type")
	if kinds := s.texts("type"); len(kinds) > 0 {
		kind = kinds[0]
	}
	switch {
	case s.has("properties") || s.has("allOf") || kind == "object":
		return r.madeObject(s, by)
	case s.has("items") || kind == "array":
		if item := r.example(s.object("items"), by); item != nil {
			return []any{item}
		}
		return []any{}
	case kind == "integer" || kind == "number":
		if s.has("minimum") {
			return s.get("minimum")
		}
		return 0
	case kind == "boolean":
		return true
	case kind == "string":
		return madeText(s.text("format"))
	}
	return nil
}

func (r *reader) madeObject(s *object, by trail) any {
	o := &object{values: make(map[string]any)}
	put := func(name string, value any) {
		if _, there := o.values[name]; !there {
			o.names = append(o.names, name)
		}
		o.values[name] = value
	}
	for _, item := range s.list("allOf") {
		part, _ := item.(*object)
		if other, ok := r.example(part, by).(*object); ok {
			for _, name := range other.names {
				put(name, other.values[name])
			}
		}
	}
	properties := s.object("properties")
	for _, name := range properties.members() {
		if value := r.example(properties.object(name), by); value != nil {
			put(name, value)
		}
	}
	return o
}

func madeText(format string) string {
	switch format {
	case "date":
		return "2026-01-31"
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "uuid":
		return "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	case "email":
		return "ada@example.com"
	case "uri", "url":
		return "https://example.com"
	}
	return "text"
}
