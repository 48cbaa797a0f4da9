package clean

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Bounds on the contents of a JSON or YAML document.
const (
	maxDepth = 100
	maxNodes = 400_000
)

// A tree is a JSON object whose members keep their order. Values are trees, []any,
// strings, json.Number, booleans and nil.
type tree struct{ members []member }

type member struct {
	name  string
	value any
}

// get returns a member, or nil.
func (t *tree) get(name string) any {
	for i := range t.members {
		if t.members[i].name == name {
			return t.members[i].value
		}
	}
	return nil
}

// A trail is the path to a value: names and positions. It is formatted only for
// errors.
type trail []any

func (t trail) String() string {
	path := ""
	for _, step := range t {
		switch step := step.(type) {
		case int:
			path = object.Item(path, step)
		case string:
			path = object.Entry(path, clip(step))
		}
	}
	return path
}

// clip shortens a name for a message.
func clip(name string) string {
	if len(name) > 80 {
		return strings.ToValidUTF8(name[:80], "") + "…"
	}
	return name
}

// A grower parses a document into a tree, within bounds.
type grower struct {
	nodes int
	trail trail
}

// enter begins a value, which leave ends.
func (g *grower) enter(step any) error {
	g.trail = append(g.trail, step)
	if g.nodes++; g.nodes > maxNodes {
		return g.problemf("here the document has more than %d values", maxNodes)
	}
	if len(g.trail) > maxDepth {
		return problemf("", "nests more than %d levels", maxDepth)
	}
	return nil
}

func (g *grower) leave() { g.trail = g.trail[:len(g.trail)-1] }

func (g *grower) problemf(format string, args ...any) error {
	return problemf(g.trail.String(), format, args...)
}

// parseTree parses JSON, or else YAML.
func parseTree(source string) (*tree, error) {
	var value any
	var err error
	g := new(grower)
	if strings.HasPrefix(strings.TrimSpace(source), "{") {
		value, err = g.json(source)
	} else {
		value, err = g.yaml(source)
	}
	if err != nil {
		return nil, err
	}
	t, ok := value.(*tree)
	if !ok {
		return nil, problemf("", "must be an object, in JSON or YAML")
	}
	return t, nil
}

func (g *grower) json(source string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(source))
	dec.UseNumber()
	value, err := g.jsonValue(dec)
	if err == nil {
		if _, err = dec.Token(); errors.Is(err, io.EOF) {
			return value, nil
		}
		return nil, problemf("", "something follows the JSON object")
	}
	if _, known := errors.AsType[*Problem](err); known {
		return nil, err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, problemf("", "is no JSON: at byte %d: %v", dec.InputOffset(), err)
}

func (g *grower) jsonValue(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return g.jsonObject(dec)
	case json.Delim('['):
		return g.jsonArray(dec)
	}
	return token, nil
}

func (g *grower) jsonArray(dec *json.Decoder) (any, error) {
	items := []any{}
	for dec.More() {
		if err := g.enter(len(items)); err != nil {
			return nil, err
		}
		item, err := g.jsonValue(dec)
		if err != nil {
			return nil, err
		}
		g.leave()
		items = append(items, item)
	}
	_, err := dec.Token()
	return items, err
}

func (g *grower) jsonObject(dec *json.Decoder) (any, error) {
	t, at := new(tree), make(map[string]int)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder accepts only strings as names
		if err := g.enter(name); err != nil {
			return nil, err
		}
		value, err := g.jsonValue(dec)
		if err != nil {
			return nil, err
		}
		g.leave()
		t.put(at, name, value)
	}
	_, err := dec.Token()
	return t, err
}

// put adds a member, or replaces the one of that name. at has the indexes of members.
func (t *tree) put(at map[string]int, name string, value any) {
	if i, there := at[name]; there {
		t.members[i].value = value
		return
	}
	at[name] = len(t.members)
	t.members = append(t.members, member{name, value})
}

func (g *grower) yaml(source string) (any, error) {
	dec := yaml.NewDecoder(strings.NewReader(source))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, problemf("", "is neither JSON nor YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, problemf("", "holds more than one YAML document")
	}
	return g.yamlValue(&doc)
}

func (g *grower) yamlValue(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return g.yamlValue(n.Content[0])
	case yaml.AliasNode:
		return g.yamlValue(n.Alias)
	case yaml.MappingNode:
		return g.yamlMapping(n)
	case yaml.SequenceNode:
		items := []any{}
		for i, each := range n.Content {
			item, err := g.yamlBelow(each, i)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	}
	return g.scalar(n)
}

func (g *grower) yamlBelow(n *yaml.Node, step any) (any, error) {
	if err := g.enter(step); err != nil {
		return nil, err
	}
	value, err := g.yamlValue(n)
	if err == nil {
		g.leave()
	}
	return value, err
}

func (g *grower) yamlMapping(n *yaml.Node) (any, error) {
	t, at := new(tree), make(map[string]int)
	var merged []any
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, g.problemf("line %d: a name must be text", key.Line)
		}
		value, err := g.yamlBelow(n.Content[i+1], key.Value)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		t.put(at, key.Value, value)
	}
	for _, from := range merged {
		t.merge(at, from)
	}
	return t, nil
}

// merge adds the members of the objects that "<<" names, unless they exist.
func (t *tree) merge(at map[string]int, from any) {
	switch from := from.(type) {
	case []any:
		for _, one := range from {
			if one, ok := one.(*tree); ok {
				t.merge(at, one)
			}
		}
	case *tree:
		for _, m := range from.members {
			if _, there := at[m.name]; !there {
				t.put(at, m.name, m.value)
			}
		}
	}
}

// scalar returns a YAML scalar as its JSON value.
func (g *grower) scalar(n *yaml.Node) (any, error) {
	var value any
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&value); err != nil {
			return nil, g.problemf("line %d: %s", n.Line, strings.TrimPrefix(err.Error(), "yaml: "))
		}
	default:
		return n.Value, nil
	}
	if f, ok := value.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return nil, g.problemf("line %d: %s cannot be written in JSON", n.Line, n.Value)
	}
	if yes, ok := value.(bool); ok {
		return yes, nil
	}
	text, err := json.Marshal(value)
	return json.Number(text), err
}

// write returns a tree as JSON in which no byte has a meaning in HTML.
func (t *tree) write() (string, error) {
	var b bytes.Buffer
	if err := writeValue(&b, t); err != nil {
		return "", err
	}
	return b.String(), nil
}

func writeValue(b *bytes.Buffer, value any) error {
	switch v := value.(type) {
	case *tree:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeValue(b, m.name); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeValue(b, m.value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeValue(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing a document: %w", err)
	}
	b.Write(text)
	return nil
}
