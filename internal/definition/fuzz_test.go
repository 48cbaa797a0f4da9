package definition

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

func FuzzParseAPI(f *testing.F) {
	seed(f, "api")
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseAPI(data)
		if err != nil {
			_ = err.Error()
			return
		}
		stable(t, a)
		if again := new(API); json.Unmarshal(data, again) != nil || again.ContentHash() != a.ContentHash() || a.Clone().ContentHash() != a.ContentHash() {
			t.Fatal("read twice, it has two contents")
		}
		keepsUnknown(t, data, &a.Unknown)
	})
}

func FuzzParseSession(f *testing.F) {
	seed(f, "session")
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSession(data)
		if err != nil {
			_ = err.Error()
			return
		}
		stable(t, s)
		keepsUnknown(t, data, &s.Unknown)
	})
}

func FuzzParsePolicies(f *testing.F) {
	seed(f, "policy")
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := ParsePolicy(data); err == nil {
			stable(t, p)
		}
		policies, err := ParsePolicies(append(append([]byte(`{"gold": `), data...), '}'))
		if (err == nil) != (len(policies) > 0) && len(policies) == 0 {
			t.Fatalf("no policy and no error")
		}
	})
}

func seed(f *testing.F, kind string) {
	data, err := os.ReadFile("testdata/" + kind + ".json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, s := range []string{
		graphAPI(`, "proxy": {"request_headers": {"A": "b"}, "features": {}}, "limits": {"max_depth": 5}, "trusted_documents": {"documents": {"x": "y"}}`),
		persisting(`[{"method": "GET", "path": "/{a}", "operation": "{ a }", "variables": {"a": ["$path.a", {"b": 1}]}}]`),
		`{}`, `null`, `[`, `{"a":1,"a":2}`, `{"limit":null}`, `{"access_rights":{"a":null}}`,
		`{"proxy":{"listen_path":"/a","target_url":"http://b"}}`, `{"rate":1e5,"\ud800":1,"tags":["\u2028<"]}`,
	} {
		f.Add([]byte(s))
	}
}

// stable fails t unless v, written and read and written, says the same as
// written once.
func stable[T any](t *testing.T, v *T) {
	once, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	back := new(T)
	if err := json.Unmarshal(once, back); err != nil {
		t.Fatalf("%v in %s", err, once)
	}
	twice, err := json.Marshal(back)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("%v: written as\n%s\nthen as\n%s", err, once, twice)
	}
}

func keepsUnknown(t *testing.T, data []byte, u *Unknown) {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		t.Fatal("accepted what is not JSON")
	}
	for name, was := range all {
		var want bytes.Buffer
		_ = json.Compact(&want, was)
		if raw := u.Get(name); raw != nil && !bytes.Equal(raw, want.Bytes()) {
			t.Fatalf("%q is %s, was %s", name, raw, &want)
		}
	}
}
