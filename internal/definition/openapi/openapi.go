// Package openapi converts the OpenAPI documents of stream APIs to API definitions and
// back. What a document says about the API itself, in x-svc-api-gateway, becomes members of
// the definition; its streams are the definition's x-svc-streaming; and the rest is kept in
// x-svc-openapi, so that nothing of it is lost.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// MediaType is the content type of the documents.
const MediaType = "application/vnd.svc.streams.oas"

// A Document is one OpenAPI document of a stream API.
type Document struct {
	top      map[string]json.RawMessage
	gateway  tree // x-svc-api-gateway, without the members that were taken over
	problems definition.Problems
	schemes  map[string]string // by entry of auth_configs, the path of the authentication scheme
	titled   bool              // the name of the API is info.title
}

// Read reads a document in JSON or YAML: at most MaxSize bytes. The error is
// *definition.Problems.
func Read(data []byte) (*Document, error) {
	text, err := toJSON(data)
	if err != nil {
		return nil, err
	}
	d := &Document{schemes: make(map[string]string)}
	if err := json.Unmarshal(text, &d.top); err != nil || d.top == nil {
		return nil, &definition.Problems{{Message: "must be an object, in JSON or YAML"}}
	}
	if d.gateway, err = parseTree(d.top[extension]); err != nil {
		d.gateway = nil // reported by check
	}
	return d, nil
}

// Org returns the organisation that the document names, or "".
func (d *Document) Org() string {
	org, _ := get(d.gateway, "info.orgId").(string)
	return org
}

func (d *Document) add(path, format string, args ...any) {
	d.problems = append(d.problems, definition.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Definition returns the API definition of the document, as JSON, to be parsed, with the
// problems that parsing it cannot see. Stored is the definition that it replaces, or nil:
// what documents cannot say stays as it is there. It must be called once.
func (d *Document) Definition(stored []byte) (text []byte, problems definition.Problems, err error) {
	to := tree{}
	if stored != nil {
		if to, err = parseTree(stored); err != nil {
			return nil, nil, fmt.Errorf("reading a stored definition: %w", err)
		}
		clearOut(to)
	}
	d.check()
	if d.gateway != nil {
		d.takeOver(to)
	}
	to[streaming] = d.top[streaming]
	if d.top[streaming] == nil {
		delete(to, streaming)
		d.add(streaming, `is required: the streams, such as {"streams": {"orders": {"input": {…}, "output": {…}}}}`)
	} else if len(object.Members(object.Members(d.top[streaming])["streams"])) == 0 {
		d.add(streaming+".streams", "is required: at least one stream by its name")
	}
	if to[kept], err = d.rest(); err != nil {
		return nil, nil, err
	}
	text, err = write(to)
	return text, d.problems, err
}

var versions = regexp.MustCompile(`^3\.[01]\.\d+$`)

// check checks the parts of the document that do not become members of the definition.
func (d *Document) check() {
	switch v := d.top["openapi"]; {
	case v == nil:
		d.add("openapi", `is required: the version of the specification, such as "3.0.3"`)
	case !versions.MatchString(textOf(v)):
		d.add("openapi", `must be "3.0.x" or "3.1.x", such as "3.0.3"`)
	}
	info := object.Members(d.top["info"])
	for _, name := range []string{"title", "version"} {
		if strings.TrimSpace(textOf(info[name])) == "" {
			d.add("info."+name, "is required, as a text")
		}
	}
	for name, kind := range map[string]byte{"info": '{', "paths": '{', "components": '{', "servers": '[', "security": '[', "tags": '['} {
		if value := d.top[name]; value != nil && value[0] != kind {
			d.add(name, "must be %s", object.TypeName(kind))
		}
	}
	switch {
	case d.top[extension] == nil:
		d.add(extension, `is required: what the API is called and where it is served, such as {"info": {"name": "orders"}, "server": {"listenPath": {"value": "/orders/"}}}`)
	case d.gateway == nil:
		d.add(extension, "must be an object")
	}
	if d.top[kept] != nil {
		d.add(kept, "is a member of definitions, not of documents; leave it out")
	}
	slices.SortStableFunc(d.problems, func(a, b definition.Problem) int { return strings.Compare(a.Path, b.Path) })
}

// textOf returns a text in JSON, or "".
func textOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // what is no text is ""
	return text
}

// switched are the objects of x-svc-api-gateway that have no effect unless enabled is true
// or left out.
var switched = []string{"server.customDomain", "server.gatewayTags", "middleware.global.requestSizeLimit"}

// takeOver moves what x-svc-api-gateway says to the definition, and reports what is left.
func (d *Document) takeOver(to tree) {
	off := make(map[string]any)
	for _, path := range switched {
		if get(d.gateway, path+".enabled") == false {
			off[path] = take(d.gateway, path)
		} else {
			take(d.gateway, path+".enabled")
		}
	}
	set(to, "active", true)
	set(to, "proxy.strip_listen_path", true)
	set(to, "proxy.target_url", "")
	d.authenticate(to)
	move(d.gateway, to, fields)
	if name, _ := to["name"].(string); to["name"] == nil || name == "" {
		to["name"], d.titled = textOf(object.Members(d.top["info"])["title"]), true
	}
	if get(to, sizeLimit) != nil {
		d.addVersion(to)
	}
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.document)
	}
	known = append(known, schemes)
	rest(&d.problems, extension, d.gateway, known)
	for _, path := range switched {
		if off[path] != nil {
			set(d.gateway, path, off[path])
		}
	}
}

// addVersion completes the one version that a limit of all requests is in.
func (d *Document) addVersion(to tree) {
	all, _ := get(to, "version_data.versions").(tree)
	if get(to, "version_data.not_versioned") == false && len(all) > 1 {
		d.add(extension+".middleware.global.requestSizeLimit", "cannot be set here for an API with versions; set global_size_limit of each by PUT /api/apis/{id}")
		return
	}
	set(to, "version_data.not_versioned", true)
	set(to, version+".name", "Default")
}

// rest returns what is kept of the document beside the definition.
func (d *Document) rest() (json.RawMessage, error) {
	left := make(map[string]json.RawMessage, len(d.top))
	for name, value := range d.top {
		if name != streaming && name != extension && name != kept {
			left[name] = value
		}
	}
	if len(d.gateway) > 0 {
		var err error
		if left[extension], err = write(d.gateway); err != nil {
			return nil, err
		}
	}
	return writeTop(left)
}

// writeTop writes the members of a document, the usual ones first and in their usual order.
func writeTop(top map[string]json.RawMessage) (json.RawMessage, error) {
	usual := []string{"openapi", "info", "servers", "paths"}
	names := slices.DeleteFunc(object.SortedKeys(top), func(name string) bool { return slices.Contains(usual, name) })
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range slices.Concat(usual, names) {
		if top[name] == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		quoted, err := write(name)
		if err != nil {
			return nil, err
		}
		b.Write(quoted)
		b.WriteByte(':')
		b.Write(top[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// write returns a value as JSON, without escapes for HTML.
func write(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("writing a document: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// clearOut removes the members of a stored definition that documents say.
func clearOut(t tree) {
	if old := take(t, "auth"); old != nil && get(t, "auth_configs."+tokenConfig) == nil {
		set(t, "auth_configs."+tokenConfig, old)
	}
	for _, f := range slices.Concat(fields, tokenFields) {
		take(t, f.definition)
	}
	take(t, "use_keyless")
	for _, m := range modes {
		take(t, m.member)
		for _, f := range schemeFields {
			take(t, "auth_configs."+m.config+"."+f.definition)
		}
		take(t, "auth_configs."+m.config+".disable_header")
		take(t, "auth_configs."+m.config+".name")
	}
	delete(t, kept)
	delete(t, streaming)
}

// plain turns paths of definitions into those of fields.
var plain = strings.NewReplacer(`["`, ".", `"]`, "")

// Place returns where in the document what a path of the definition names is, for messages.
func (d *Document) Place(path string) string {
	if below, ok := strings.CutPrefix(path, kept+"."); ok {
		return below
	}
	if d.titled && path == "name" {
		return "info.title"
	}
	flat := plain.Replace(path)
	for _, f := range fields {
		if below, ok := within(flat, f.definition); ok {
			return extension + "." + f.document + below
		}
	}
	for _, m := range modes {
		at := d.schemes[m.config]
		if at == "" {
			at = extension + "." + authentication
		}
		if flat == m.member {
			return at
		}
		if below, ok := within(flat, "auth_configs."+m.config); ok {
			return at + inScheme(below, schemeFields)
		}
	}
	if at := d.schemes["jwt"]; at != "" && strings.HasPrefix(flat, "jwt_") {
		return at + inScheme("."+flat, tokenFields)
	}
	if flat == "use_keyless" {
		return extension + "." + authentication
	}
	return path
}

// within returns what follows a path that is prefix or below it.
func within(path, prefix string) (below string, ok bool) {
	below, ok = strings.CutPrefix(path, prefix)
	return below, ok && (below == "" || below[0] == '.' || below[0] == '[')
}

// inScheme returns the path in an authentication scheme for one in the definition.
func inScheme(path string, all []field) string {
	if path == ".disable_header" {
		return ".header.enabled"
	}
	for _, f := range all {
		if below, ok := within(path, "."+f.definition); ok {
			return "." + f.document + below
		}
	}
	return ""
}

// HasStreams reports whether a stored definition has event streams.
func HasStreams(stored []byte) bool {
	return len(object.Members(object.Members(object.Members(stored)[streaming])["streams"])) > 0
}

// Add adds the problems of a definition that was made of the document, with the places in
// it. What is wrong at a place already is not said in other words.
func (d *Document) Add(problems, of definition.Problems) definition.Problems {
	for _, p := range of {
		p.Path = d.Place(p.Path)
		covered := slices.ContainsFunc(problems, func(known definition.Problem) bool {
			_, below := within(p.Path, known.Path)
			return below && known.Path != ""
		})
		if !covered {
			problems = append(problems, p)
		}
	}
	return problems
}
