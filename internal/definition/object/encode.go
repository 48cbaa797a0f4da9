package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Marshal writes the struct that from points to: its members in the order of its
// fields, then the unknown ones by name; elements of maps by name. Equal objects give
// equal bytes.
func Marshal(from any) ([]byte, error) {
	return appendValue(make([]byte, 0, 512), reflect.ValueOf(from).Elem())
}

func appendValue(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return appendValue(b, v.Elem())
	case reflect.Struct:
		return appendObject(b, v)
	case reflect.Map:
		return appendEntries(b, v)
	case reflect.Slice:
		return appendItems(b, v)
	case reflect.String:
		return appendString(b, v.String()), nil
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Float64:
		return appendFloat(b, v.Float())
	}
	return strconv.AppendInt(b, v.Int(), 10), nil
}

func appendObject(b []byte, v reflect.Value) ([]byte, error) {
	l := layoutOf(v.Type())
	var unknown Unknown
	if l.unknown >= 0 {
		unknown = v.Field(l.unknown).Interface().(Unknown)
	}
	if unknown.Short() && isShort(v, l) {
		field, _ := l.members[l.short].in(v)
		return appendString(b, field.String()), nil
	}
	b = append(b, '{')
	start := len(b)
	var err error
	for i := range l.members {
		m := &l.members[i]
		field, there := m.in(v)
		if !there {
			field = reflect.Zero(v.Type().FieldByIndex(m.index).Type)
		}
		if m.omitEmpty && isEmpty(field) && unknown.empty&(1<<i) == 0 {
			continue
		}
		if b, err = appendValue(appendName(b, start, m.name), field); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	for _, name := range SortedKeys(unknown.members) {
		b = append(appendName(b, start, name), unknown.members[name]...)
	}
	return append(b, '}'), nil
}

// isShort reports whether nothing but the short member is set.
func isShort(v reflect.Value, l *layout) bool {
	for i := range l.members {
		if field, there := l.members[i].in(v); i != l.short && there && !isEmpty(field) {
			return false
		}
	}
	return true
}

// appendName writes the name of the next member of an object whose members
// begin at start.
func appendName(b []byte, start int, name string) []byte {
	if len(b) > start {
		b = append(b, ',')
	}
	return append(appendString(b, name), ':')
}

func appendEntries(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	names := make([]string, 0, v.Len())
	for _, key := range v.MapKeys() {
		names = append(names, key.String())
	}
	slices.Sort(names)
	b = append(b, '{')
	start := len(b)
	var err error
	for _, name := range names {
		if b, err = appendValue(appendName(b, start, name), v.MapIndex(reflect.ValueOf(name))); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	return append(b, '}'), nil
}

func appendItems(b []byte, v reflect.Value) ([]byte, error) {
	if v.Type() == rawType {
		return appendRaw(b, v.Bytes())
	}
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	b = append(b, '[')
	var err error
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, v.Index(i)); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return append(b, ']'), nil
}

// appendRaw writes what a caller may have set by hand, so it is checked.
func appendRaw(b []byte, raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return append(b, "null"...), nil
	}
	out := bytes.NewBuffer(b)
	if err := json.Compact(out, raw); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	return out.Bytes(), nil
}

// appendString quotes s. Characters that only HTML minds stay as they are, since
// people read these objects.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be written
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...)
}

// appendFloat writes f as people do, and with an exponent where that would be
// long.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v cannot be written in JSON", f)
	}
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, 64), nil
}

// SortedKeys returns the names in a map in order.
func SortedKeys[T any](m map[string]T) []string {
	if len(m) == 0 {
		return nil
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
