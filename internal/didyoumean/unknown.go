package didyoumean

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// An UnknownMember is a member of JSON without a field.
type UnknownMember struct {
	Path  string   // such as proxy.lisen_path
	Name  string   // its last part
	Known []string // the known members there, sorted
}

// UnknownMembers walks an object and the JSON that it was decoded from, and returns the
// members of the JSON without a field in the object. path is the path of the object, ""
// for the root.
func UnknownMembers(object any, raw json.RawMessage, path string) []UnknownMember {
	var w walk
	w.value(reflect.ValueOf(object), raw, path)
	return w.found
}

type walk struct{ found []UnknownMember }

func (w *walk) value(v reflect.Value, raw json.RawMessage, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.value(v.Elem(), raw, path)
		}
	case reflect.Struct:
		w.object(v, raw, path)
	case reflect.Map:
		w.entries(v, raw, path)
	case reflect.Slice:
		w.items(v, raw, path)
	}
}

func (w *walk) object(v reflect.Value, raw json.RawMessage, path string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	fields := membersOf(v)
	known := slices.Sorted(maps.Keys(fields))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		below := strings.TrimPrefix(path+"."+name, ".")
		if field, ok := fields[name]; ok {
			w.value(field, members[name], below)
			continue
		}
		w.found = append(w.found, UnknownMember{Path: below, Name: name, Known: known})
	}
}

// membersOf returns the fields of a struct by their JSON names, including those of
// embedded structs and of pointers with the tag ",inline".
func membersOf(v reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for i := range v.NumField() {
		declared := v.Type().Field(i)
		name, options, _ := strings.Cut(declared.Tag.Get("json"), ",")
		switch {
		case name == "" && options == "inline":
			inline := v.Field(i)
			if inline.IsNil() {
				inline = reflect.New(declared.Type.Elem()) // absent, but its members are known
			}
			maps.Copy(fields, membersOf(inline.Elem()))
		case declared.Anonymous && name == "":
			maps.Copy(fields, membersOf(v.Field(i)))
		case name != "" && name != "-":
			fields[name] = v.Field(i)
		}
	}
	return fields
}

func (w *walk) entries(v reflect.Value, raw json.RawMessage, path string) {
	var members map[string]json.RawMessage
	if v.Type().Key().Kind() != reflect.String || json.Unmarshal(raw, &members) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if element := v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key())); element.IsValid() {
			w.value(element, members[name], fmt.Sprintf("%s[%q]", path, name))
		}
	}
}

func (w *walk) items(v reflect.Value, raw json.RawMessage, path string) {
	var elements []json.RawMessage
	if v.Type().Elem().Kind() == reflect.Uint8 || json.Unmarshal(raw, &elements) != nil {
		return
	}
	for i := range min(v.Len(), len(elements)) {
		w.value(v.Index(i), elements[i], fmt.Sprintf("%s[%d]", path, i))
	}
}
