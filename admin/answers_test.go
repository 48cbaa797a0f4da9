package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/secret"
)

// description is the OpenAPI document of a running admin.
type description struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]map[string]any }
}

// faults returns where a value is not what a schema says.
func (d *description) faults(schema map[string]any, value any, at string) []string {
	if name, ok := schema["$ref"].(string); ok {
		return d.faults(d.Components.Schemas[strings.TrimPrefix(name, "#/components/schemas/")], value, at)
	}
	for _, either := range []string{"anyOf", "oneOf"} {
		if forms, ok := schema[either].([]any); ok {
			var all []string
			for _, form := range forms {
				faults := d.faults(form.(map[string]any), value, at)
				if len(faults) == 0 {
					return nil
				}
				all = append(all, faults...)
			}
			return all
		}
	}
	kinds, _ := schema["type"].([]any)
	if one, ok := schema["type"].(string); ok {
		kinds = []any{one}
	}
	if len(kinds) > 0 && !slices.Contains(kinds, any(kindOf(value))) && !(kindOf(value) == "integer" && slices.Contains(kinds, any("number"))) {
		return []string{fmt.Sprintf("%s is %s and not %v", at, kindOf(value), kinds)}
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		return []string{fmt.Sprintf("%s is %v and not one of %v", at, value, enum)}
	}
	return d.inner(schema, value, at)
}

// inner is faults for what a value consists of.
func (d *description) inner(schema map[string]any, value any, at string) (faults []string) {
	switch value := value.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, one := range value {
			faults = append(faults, d.faults(items, one, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		others, open := schema["additionalProperties"].(map[string]any)
		for name, one := range value {
			property, known := properties[name].(map[string]any)
			switch {
			case known:
				faults = append(faults, d.faults(property, one, at+"."+name)...)
			case open:
				faults = append(faults, d.faults(others, one, at+"."+name)...)
			case schema["additionalProperties"] == false:
				faults = append(faults, at+"."+name+" is not described")
			}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := value[name.(string)]; !ok {
				faults = append(faults, fmt.Sprintf("%s.%s is required and not there", at, name))
			}
		}
	}
	return faults
}

// kindOf is the name that schemas have for the type of a value.
func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if value == math.Trunc(value) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// TestAnswersAreAsTheyAreDescribed asks every route that reads, and compares what comes
// with the description.
func TestAnswersAreAsTheyAreDescribed(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	ids := b.estate()
	var d description
	b.Call("GET", "/api/openapi.json", b.viewer, "").Want(200).Into(&d)
	compared := 0
	for _, r := range b.server.routes() {
		if r.Method != "GET" || r.Role == rest.Gateway || r.Role == rest.Developer || r.Waits || r.Type != "" {
			continue
		}
		id, longest := "", ""
		for prefix, one := range ids {
			if strings.HasPrefix(r.Path, prefix) && len(prefix) > len(longest) {
				id, longest = one, prefix
			}
		}
		key := ids["/api/keys/"]
		if strings.HasPrefix(r.Path, "/api/portal/developers/") {
			key = ids["key"]
		}
		path := strings.NewReplacer("{id}", id, "{n}", "1", "{key}", key, "{client}", ids["client"]).Replace(r.Path)
		for _, query := range []string{"?hashed=true", "?view=row"} {
			got := b.Call("GET", path+query, b.admin, "")
			media, described := d.Paths[r.Path]["get"].Responses["200"].Content["application/json"]
			var value any
			if got.Status != 200 || !described || json.Unmarshal(got.Body, &value) != nil {
				continue
			}
			compared++
			for _, fault := range d.faults(media.Schema, value, "") {
				t.Errorf("%s%s: %s", r.Name(), query, fault)
			}
		}
	}
	if compared < 40 {
		t.Errorf("only %d answers were compared", compared)
	}
}

// What is answered is described with all its members; what is sent requires none, and
// definitions may have others.
func TestDescriptionsAreClosed(t *testing.T) {
	b := start(t)
	var d description
	b.Call("GET", "/api/openapi.json", b.viewer, "").Want(200).Into(&d)
	for name, want := range map[string]struct {
		open     bool
		required string
	}{
		"ApiRow": {false, "calls_24h"}, "RestEnvelope": {false, "Message"}, "Outcome": {false, "changes"}, "API": {true, ""}, "Batch": {false, ""},
	} {
		schema := d.Components.Schemas[name]
		if name == "RestEnvelope" && schema == nil {
			schema = d.Components.Schemas["Envelope"]
		}
		required, _ := schema["required"].([]any)
		if schema["additionalProperties"] != want.open || want.required == "" && len(required) > 0 || want.required != "" && !slices.Contains(required, any(want.required)) {
			t.Errorf("%s: additional members %v, required %v", name, schema["additionalProperties"], required)
		}
	}
}
