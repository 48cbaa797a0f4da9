package desired

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

// refsMember is where a stored object says which of its values came from where:
// from JSON Pointers (RFC 6901) to references. It holds no secret.
const refsMember = "x-secrets"

// A Lookup returns a variable of the environment, and whether it is set.
type Lookup func(name string) (value string, set bool)

// references are where secrets of an object are kept, by the places of their
// values.
type references map[string]reference

// A reference is written {"env": NAME} or {"file": PATH}.
type reference struct {
	Env  string `json:"env,omitempty"`
	File string `json:"file,omitempty"`
}

// A resolver puts secrets in the place of references to them.
type resolver struct {
	lookup Lookup
	dir    string // that paths are relative to
	found  references
	wrong  []string
}

// resolve returns a specification with secrets in the place of references, and
// which those were. Members that begin with x- are nobody's secrets.
func (r *resolver) resolve(spec json.RawMessage) json.RawMessage {
	if !bytes.Contains(spec, []byte(`"env"`)) && !bytes.Contains(spec, []byte(`"file"`)) {
		return spec
	}
	tree, err := decode(spec)
	if err != nil {
		return spec // whoever reads it next says why
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

// referenceIn tells whether an object is a reference and nothing else.
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

// refsOf takes the references out of a stored object.
func refsOf(body []byte) references {
	var stored struct {
		Refs references `json:"x-secrets"`
	}
	if json.Unmarshal(body, &stored) != nil { // references that are none
		return nil
	}
	return stored.Refs
}

// A standIn is written in the place of a value.
type standIn struct{ reference }

// conceal puts references in the place of the secrets in a specification: those
// that it came from, and names of variables for others. It returns those names.
func (o *Object) conceal(tree map[string]any) (named []string) {
	for place, ref := range refsOf(o.Body) {
		putAt(tree, strings.Split(strings.TrimPrefix(place, "/"), "/"), standIn{ref})
	}
	delete(tree, refsMember)
	c := concealing{prefix: strings.ToUpper(string(o.Kind) + "_" + o.Name)}
	c.members("", tree, false)
	return c.named
}

// putAt puts a value where a pointer's segments lead to, if there is one.
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

// concealing names variables for secrets that came from nowhere known.
type concealing struct {
	prefix string
	named  []string
}

// members conceals the texts of an object that are secret; all of them when the
// object is.
func (c *concealing) members(place string, object map[string]any, all bool) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if strings.HasPrefix(name, "x-") && !redact.IsSecret(name) {
			continue
		}
		object[name] = c.value(place+"_"+name, object[name], all || redact.IsSecret(name))
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

// variable makes a text the name of a variable.
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

// masked is a value that differs, without secrets. refs are those of the object
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

// dotted is a pointer as people read it: .a.b[0].
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

// decode reads JSON with its numbers as they are written.
func decode(text []byte) (tree any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&tree)
	return tree, err
}
