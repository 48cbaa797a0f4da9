package reference

import (
	"encoding/json"
	"reflect"
)

// A Schema is a JSON Schema (draft 2020-12).
type Schema map[string]any

// Schema returns the JSON Schema of a kind, for editors. Documents that pass validation
// conform to it, except for members of a wrong type that are not in use. Unknown members, of
// which validation only warns, are allowed. With strict only those are that begin with x-,
// and $schema.
func (k *Kind) Schema(strict bool) Schema {
	b := &builder{comments: k.comments, strict: strict, named: make(Schema)}
	root := b.object(bare(k.of))
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = k.Title
	if len(b.named) > 0 {
		root["$defs"] = b.named
	}
	return root
}

// A builder builds the schema of one kind.
type builder struct {
	comments *Comments
	strict   bool
	named    Schema // by name of the type
}

// object returns the schema of a struct.
func (b *builder) object(t reflect.Type) Schema {
	properties := make(Schema)
	short := false
	for _, m := range b.comments.Of(t) {
		short = short || m.short
		properties[m.name] = b.member(&m)
	}
	s := Schema{"type": "object", "properties": properties}
	if b.strict {
		s["additionalProperties"] = false
		s["patternProperties"] = Schema{`^(x-|\$schema$)`: true}
	}
	if short {
		s = Schema{"anyOf": []any{Schema{"type": "string"}, s}}
	}
	return s
}

// member returns the schema of a member. A member that is null is as one that is left out.
func (b *builder) member(m *Member) Schema {
	s := orNull(b.value(m))
	s["description"] = m.Text
	s["examples"] = []any{m.Example}
	if m.literal != nil {
		s["default"] = m.literal
	}
	return s
}

// value returns the schema of the values that a member may have.
func (b *builder) value(m *Member) Schema {
	t := bare(m.field.Type)
	s := b.of(t)
	if m.Items != nil {
		m.Items.number(s["items"].(Schema))
	}
	switch {
	case len(m.Allowed) > 0:
		s["enum"] = m.Enum()
		if m.zero {
			return Schema{"anyOf": []any{s, Schema{"const": reflect.Zero(t).Interface()}}}
		}
	case m.Bounds == nil:
	case isNumber(t):
		m.Bounds.number(s)
		if least := m.Bounds.Least; m.zero && least != nil && (*least > 0 || m.Bounds.Above) {
			return Schema{"anyOf": []any{s, Schema{"const": 0}}}
		}
	case t.Kind() == reflect.String:
		s["maxLength"] = *m.Bounds.Most
	case t.Kind() == reflect.Map:
		s["maxProperties"] = *m.Bounds.Most
	default:
		s["maxItems"] = *m.Bounds.Most
	}
	return s
}

func (b *Bounds) number(s Schema) {
	switch {
	case b.Least == nil:
	case b.Above:
		s["exclusiveMinimum"] = *b.Least
	default:
		s["minimum"] = *b.Least
	}
	if b.Most != nil {
		s["maximum"] = *b.Most
	}
}

// Enum returns the allowed values as JSON has them; nil if there is no list of them.
func (m *Member) Enum() (values []any) {
	for _, text := range m.Allowed {
		if isNumber(bare(m.field.Type)) {
			values = append(values, json.Number(text))
		} else {
			values = append(values, text)
		}
	}
	return values
}

// of returns the schema of a type.
func (b *builder) of(t reflect.Type) Schema {
	t = bare(t)
	switch kind := t.Kind(); {
	case t == rawType:
		return make(Schema)
	case kind == reflect.Bool:
		return Schema{"type": "boolean"}
	case kind == reflect.String:
		return Schema{"type": "string"}
	case kind == reflect.Float64:
		return Schema{"type": "number"}
	case kind == reflect.Slice:
		return Schema{"type": "array", "items": b.element(t.Elem())}
	case kind == reflect.Map:
		return Schema{"type": "object", "additionalProperties": b.element(t.Elem())}
	case kind == reflect.Struct:
		return b.reference(t)
	}
	return Schema{"type": "integer"}
}

// element returns the schema of an element. Elements that are pointers may be null.
func (b *builder) element(t reflect.Type) Schema {
	if t.Kind() != reflect.Pointer {
		return b.of(t)
	}
	return orNull(b.of(t))
}

func orNull(s Schema) Schema {
	name, simple := s["type"].(string)
	switch _, enum := s["enum"]; {
	case len(s) == 0: // any value
	case simple && !enum:
		s["type"] = []string{name, "null"}
	default:
		return Schema{"anyOf": []any{s, Schema{"type": "null"}}}
	}
	return s
}

func (b *builder) reference(t reflect.Type) Schema {
	name := t.Name()
	if b.named[name] == nil {
		b.named[name] = true // holds the place: types may be recursive
		b.named[name] = b.object(t)
	}
	return Schema{"$ref": "#/$defs/" + name}
}
