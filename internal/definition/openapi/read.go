package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// Bounds of a document.
const (
	MaxSize  = 1 << 20 // bytes
	maxDepth = 63      // of nesting; in the definition it is one level deeper
	maxNodes = 100_000 // values of a document in YAML, with those that aliases repeat
)

// toJSON returns a document, in JSON or YAML, as JSON without duplicate members.
func toJSON(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(data) > MaxSize {
		return nil, &definition.Problems{{Message: object.SizeMessage(len(data), MaxSize)}}
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return fromYAML(data)
	}
	if fault := object.Check(data, MaxSize); fault != nil {
		return nil, &definition.Problems{{Path: fault.Path, Message: fault.Message}}
	}
	c := &copier{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := c.json(dec, "", 1); err != nil {
		return nil, err
	}
	return c.result()
}

// A copier copies a document to JSON, and collects its problems.
type copier struct {
	out      bytes.Buffer
	problems definition.Problems
	nodes    int
}

func (c *copier) result() ([]byte, error) {
	if len(c.problems) > 0 {
		return nil, &c.problems
	}
	return c.out.Bytes(), nil
}

func (c *copier) add(path, format string, args ...any) {
	c.problems = append(c.problems, definition.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

const (
	twice   = "stands twice; leave one of them out"
	tooDeep = "nests deeper than the %d levels that are read"
)

// json copies the next value. The text was found to be valid before.
func (c *copier) json(dec *json.Decoder, path string, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return fmt.Errorf("reading a document: %w", err)
	}
	opened, nested := token.(json.Delim)
	if !nested {
		c.value(token)
		return nil
	}
	if depth > maxDepth {
		return &definition.Problems{{Path: path, Message: fmt.Sprintf(tooDeep, maxDepth)}}
	}
	c.out.WriteByte(byte(opened))
	seen := make(map[string]bool)
	for i := 0; dec.More(); i++ {
		if i > 0 {
			c.out.WriteByte(',')
		}
		at := object.Item(path, i)
		if opened == '{' {
			name, err := dec.Token()
			if err != nil {
				return fmt.Errorf("reading a document: %w", err)
			}
			at = c.name(path, fmt.Sprint(name), seen)
		}
		if err := c.json(dec, at, depth+1); err != nil {
			return err
		}
	}
	closed, err := dec.Token()
	c.out.WriteString(fmt.Sprint(closed))
	return err
}

// name writes the name of a member, and returns the path of the member.
func (c *copier) name(path, name string, seen map[string]bool) string {
	at := member(path, name)
	if seen[name] {
		c.add(at, twice)
	}
	seen[name] = true
	c.value(name)
	c.out.WriteByte(':')
	return at
}

// value writes a text, a number, a boolean or null.
func (c *copier) value(value any) {
	enc := json.NewEncoder(&c.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // such values can be encoded
	c.out.Truncate(c.out.Len() - 1)
}

// member returns the path of a member; names that are not plain are in brackets.
func member(path, name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return object.Entry(path, clip(name))
	}
	return object.Member(path, clip(name))
}

// fromYAML is toJSON for YAML.
func fromYAML(data []byte) ([]byte, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if errors.Is(err, io.EOF) {
			text = "it is empty"
		}
		return nil, &definition.Problems{{Message: "is neither JSON nor YAML: " + text}}
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &definition.Problems{{Message: "holds more than one YAML document"}}
	}
	c := &copier{}
	if err := c.yaml(&doc, "", 1); err != nil {
		return nil, err
	}
	return c.result()
}

func (c *copier) yaml(n *yaml.Node, path string, depth int) error {
	if c.nodes++; c.nodes > maxNodes {
		return &definition.Problems{{Path: path, Message: fmt.Sprintf("here the document has more than %d values", maxNodes)}}
	}
	if depth > maxDepth && (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) {
		return &definition.Problems{{Path: path, Message: fmt.Sprintf(tooDeep, maxDepth)}}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return c.yaml(n.Content[0], path, depth)
	case yaml.AliasNode:
		return c.yaml(n.Alias, path, depth+1) // one that holds itself ends at the depth
	case yaml.MappingNode:
		return c.mapping(n, path, depth)
	case yaml.SequenceNode:
		c.out.WriteByte('[')
		for i, each := range n.Content {
			if i > 0 {
				c.out.WriteByte(',')
			}
			if err := c.yaml(each, object.Item(path, i), depth+1); err != nil {
				return err
			}
		}
		c.out.WriteByte(']')
		return nil
	}
	c.scalar(n, path)
	return nil
}

func (c *copier) mapping(n *yaml.Node, path string, depth int) error {
	c.out.WriteByte('{')
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return &definition.Problems{{Path: path, Message: fmt.Sprintf("line %d: a name must be text; aliases and << are not read as names", key.Line)}}
		}
		if i > 0 {
			c.out.WriteByte(',')
		}
		at := c.name(path, key.Value, seen)
		if err := c.yaml(n.Content[i+1], at, depth+1); err != nil {
			return err
		}
	}
	c.out.WriteByte('}')
	return nil
}

// scalar writes a YAML scalar as its JSON value. Numbers that JSON writes alike keep their
// digits.
func (c *copier) scalar(n *yaml.Node, path string) {
	var value any
	switch n.ShortTag() {
	case "!!null":
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&value); err != nil {
			c.add(path, "line %d: %s", n.Line, strings.TrimPrefix(err.Error(), "yaml: "))
			return
		}
		if f, ok := value.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			c.add(path, "line %d: %s cannot be written in JSON", n.Line, n.Value)
			return
		}
		if _, yes := value.(bool); !yes && json.Valid([]byte(n.Value)) {
			value = json.Number(n.Value)
		}
	default:
		value = n.Value
	}
	c.value(value)
}

// clip shortens a name for a path.
func clip(name string) string {
	const most = 128
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}
