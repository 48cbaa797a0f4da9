package diff

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestJSONNamesWhatDiffers(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `[]`},
		{`{"a":{"b":1,"c":[1,2]}}`, `{"a":{"c":[2,1],"b":1}}`, `[{"path":"a.c","before":[1,2],"after":[2,1]}]`},
		{`{"a":1}`, `{"b":1}`, `[{"path":"a","before":1},{"path":"b","after":1}]`},
		{`{"x y":{"/p":1}}`, `{"x y":{"/p":2}}`, `[{"path":"[\"x y\"][\"/p\"]","before":1,"after":2}]`},
		{`{"n":12345678901234567890}`, `{"n":12345678901234567891}`, `[{"path":"n","before":12345678901234567890,"after":12345678901234567891}]`},
		{``, `{"a":1}`, `[{"path":"","after":{"a":1}}]`},
		{`{"a":{}}`, ``, `[{"path":"","before":{"a":{}}}]`},
		{`{"a":1}`, `{"a":{"b":1}}`, `[{"path":"a","before":1,"after":{"b":1}}]`},
	} {
		changes, err := JSON(bytesOf(c.before), bytesOf(c.after))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(changes); string(got) != c.want {
			t.Errorf("%s → %s: %s, want %s", c.before, c.after, got, c.want)
		}
	}
	if _, err := JSON([]byte(`{`), nil); err == nil {
		t.Error("broken JSON is compared")
	}
}

func TestNamesOfAPath(t *testing.T) {
	for path, want := range map[string][]string{
		"":                                 nil,
		"rate":                             {"rate"},
		"proxy.listen_path":                {"proxy", "listen_path"},
		`access_rights["a.b \"c\""].limit`: {"access_rights", `a.b "c"`, "limit"},
		`["/x"][2].y`:                      {"/x", "2", "y"},
	} {
		if got, err := Names(path); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{".", "a.", "a..b", ".a", "a[", "a[x]", `a["x`, `a["x"`, `a["x"]b`, "a[-1]", `a["\x00"]`, `a["\xff"]`} {
		if got, err := Names(path); err == nil {
			t.Errorf("%s is taken as %q", path, got)
		}
	}
	for _, names := range [][]string{{"a", "b c", "d"}, {"x y", "[0]", `"`}, {"ä", "."}} {
		if got, err := Names(pathOf(names)); err != nil || !slices.Equal(got, names) {
			t.Errorf("%s: %q, %v", pathOf(names), got, err)
		}
	}
}

func bytesOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}
