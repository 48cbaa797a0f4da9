package object

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A layout is how one struct type looks in JSON.
type layout struct {
	members []member
	byName  map[string]int // index in members; names are compared exactly
	names   []string       // of the members, sorted
	unknown int            // index of the struct's Unknown field, -1 without one
	short   int            // index of the member that a string stands for, -1 without one
}

// A member is one field that has a JSON name.
type member struct {
	name      string
	index     []int // of the field; longer than one in a struct that is written inline
	omitEmpty bool  // always, where a pointer leads to the inline struct
	lenient   bool  // a value of another type is kept as an unknown member

	raw []string // sorted names of the members of a value that is kept as raw JSON; nil: it may have any
}

// in returns the member's field in a struct, or nothing where a nil pointer is on
// the way.
func (m *member) in(v reflect.Value) (field reflect.Value, there bool) {
	field, err := v.FieldByIndexErr(m.index)
	return field, err == nil
}

var unknownType = reflect.TypeFor[Unknown]()

// layouts caches layoutOf by reflect.Type.
var layouts sync.Map

func layoutOf(t reflect.Type) *layout {
	if found, ok := layouts.Load(t); ok {
		return found.(*layout)
	}
	l := &layout{byName: make(map[string]int), unknown: -1, short: -1}
	l.collect(t, nil)
	l.names = SortedKeys(l.byName)
	found, _ := layouts.LoadOrStore(t, l)
	return found.(*layout)
}

// collect adds the fields of t, and in their place those of the structs that it
// embeds and those that it points to with the tag ",inline".
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
		case options == "inline":
			l.collect(f.Type.Elem(), index)
		case name != "" && name != "-":
			own := f.Tag.Get("object")
			if own == "short" {
				l.short = len(l.members)
			}
			l.byName[name] = len(l.members)
			l.members = append(l.members, member{
				name: name, index: index, omitEmpty: strings.HasPrefix(options, "omit"), lenient: own == "lenient", raw: rawMembers(f.Tag),
			})
		}
	}
}

// rawMembers returns the names in the tag members, sorted.
func rawMembers(tag reflect.StructTag) []string {
	list, named := tag.Lookup("members")
	if !named {
		return nil
	}
	names := strings.Split(list, ",")
	slices.Sort(names)
	return names
}
