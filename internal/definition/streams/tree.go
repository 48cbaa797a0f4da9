package streams

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A node is a JSON value with its members in the order in which they were written.
type node struct {
	kind  byte     // first character: { [ " t f n, or a digit
	text  string   // of a string its text; of a number and a boolean as it is written
	names []string // of the members of an object
	below []*node  // members or items
	twice []string // names of members that are written twice; the first one counts
}

// readTree reads a JSON value that object.Check has passed.
func readTree(raw json.RawMessage) *node {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return readNode(decoder)
}

func readNode(from *json.Decoder) *node {
	token, err := from.Token()
	if err != nil {
		return &node{kind: 'n'}
	}
	switch t := token.(type) {
	case json.Delim:
		n := &node{kind: byte(t)}
		for from.More() {
			n.readBelow(from)
		}
		_, _ = from.Token() // the end, which valid JSON has
		return n
	case string:
		return &node{kind: '"', text: t}
	case json.Number:
		return &node{kind: '0', text: t.String()}
	case bool:
		if t {
			return &node{kind: 't', text: "true"}
		}
		return &node{kind: 'f', text: "false"}
	}
	return &node{kind: 'n'}
}

// readBelow reads the next member or item.
func (n *node) readBelow(from *json.Decoder) {
	if n.kind == '[' {
		n.below = append(n.below, readNode(from))
		return
	}
	token, _ := from.Token()
	name, _ := token.(string)
	value := readNode(from)
	if n.member(name) != nil {
		n.twice = append(n.twice, name)
		return
	}
	n.names, n.below = append(n.names, name), append(n.below, value)
}

// member returns a member of an object, or nil.
func (n *node) member(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for i, one := range n.names {
		if one == name {
			return n.below[i]
		}
	}
	return nil
}

// appendTo writes the value as JSON.
func (n *node) appendTo(b []byte) []byte {
	switch n.kind {
	case '{', '[':
		b = append(b, n.kind)
		for i, one := range n.below {
			if i > 0 {
				b = append(b, ',')
			}
			if n.kind == '{' {
				b = append(appendText(b, n.names[i]), ':')
			}
			b = one.appendTo(b)
		}
		return append(b, n.kind+2) // } and ] are two behind { and [
	case '"':
		return appendText(b, n.text)
	case 'n':
		return append(b, "null"...)
	}
	return append(b, n.text...)
}

func appendText(b []byte, text string) []byte {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can always be written
	return append(b, bytes.TrimSuffix(to.Bytes(), []byte{'\n'})...)
}

// entry is the path of an element by name: as that of a member where the name permits it.
func entry(parent, name string) string {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return object.Entry(parent, name)
	}
	return object.Member(parent, name)
}
