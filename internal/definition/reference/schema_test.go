package reference

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t *testing.T, k *Kind, strict bool) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(k.Schema(strict))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("kind.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("kind.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func conforms(t *testing.T, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(document)
}

// What validation accepts conforms to the schema: the examples of all members, and the
// objects of other tests.
func TestValidObjectsConformToTheSchema(t *testing.T) {
	for _, k := range kindsOf(t) {
		schema := compiled(t, &k, false)
		for _, m := range k.Members {
			text, err := json.Marshal(documentWith(t, &k, &m, m.Example))
			if err != nil {
				t.Fatal(err)
			}
			if err := conforms(t, schema, text); err != nil {
				t.Errorf("%s %s: %v", k.Name, m.Path, err)
			}
		}
		if schema.Validate(map[string]any{"x-own": 1, "colour": "red"}) != nil {
			t.Errorf("%s: unknown members are refused", k.Name)
		}
		if strict := compiled(t, &k, true); strict.Validate(map[string]any{"x-own": 1.0, "$schema": "a"}) != nil || strict.Validate(map[string]any{"colour": "red"}) == nil {
			t.Errorf("%s: the strict schema is wrong about unknown members", k.Name)
		}
	}
	for pattern, kind := range map[string]int{
		"../testdata/api.json": 0, "../testdata/policy.json": 1, "../testdata/session.json": 2,
		"../../cli/testdata/good/orders.json": 0, "../../cli/testdata/good/users.json": 0, "../../cli/testdata/examples/classic/apps/*.json": 0, "../../cli/testdata/graphs/*.json": 0,
	} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		schema := compiled(t, &kindsOf(t)[kind], false)
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := conforms(t, schema, text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The schema refuses what is beyond the bounds of members, and other types.
func TestFaultyObjectsDoNotConformToTheSchema(t *testing.T) {
	for _, k := range kindsOf(t) {
		schema := compiled(t, &k, false)
		for _, m := range k.Members {
			if strings.HasPrefix(m.Path, "x-svc-streaming") || bare(m.field.Type) == rawType {
				continue
			}
			var wrong any = 7
			if isNumber(bare(m.field.Type)) {
				wrong = "seven"
			}
			for _, value := range append(beyond(&m), wrong) {
				text, err := json.Marshal(documentWith(t, &k, &m, value))
				if err != nil {
					t.Fatal(err)
				}
				if conforms(t, schema, text) == nil {
					t.Errorf("%s %s conforms with %.80v", k.Name, m.Path, value)
				}
			}
		}
	}
}
