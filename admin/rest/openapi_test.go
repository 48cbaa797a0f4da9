package rest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// Members that a definition writes inline are described where they are written,
// not below a name that JSON never has.
func TestInlineMembersAreDescribedInTheirPlace(t *testing.T) {
	text, err := Describe([]Route{{Method: http.MethodGet, Path: "/a", Body: definition.Policy{}, Reply: definition.Session{}}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for schema, members := range map[string][]string{
		"Policy": {"quota_renewal_calendar", "quota_renewal_zone", "quota_max", "enforcement"}, "Session": {"quota_renewal_zone", "session_lifetime"},
	} {
		has := doc.Components.Schemas[schema].Properties
		for _, name := range members {
			if has[name] == nil {
				t.Errorf("%s lacks %s", schema, name)
			}
		}
		for _, name := range []string{"Renewal", "Extra"} {
			if has[name] != nil {
				t.Errorf("%s has %s", schema, name)
			}
		}
	}
}

// The comments on the members of definitions are their descriptions, and have their examples.
func TestMembersOfDefinitionsAreDescribed(t *testing.T) {
	text, err := Describe([]Route{
		{Method: http.MethodPost, Path: "/a", Body: definition.API{}, Reply: definition.API{}},
		{Method: http.MethodGet, Path: "/b", Body: definition.Policy{}, Reply: definition.Session{}},
	}, "test")
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Type       string
		Properties map[string]struct {
			Description string
			Ref         string `json:"$ref"`
			Examples    []any
			Maximum     float64
			Default     any
		}
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				object
				OneOf []object
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	members := 0
	for name, schema := range doc.Components.Schemas {
		if name == "Envelope" {
			continue
		}
		for _, form := range append(schema.OneOf, schema.object) {
			members += len(form.Properties)
			for member, said := range form.Properties {
				if said.Description == "" || said.Ref == "" && len(said.Examples) == 0 {
					t.Errorf("%s.%s: description %q, examples %v", name, member, said.Description, said.Examples)
				}
			}
		}
	}
	if members < 400 {
		t.Errorf("%d members", members)
	}
	if interval := doc.Components.Schemas["HealthCheck"].Properties["interval"]; interval.Maximum != 3600 || interval.Default != 10.0 {
		t.Errorf("an interval is %+v", interval)
	}
	if forms := doc.Components.Schemas["Target"].OneOf; len(forms) != 2 || forms[0].Type != "string" || forms[1].Type != "object" {
		t.Errorf("a target is %+v", forms)
	}
}
