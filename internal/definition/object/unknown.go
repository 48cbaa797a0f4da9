package object

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
)

// An UnknownMember is a member that was read and that the struct of its object lacks.
type UnknownMember struct {
	Path  string          // such as versions["v1"].expirse
	Form  string          // Path with * for names and positions of elements: versions.*.expirse
	Name  string          // its last part
	Value json.RawMessage // as it was read; it must not be changed
	Known []string        // the members that there are, sorted; it must not be changed
}

// UnknownMembers returns the unknown members of the struct that from points to and of
// all structs below it, by path.
//
// Members that are kept as raw JSON have no structs. The tag members:"a,b" on one of them
// names the members that its object may have.
func UnknownMembers(from any) []UnknownMember {
	w := unknownWalk{}
	w.value(reflect.ValueOf(from), "", "")
	slices.SortFunc(w.found, func(a, b UnknownMember) int { return cmp.Compare(a.Path, b.Path) })
	return w.found
}

type unknownWalk struct{ found []UnknownMember }

func (w *unknownWalk) value(v reflect.Value, path, form string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.value(v.Elem(), path, form)
		}
	case reflect.Struct:
		w.object(v, path, form)
	case reflect.Map:
		for each := v.MapRange(); hasObjects(v.Type()) && each.Next(); {
			w.value(each.Value(), Entry(path, each.Key().String()), Member(form, "*"))
		}
	case reflect.Slice:
		for i := 0; hasObjects(v.Type()) && i < v.Len(); i++ {
			w.value(v.Index(i), Item(path, i), Member(form, "*"))
		}
	}
}

// hasObjects reports whether the elements of a map or a slice can hold structs.
func hasObjects(t reflect.Type) bool {
	switch t = t.Elem(); t.Kind() {
	case reflect.Struct, reflect.Pointer, reflect.Map:
		return true
	case reflect.Slice:
		return t != rawType
	}
	return false
}

func (w *unknownWalk) object(v reflect.Value, path, form string) {
	l := layoutOf(v.Type())
	if l.unknown >= 0 {
		unknown := v.Field(l.unknown).Interface().(Unknown)
		for _, name := range unknown.Names() {
			if _, lenient := l.byName[name]; !lenient {
				w.add(path, form, name, unknown.Get(name), l.names)
			}
		}
	}
	for i := range l.members {
		m := &l.members[i]
		field, there := m.in(v)
		switch {
		case !there:
		case len(m.raw) > 0:
			w.raw(field.Bytes(), Member(path, m.name), Member(form, m.name), m.raw)
		default:
			w.value(field, Member(path, m.name), Member(form, m.name))
		}
	}
}

// raw looks at the members of an object that is kept as it was read.
func (w *unknownWalk) raw(text json.RawMessage, path, form string, known []string) {
	for name, value := range Members(text) {
		if !slices.Contains(known, name) {
			w.add(path, form, name, value, known)
		}
	}
}

func (w *unknownWalk) add(path, form, name string, value json.RawMessage, known []string) {
	w.found = append(w.found, UnknownMember{Path: Member(path, quoted(name)), Form: Member(form, name), Name: name, Value: value, Known: known})
}

// quoted returns a name as paths show it: in quotes if it would be mistaken for several
// names, or breaks a line.
func quoted(name string) string {
	for _, c := range []byte(name) {
		if c <= ' ' || c == '.' || c == '[' || c == '"' || c == 0x7f {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// Members returns the members of a JSON object that is kept as it is; none when it is
// something else.
func Members(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if len(raw) > 0 && raw[0] == '{' {
		_ = json.Unmarshal(raw, &members) // valid JSON, as Decode needs it
	}
	return members
}

// Take returns an unknown member and removes it, so that it is not written back. It is
// nil if there is none.
func (u *Unknown) Take(name string) json.RawMessage {
	value := u.members[name]
	delete(u.members, name)
	if len(u.members) == 0 {
		u.members = nil
	}
	return value
}
