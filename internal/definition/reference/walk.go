package reference

import (
	"reflect"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

var unknownType = reflect.TypeFor[object.Unknown]()

// Of returns the members of an object of a type, those of structs that it is written with
// among them, but not those below its members.
func (c *Comments) Of(t reflect.Type) (members []Member) {
	for f := range bare(t).Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || f.Type == unknownType || !f.IsExported():
		case options == "inline" || f.Anonymous && name == "":
			members = append(members, c.Of(f.Type)...)
		case name != "":
			members = append(members, c.member(bare(t), f, name))
		}
	}
	return members
}

// All returns the members of an object of a type and, behind each, those below it.
func (c *Comments) All(t reflect.Type) []Member { return c.below("", t) }

func (c *Comments) below(path string, t reflect.Type) (members []Member) {
	for _, m := range c.Of(t) {
		m.Path = object.Member(path, m.name)
		members = append(members, m)
		at, inner := elements(m.Path, m.field.Type)
		if inner.Kind() == reflect.Struct {
			members = append(members, c.below(at, inner)...)
		}
	}
	return members
}

// elements returns the type of what a value holds, and its path.
func elements(path string, t reflect.Type) (string, reflect.Type) {
	for t != rawType {
		switch t.Kind() {
		case reflect.Pointer:
		case reflect.Slice:
			path += "[]"
		case reflect.Map:
			path += "{}"
		default:
			return path, t
		}
		t = t.Elem()
	}
	return path, t
}

// isBelow reports whether a path is of a member below another.
func isBelow(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && rest != "" && strings.IndexByte(".[{", rest[0]) >= 0
}

// plain is a path without [] and {}, and in lower case.
func plain(path string) string {
	return strings.ToLower(strings.NewReplacer("[]", "", "{}", "").Replace(path))
}
