package ui

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// members are the paths of what a definition can hold: the members of its objects, lists
// and texts by name as one.
func members(t reflect.Type, prefix string, to map[string]bool) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || f.Type == reflect.TypeFor[definition.Unknown]():
		case options == "inline" || f.Anonymous:
			members(inner, prefix, to)
		case inner.Kind() == reflect.Struct:
			members(inner, prefix+name+".", to)
		default:
			to[prefix+name] = true
		}
	}
}

// TestEveryMemberOfAnAPIHasAField compares the table of the forms with what a definition
// can hold: a member has a field, or is named as one that is edited as text.
func TestEveryMemberOfAnAPIHasAField(t *testing.T) {
	text, err := os.ReadFile("web/src/pages/apis/fields.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Tabs map[string][]struct {
			Title  string
			Fields []struct{ Path, Kind, Label string }
		}
		Raw map[string]string
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	members(reflect.TypeFor[definition.API](), "", there)
	fields := make(map[string]bool)
	for tab, groups := range table.Tabs {
		for _, group := range groups {
			for _, f := range group.Fields {
				if fields[f.Path] {
					t.Errorf("%s: %s has two fields", tab, f.Path)
				}
				fields[f.Path] = true
				// The places of credentials are by name, and each is an Auth.
				path := strings.Replace(f.Path, "auth_configs.authToken.", "auth.", 1)
				if !there[path] || f.Label == "" || f.Kind == "" {
					t.Errorf("%s: %s is no member of a definition, or has no label", tab, f.Path)
				}
			}
		}
	}
	for path := range there {
		if !fields[path] && !below(table.Raw, path) {
			t.Errorf("%s has neither a field nor an entry of raw in fields.json", path)
		}
	}
	for path := range table.Raw {
		if fields[path] {
			t.Errorf("%s has a field, and is named as raw", path)
		}
	}
}

// below reports whether a path, or what it is a part of, is named.
func below(named map[string]string, path string) bool {
	for name := range named {
		if path == name || strings.HasPrefix(path, name+".") {
			return true
		}
	}
	return false
}
