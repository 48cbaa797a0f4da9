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

// The comments on the members of definitions are their descriptions.
func TestMembersOfDefinitionsAreDescribed(t *testing.T) {
	text, err := Describe([]Route{{Method: http.MethodGet, Path: "/a", Body: definition.API{}, Reply: definition.API{}}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
				OneOf      []struct{ Type string }
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for schema, member := range map[string]string{
		"API": "api_id", "CORS": "max_age", "CacheOptions": "cache_timeout", "HealthCheck": "interval", "APIBreaker": "samples", "ExtendedPaths": "white_list", "PathEntry": "ignore_case",
	} {
		if doc.Components.Schemas[schema].Properties[member].Description == "" {
			t.Errorf("%s.%s has no description", schema, member)
		}
	}
	for name, member := range doc.Components.Schemas["API"].Properties {
		if member.Description == "" {
			t.Errorf("API.%s has no description", name)
		}
	}
	if forms := doc.Components.Schemas["Target"].OneOf; len(forms) != 2 || forms[0].Type != "string" || forms[1].Type != "object" {
		t.Errorf("a target is %+v", forms)
	}
}
