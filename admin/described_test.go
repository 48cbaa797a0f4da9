package admin

import (
	"slices"
	"strings"
	"testing"
)

// An operation is one operation of the OpenAPI document.
type operation struct {
	Summary, Description string
	Parameters           []struct{ Name, In, Description string }
	Responses            map[string]struct{ Description string }
}

// undescribed returns the members of a schema that have no description of whole sentences.
func undescribed(schema map[string]any, at string) (missing []string) {
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		member, _ := property.(map[string]any)
		if said, _ := member["description"].(string); !strings.HasSuffix(said, ".") {
			missing = append(missing, at+"."+name+": "+said)
		}
		missing = append(missing, undescribed(member, at+"."+name)...)
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if below, ok := schema[inner].(map[string]any); ok {
			missing = append(missing, undescribed(below, at)...)
		}
	}
	for _, forms := range []string{"oneOf", "anyOf", "allOf"} {
		all, _ := schema[forms].([]any)
		for _, form := range all {
			missing = append(missing, undescribed(form.(map[string]any), at)...)
		}
	}
	return missing
}

// Every operation, parameter, response and member of a body is described. The comment on the field of
// the Go type is the description; bodies.go names the files that are read.
func TestEverythingIsDescribed(t *testing.T) {
	b := start(t)
	var d struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]map[string]any }
	}
	b.Call("GET", "/api/openapi.json", b.viewer, "").Want(200).Into(&d)
	var missing []string
	for path, methods := range d.Paths {
		for method, op := range methods {
			if op.Summary == "" || !strings.HasSuffix(op.Description, ".") {
				missing = append(missing, method+" "+path+": "+op.Description)
			}
			for _, p := range op.Parameters {
				if !strings.HasSuffix(p.Description, ".") {
					missing = append(missing, method+" "+path+", "+p.In+" "+p.Name+": "+p.Description)
				}
			}
			for status, r := range op.Responses {
				if r.Description == "" {
					missing = append(missing, method+" "+path+", status "+status)
				}
			}
		}
	}
	for name, schema := range d.Components.Schemas {
		missing = append(missing, undescribed(schema, name)...)
	}
	slices.Sort(missing)
	for _, one := range missing {
		t.Errorf("no description of whole sentences: %s", one)
	}
	if len(d.Components.Schemas) < 300 || len(d.Paths) < 150 {
		t.Errorf("only %d schemas and %d paths", len(d.Components.Schemas), len(d.Paths))
	}
}
