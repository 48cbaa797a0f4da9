package definition

import (
	"reflect"
	"strings"
	"testing"
)

// The comments are the descriptions in the OpenAPI document: every member of an API,
// a policy and a session has one, in whole sentences.
func TestEveryMemberHasADescription(t *testing.T) {
	descriptions, err := ReadDescriptions()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[reflect.Type]bool)
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ == reflect.TypeFor[Unknown]() {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			walk(f.Type)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == "" || name == "-" {
				continue
			}
			if text := descriptions.Of(typ, f.Name); !strings.HasSuffix(text, ".") {
				t.Errorf("%s.%s has no comment of whole sentences: %q", typ.Name(), f.Name, text)
			}
		}
	}
	walk(reflect.TypeFor[API]())
	walk(reflect.TypeFor[Policy]())
	walk(reflect.TypeFor[Session]())
}

// The description of base_identity_provided_by names every auth mode.
func TestTheDescriptionOfTheBaseIdentityNamesEveryMode(t *testing.T) {
	descriptions, err := ReadDescriptions()
	if err != nil {
		t.Fatal(err)
	}
	text := descriptions.Of(reflect.TypeFor[API](), "BaseIdentity")
	for i := range AuthModes {
		if !strings.Contains(text, AuthModes[i].Name) {
			t.Errorf("%q does not name %s", text, AuthModes[i].Name)
		}
	}
}
