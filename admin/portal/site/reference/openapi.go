package reference

import (
	"cmp"
	"strings"
)

// methods are the methods of operations, in the order of pages.
var methods = []string{"get", "post", "put", "patch", "delete", "head", "options", "trace"}

// A reader reads one OpenAPI description.
type reader struct {
	root    *object
	second  bool // version 2
	schemas string
	ids     map[string]string // of the entries of types, by reference
	left    int               // nodes that the entry may still have
}

// Bounds of what is written out in the page of one entry.
const (
	maxNodes = 600
	maxDepth = 6
)

// OpenAPI returns the reference of a cleaned description of version 2 or 3.
func OpenAPI(text []byte) (*Reference, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	r := &reader{root: root, second: root.has("swagger"), schemas: "#/components/schemas/", ids: make(map[string]string)}
	if r.second {
		r.schemas = "#/definitions/"
	}
	info := root.object("info")
	ref := &Reference{Title: info.text("title"), Version: info.text("version"), HTML: info.text("description"), Server: r.server(), byID: make(map[string]*Entry)}
	all := root.at(strings.TrimSuffix(r.schemas, "/"))
	var types []*Entry
	for _, name := range all.members() {
		e := ref.add(&Entry{ID: "type." + Slug(name), Method: "schema", Name: name})
		r.ids[r.schemas+name] = e.ID
		types = append(types, e)
	}
	for i, name := range all.members() {
		s := all.object(name)
		r.left = maxNodes
		types[i].HTML, types[i].Deprecated = s.text("description"), s.flag("deprecated")
		types[i].Shape = r.schema(s, trail{r.schemas + name})
		types[i].Shape.HTML = ""
		types[i].Title = s.text("title")
	}
	r.operations(ref)
	if len(types) > 0 {
		ref.Types = []*Group{{Name: "Schemas", Entries: types}}
	}
	return ref, nil
}

// server returns what operations are below.
func (r *reader) server() string {
	if r.second {
		host := r.root.text("host")
		if host != "" {
			host = "//" + host
		}
		return host + r.root.text("basePath")
	}
	for _, item := range r.root.list("servers") {
		if s, ok := item.(*object); ok {
			return s.text("url")
		}
	}
	return ""
}

// operations adds the operations by their first tag.
func (r *reader) operations(ref *Reference) {
	groups := make(map[string]*Group)
	for _, item := range r.root.list("tags") {
		if tag, ok := item.(*object); ok && groups[tag.text("name")] == nil {
			g := &Group{Name: tag.text("name"), HTML: tag.text("description")}
			groups[g.Name] = g
			ref.Groups = append(ref.Groups, g)
		}
	}
	paths := r.root.object("paths")
	for _, path := range paths.members() {
		item := r.resolve(paths.object(path))
		for _, method := range methods {
			op := item.object(method)
			if op == nil {
				continue
			}
			e := ref.add(r.operation(op, item, method, path))
			name := "Operations"
			if tags := op.texts("tags"); len(tags) > 0 {
				name = tags[0]
			}
			if groups[name] == nil {
				groups[name] = &Group{Name: name}
				ref.Groups = append(ref.Groups, groups[name])
			}
			groups[name].Entries = append(groups[name].Entries, e)
		}
	}
	kept := ref.Groups[:0]
	for _, g := range ref.Groups {
		if len(g.Entries) > 0 {
			kept = append(kept, g)
		}
	}
	ref.Groups = kept
}

// resolve follows references of an object.
func (r *reader) resolve(o *object) *object {
	for range 10 {
		ref := o.text("$ref")
		if ref == "" {
			return o
		}
		o = r.root.at(ref)
	}
	return nil
}

func (r *reader) operation(op, item *object, method, path string) *Entry {
	r.left = maxNodes
	e := &Entry{
		ID: Slug(cmp.Or(op.text("operationId"), method+" "+path)), Method: strings.ToUpper(method), Name: path,
		Title: op.text("summary"), HTML: op.text("description"), Deprecated: op.flag("deprecated"),
	}
	seen := make(map[string]bool)
	for _, from := range [][]any{op.list("parameters"), item.list("parameters")} {
		for _, each := range from {
			sent, _ := each.(*object)
			p := r.resolve(sent)
			key := p.text("in") + " " + p.text("name")
			if p == nil || seen[key] {
				continue
			}
			seen[key] = true
			r.parameter(e, p, op)
		}
	}
	if body := r.resolve(op.object("requestBody")); body != nil {
		e.Body = &Body{HTML: body.text("description"), Required: body.flag("required"), Formats: r.formats(body.object("content"))}
	}
	responses := op.object("responses")
	for _, status := range responses.members() {
		if one := r.resolve(responses.object(status)); one != nil {
			e.Responses = append(e.Responses, r.response(status, one, op))
		}
	}
	e.Security = r.security(op)
	return e
}

// parameter adds a parameter, or the body that one is in version 2.
func (r *reader) parameter(e *Entry, p, op *object) {
	switch p.text("in") {
	case "body":
		e.Body = &Body{HTML: p.text("description"), Required: p.flag("required"), Formats: r.second2(p.object("schema"), nil, r.media(op, "consumes"))}
		return
	case "formData":
		if e.Body == nil {
			e.Body = &Body{Formats: []*Format{{Media: "application/x-www-form-urlencoded", Shape: &Node{Type: Type{Text: "object"}}}}}
		}
		n := r.named(p, p)
		e.Body.Formats[0].Shape.Children = append(e.Body.Formats[0].Shape.Children, n)
		return
	}
	schema := p.object("schema")
	if schema == nil {
		schema = p // version 2
		for _, media := range p.object("content").members() {
			schema = p.object("content").object(media).object("schema")
			break
		}
	}
	e.Parameters = append(e.Parameters, r.named(p, schema))
}

// named returns the node of a parameter or header.
func (r *reader) named(p, schema *object) *Node {
	n := r.schema(schema, nil)
	n.Name, n.In, n.Required, n.HTML = p.text("name"), p.text("in"), p.flag("required"), cmp.Or(p.text("description"), n.HTML)
	n.Deprecated = n.Deprecated || p.flag("deprecated")
	if p.has("example") {
		n.Example = inline(p.get("example"))
	} else if name := first(p.object("examples")); name != "" {
		n.Example = inline(r.resolve(p.object("examples").object(name)).get("value"))
	}
	return n
}

func first(o *object) string {
	if names := o.members(); len(names) > 0 {
		return names[0]
	}
	return ""
}

// media returns the media types of bodies in version 2.
func (r *reader) media(op *object, member string) []string {
	all := op.texts(member)
	if len(all) == 0 {
		all = r.root.texts(member)
	}
	if len(all) == 0 {
		all = []string{"application/json"}
	}
	return all[:1]
}

// second2 returns the formats of a body in version 2.
func (r *reader) second2(schema, examples *object, media []string) (all []*Format) {
	for _, name := range media {
		f := &Format{Media: name, Shape: r.schema(schema, nil)}
		if examples.has(name) {
			f.Example = pretty(examples.get(name))
		} else {
			f.Example = r.exampleText(schema)
		}
		all = append(all, f)
	}
	return all
}

// formats returns the formats of a body in version 3.
func (r *reader) formats(content *object) (all []*Format) {
	for _, media := range content.members() {
		m := content.object(media)
		f := &Format{Media: media}
		schema := m.object("schema")
		if schema != nil {
			f.Shape = r.schema(schema, nil)
		}
		switch name := first(m.object("examples")); {
		case m.has("example"):
			f.Example = asText(m.get("example"))
		case name != "":
			f.Example = asText(r.resolve(m.object("examples").object(name)).get("value"))
		case strings.Contains(media, "json") && schema != nil:
			f.Example = r.exampleText(schema)
		}
		all = append(all, f)
	}
	return all
}

func asText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	return pretty(value)
}

func (r *reader) response(status string, one, op *object) *Response {
	a := &Response{Status: status, HTML: one.text("description"), Formats: r.formats(one.object("content"))}
	if schema := one.object("schema"); r.second && schema != nil {
		a.Formats = r.second2(schema, one.object("examples"), r.media(op, "produces"))
	}
	headers := one.object("headers")
	for _, name := range headers.members() {
		h := r.resolve(headers.object(name))
		schema := h.object("schema")
		if schema == nil {
			schema = h
		}
		n := r.named(h, schema)
		n.Name, n.In = name, ""
		a.Headers = append(a.Headers, n)
	}
	return a
}

// security returns the names of the schemes that an operation may ask for.
func (r *reader) security(op *object) (all []string) {
	list := r.root.list("security")
	if op.has("security") {
		list = op.list("security")
	}
	for _, item := range list {
		o, _ := item.(*object)
		if names := o.members(); len(names) > 0 {
			all = append(all, strings.Join(names, " and "))
		}
	}
	return all
}
