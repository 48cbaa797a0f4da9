package definition

import (
	"reflect"
	"strings"
	"sync"
)

// A layout is how one struct type looks in JSON.
type layout struct {
	members []member
	byName  map[string]int // index in members; names are compared exactly
	unknown int            // index of the struct's Unknown field, -1 without one
}

// A member is one field that has a JSON name.
type member struct {
	name      string
	index     []int // for reflect.Value.FieldByIndex: longer than one in an embedded struct
	omitEmpty bool
}

var unknownType = reflect.TypeFor[Unknown]()

// layouts caches layoutOf by reflect.Type.
var layouts sync.Map

func layoutOf(t reflect.Type) *layout {
	if found, ok := layouts.Load(t); ok {
		return found.(*layout)
	}
	l := &layout{byName: make(map[string]int), unknown: -1}
	l.collect(t, nil)
	found, _ := layouts.LoadOrStore(t, l)
	return found.(*layout)
}

// collect adds the fields of t, and of the structs it embeds in their place.
func (l *layout) collect(t reflect.Type, outer []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), outer...), i)
		tag, _ := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Type == unknownType && outer == nil:
			l.unknown = i
		case f.Anonymous && name == "":
			l.collect(f.Type, index)
		case name != "" && name != "-":
			l.byName[name] = len(l.members)
			l.members = append(l.members, member{name: name, index: index, omitEmpty: options == "omitempty"})
		}
	}
}
