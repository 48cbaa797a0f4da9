package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An object is a JSON object with its members in order.
type object struct {
	names  []string
	values map[string]any
}

// parse reads JSON: objects as *object, lists as []any, numbers as json.Number.
func parse(text []byte) (*object, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	value, err := next(dec)
	if err != nil {
		return nil, fmt.Errorf("reading a description: %w", err)
	}
	o, ok := value.(*object)
	if !ok {
		return nil, errors.New("reading a description: it is no object")
	}
	return o, nil
}

func next(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	switch {
	case !ok:
		return token, nil
	case delim == '[':
		list := []any{}
		for dec.More() {
			item, err := next(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = dec.Token()
		return list, err
	}
	o := &object{values: make(map[string]any)}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		value, err := next(dec)
		if err != nil {
			return nil, err
		}
		text, _ := name.(string)
		if _, twice := o.values[text]; !twice {
			o.names = append(o.names, text)
		}
		o.values[text] = value
	}
	_, err = dec.Token()
	return o, err
}

// The getters of objects return zero values for members that are not there or of another
// type. A nil object has no members.

func (o *object) get(name string) any {
	if o == nil {
		return nil
	}
	return o.values[name]
}

func (o *object) has(name string) bool { return o.get(name) != nil }

func (o *object) object(name string) *object {
	value, _ := o.get(name).(*object)
	return value
}

func (o *object) list(name string) []any {
	value, _ := o.get(name).([]any)
	return value
}

func (o *object) text(name string) string {
	switch value := o.get(name).(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	}
	return ""
}

func (o *object) flag(name string) bool {
	value, _ := o.get(name).(bool)
	return value
}

func (o *object) members() []string {
	if o == nil {
		return nil
	}
	return o.names
}

// texts returns the texts of a list.
func (o *object) texts(name string) (all []string) {
	for _, item := range o.list(name) {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// at follows a local reference such as #/components/schemas/User.
func (o *object) at(ref string) *object {
	path, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil
	}
	here := o
	for part := range strings.SplitSeq(path, "/") {
		here = here.object(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return here
}

// MarshalJSON writes the members in order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(o.values[name])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// pretty returns a value as indented JSON, without escapes for HTML.
func pretty(value any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(value) != nil {
		return ""
	}
	var indented bytes.Buffer
	if json.Indent(&indented, bytes.TrimSpace(b.Bytes()), "", "  ") != nil {
		return ""
	}
	return unescape(indented.String())
}

// unescape takes back the escapes of < > & that members of objects were written with.
func unescape(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
}

// inline returns a value as JSON on one line; texts are bare.
func inline(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return unescape(string(text))
}

func itoa(n int) string { return strconv.Itoa(n) }
