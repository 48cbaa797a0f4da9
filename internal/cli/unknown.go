package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition"
)

// unknown notes the members of an API definition that this release keeps but
// does not know.
func (v *validation) unknown(file string, api *definition.API, data []byte) {
	if v.strict {
		v.unknownBelow(file, "", api, data)
	}
}

func (v *validation) unknownBelow(file, path string, object any, raw json.RawMessage) {
	walk := unknownWalk{file: file, found: &v.findings}
	walk.value(reflect.ValueOf(object), raw, path)
}

// unknownWalk goes through an object and the JSON that it was read from, side by
// side: what the JSON names and the object has no field for is unknown.
type unknownWalk struct {
	file  string
	found *[]finding
}

func (w unknownWalk) value(v reflect.Value, raw json.RawMessage, path string) {
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

func (w unknownWalk) object(v reflect.Value, raw json.RawMessage, path string) {
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
		message := "is not known to this release and has no effect"
		if near := config.Nearest(name, known); near != "" {
			message += "; did you mean " + near + "?"
		}
		*w.found = append(*w.found, finding{file: w.file, path: below, message: message, unknown: true})
	}
}

// membersOf returns the fields of a struct by their JSON names, those of
// embedded structs included.
func membersOf(v reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for i := range v.NumField() {
		declared := v.Type().Field(i)
		name, _, _ := strings.Cut(declared.Tag.Get("json"), ",")
		switch {
		case declared.Anonymous && name == "":
			maps.Copy(fields, membersOf(v.Field(i)))
		case name != "" && name != "-":
			fields[name] = v.Field(i)
		}
	}
	return fields
}

func (w unknownWalk) entries(v reflect.Value, raw json.RawMessage, path string) {
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

func (w unknownWalk) items(v reflect.Value, raw json.RawMessage, path string) {
	var elements []json.RawMessage
	if v.Type().Elem().Kind() == reflect.Uint8 || json.Unmarshal(raw, &elements) != nil {
		return
	}
	for i := range min(v.Len(), len(elements)) {
		w.value(v.Index(i), elements[i], fmt.Sprintf("%s[%d]", path, i))
	}
}
