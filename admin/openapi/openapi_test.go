package openapi

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// Members that a definition writes inline are described where they are written,
// not below a name that JSON never has.
func TestInlineMembersAreDescribedInTheirPlace(t *testing.T) {
	text, err := Describe([]Route{{Method: http.MethodGet, Path: "/a", Body: definition.Policy{}, Reply: definition.Session{}, Failure: struct{}{}}}, "test")
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
