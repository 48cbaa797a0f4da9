package app

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluicegate/sluice/internal/definition/reference"
)

// The demo's objects conform to the schemas that editors check files with.
func TestTheDemoConformsToTheSchemas(t *testing.T) {
	kinds, err := reference.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	compile := func(k *reference.Kind) *jsonschema.Schema {
		c := jsonschema.NewCompiler()
		if err := c.AddResource("kind.json", asJSON(t, k.Schema(true))); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("kind.json")
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	apis, policies := compile(&kinds[0]), compile(&kinds[1])
	for _, a := range demoAPIs("http://127.0.0.1:8083") {
		if err := apis.Validate(asJSON(t, a.definition())); err != nil {
			t.Errorf("%s: %v", a.id, err)
		}
	}
	for _, p := range demoPolicies() {
		if err := policies.Validate(asJSON(t, p)); err != nil {
			t.Errorf("%v: %v", p["id"], err)
		}
	}
}

func asJSON(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return document
}
