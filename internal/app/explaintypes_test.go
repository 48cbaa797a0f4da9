package app

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/gateway/explain"
)

// The types that describe explanations in the admin's description have the members of
// those that the gateway reads and writes.
func TestExplanationsAreDescribedAsTheyAre(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[explain.Request](), reflect.TypeFor[admin.ExplainQuestion]()},
		{reflect.TypeFor[explain.Report](), reflect.TypeFor[admin.ExplainReport]()},
		{reflect.TypeFor[refusalAnswer](), reflect.TypeFor[admin.ExplainRefused]()},
	} {
		sameMembers(t, pair[0].Name(), pair[0], pair[1])
	}
}

func sameMembers(t *testing.T, at string, is, described reflect.Type) {
	t.Helper()
	for is.Kind() == reflect.Pointer || is.Kind() == reflect.Slice {
		is = is.Elem()
	}
	for described.Kind() == reflect.Pointer || described.Kind() == reflect.Slice {
		described = described.Elem()
	}
	if is.Kind() != reflect.Struct || described.Kind() != reflect.Struct || is == described {
		if is.Kind() != described.Kind() && is.Name() != "Header" {
			t.Errorf("%s is a %s, and described as a %s", at, is, described)
		}
		return
	}
	has, says := membersOf(is), membersOf(described)
	for name, f := range has {
		other, found := says[name]
		if !found {
			t.Errorf("%s.%s is not described", at, name)
			continue
		}
		if strings.Contains(f.Tag.Get("json"), "omitempty") != strings.Contains(other.Tag.Get("json"), "omitempty") {
			t.Errorf("%s.%s: described by the tag %q, and has %q", at, name, other.Tag, f.Tag)
		}
		sameMembers(t, at+"."+name, f.Type, other.Type)
	}
	for name := range says {
		if _, found := has[name]; !found {
			t.Errorf("%s has no %s, which is described", at, name)
		}
	}
}

// membersOf returns the fields of a struct by their names in JSON, with those of structs
// that it embeds.
func membersOf(of reflect.Type) map[string]reflect.StructField {
	all := make(map[string]reflect.StructField)
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			all[name] = f
		}
	}
	return all
}
