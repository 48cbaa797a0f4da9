package shell

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/goccy/go-yaml"
)

func FuzzWhatIsWrittenIsReadAgain(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b":[],"c":{},"d":[{"e":true},[1,2]],"*":"x: y","on":null}`,
		`{"schema":"type Query {\n  a: Int\n}\n","z":"a\n\nb","y":" a\nb","t":"a\tb\nc"}`,
		`{"":"","a b":"# no","n":"1","x":"<&>"}`, `["a\nb",{"k":"a\nb"}]`, `{"a":["x\ny\n"],"-":"- a\n- b"}`, `"a\nb"`, `{"u":"\u0085\n\u2028","v":"\\n\n"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want any
		if json.Unmarshal([]byte(text), &want) != nil || !isSmall(want) {
			return
		}
		once, err := json.Marshal(want) // without duplicate names
		if err != nil {
			t.Fatal(err)
		}
		written, err := YAML(once)
		if err != nil {
			t.Fatal(err)
		}
		var read any
		if err := yaml.Unmarshal([]byte(written), &read); err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		back, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(back, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nbecame\n%s\nand\n%s: %v", text, written, back, err)
		}
	})
}

// isSmall excludes values that the YAML reader changes: large or fractional numbers, and
// the merge key.
func isSmall(value any) bool {
	switch v := value.(type) {
	case float64:
		return v == float64(int32(v))
	case map[string]any:
		for name, member := range v {
			if len(name) > 100 || name == "<<" || !isSmall(member) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !isSmall(item) {
				return false
			}
		}
	}
	return true
}
