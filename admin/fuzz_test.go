package admin

import (
	"encoding/json"
	"testing"
)

// FuzzBodies looks at what is done to a body before definitions are parsed: it
// must neither break a body that is right nor hide one that is wrong.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"api_definition":{"name":"x"}}`, `{"api_definition":null}`, `{"access_rights_array":[{}],"rate":1.50}`,
		`{"access_rights_array":`, `[]`, `{"a":{"access_rights_array":1}}`, `{"access_rights_array":1,"access_rights_array":2}`, "\xff", ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := json.Valid(body)
		if inner := unwrap(body, "api_definition"); valid != json.Valid(inner) {
			t.Errorf("unwrapped %q to %q", body, inner)
		}
		rest, value := cutMember(body, "access_rights_array")
		if valid != json.Valid(rest) || value != nil && !json.Valid(value) {
			t.Errorf("cut %q into %q and %q", body, rest, value)
		}
		if again, more := cutMember(rest, "access_rights_array"); value != nil && (more != nil || string(again) != string(rest)) {
			t.Errorf("cut %q twice", body)
		}
	})
}
