package declarative

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/redact"
	"github.com/sluicegate/sluice/internal/secret"
)

// refsMember is the member of a stored object that maps JSON Pointers (RFC 6901) of its
// values to references. It holds no secret.
const refsMember = "x-secrets"

// A Lookup returns a variable of the environment, and whether it is set.
type Lookup func(name string) (value string, set bool)

// references are the references of an object by the pointers of their values.
type references map[string]reference

// A reference is written {"env": NAME} or {"file": PATH}.
type reference struct {
	Env  string `json:"env,omitempty"`
	File string `json:"file,omitempty"`
}

// A resolver replaces references by secrets.
type resolver struct {
	lookup Lookup
	dir    string // that paths are relative to
	found  references
	wrong  []string
}

// resolve returns a specification with references replaced by secrets, and these
// references. Members that begin with x- are not resolved.
func (r *resolver) resolve(spec json.RawMessage) json.RawMessage {
	if !bytes.Contains(spec, []byte(`"env"`)) && !bytes.Contains(spec, []byte(`"file"`)) {
		return spec
	}
	tree, err := decode(spec)
	if err != nil {
		return spec // decoding reports the problem
	}
	r.found = make(references)
	tree = r.value("", tree)
	if len(r.found) == 0 {
		return spec
	}
	text, err := encode(tree)
	if err != nil {
		r.wrong = append(r.wrong, "spec: "+err.Error())
		return spec
	}
	return text
}

func (r *resolver) value(place string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := referenceIn(v); ok && place != "" {
			return r.secret(place, ref)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !strings.HasPrefix(name, "x-") {
				v[name] = r.value(place+"/"+escapePointer(name), v[name])
			}
		}
	case []any:
		for i := range v {
			v[i] = r.value(place+"/"+strconv.Itoa(i), v[i])
		}
	}
	return value
}

// referenceIn reports whether an object is a reference.
func referenceIn(object map[string]any) (ref reference, ok bool) {
	if len(object) != 1 {
		return ref, false
	}
	env, isEnv := object["env"].(string)
	file, isFile := object["file"].(string)
	return reference{env, file}, isEnv || isFile
}

func (r *resolver) secret(place string, ref reference) any {
	at := secret.Reference{Env: ref.Env, File: ref.File}
	if at.File != "" && !filepath.IsAbs(at.File) {
		at.File = filepath.Join(r.dir, at.File)
	}
	value, err := at.Resolve(r.lookup)
	if err != nil {
		r.wrong = append(r.wrong, "spec"+dotted(place)+": "+err.Error())
		return ""
	}
	r.found[place] = ref
	return value.Reveal()
}

// refsOf removes the references from a stored object and returns them.
func refsOf(body []byte) references {
	var stored struct {
		Refs references `json:"x-secrets"`
	}
	if json.Unmarshal(body, &stored) != nil { // invalid references
		return nil
	}
	return stored.Refs
}

// A standIn replaces a value.
type standIn struct{ reference }

// conceal replaces the secrets in a specification by their references, or by variables,
// whose names it returns.
func (o *Object) conceal(tree map[string]any) (named []string) {
	for place, ref := range refsOf(o.Body) {
		putAt(tree, strings.Split(strings.TrimPrefix(place, "/"), "/"), standIn{ref})
	}
	delete(tree, refsMember)
	c := concealing{prefix: strings.ToUpper(string(o.Kind) + "_" + o.Name)}
	c.members("", tree, false)
	return c.named
}

// putAt replaces the value at a pointer's segments, if it exists.
func putAt(at any, segments []string, value any) {
	last := len(segments) == 1
	name := unescapePointer(segments[0])
	switch v := at.(type) {
	case map[string]any:
		if _, ok := v[name]; !ok {
			return
		}
		if last {
			v[name] = value
			return
		}
		putAt(v[name], segments[1:], value)
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return
		}
		if last {
			v[i] = value
			return
		}
		putAt(v[i], segments[1:], value)
	}
}

// concealing names variables for secrets without a reference.
type concealing struct {
	prefix string
	named  []string
}

// members conceals the secret texts of an object; all of them if the object is secret.
func (c *concealing) members(place string, object map[string]any, all bool) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if strings.HasPrefix(name, "x-") && !redact.IsSecret(name) {
			continue
		}
		text, _ := object[name].(string)
		object[name] = c.value(place+"_"+name, object[name], all || redact.IsSecret(name) && !redact.IsPublic(name, text))
	}
}

func (c *concealing) value(place string, value any, isSecret bool) any {
	switch v := value.(type) {
	case string:
		if isSecret && v != "" {
			name := variable(c.prefix + place)
			c.named = append(c.named, name)
			return standIn{reference{Env: name}}
		}
	case map[string]any:
		c.members(place, v, isSecret)
	case []any:
		for i := range v {
			v[i] = c.value(place+"_"+strconv.Itoa(i), v[i], isSecret)
		}
	}
	return value
}

// variable converts a text to the name of a variable.
func variable(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, text)
}

// masked returns a differing value without secrets. refs are the references of the object
// before and after.
func masked(path string, value any, refs ...references) any {
	if value == nil {
		return nil
	}
	for _, all := range refs {
		for place := range all {
			if at := strings.TrimPrefix(dotted(place), "."); path != refsMember && (at == path || strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[")) {
				return redact.Masked
			}
		}
	}
	for name := range strings.SplitSeq(path, ".") {
		if redact.IsSecret(name) {
			return redact.Masked
		}
	}
	return redact.Value(value)
}

// dotted formats a pointer as .a.b[0].
func dotted(pointer string) string {
	var b strings.Builder
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if _, err := strconv.Atoi(segment); err == nil {
			fmt.Fprintf(&b, "[%s]", segment)
			continue
		}
		b.WriteString("." + unescapePointer(segment))
	}
	return b.String()
}

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func unescapePointer(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// decode decodes JSON and keeps numbers as written.
func decode(text []byte) (tree any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&tree)
	return tree, err
}
