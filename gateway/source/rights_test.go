package source

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// Policies and what they allow: the first two say the same, in another order.
var sharing = []string{
	`{"id":"a","rate":1,"per":1,"access_rights":{"x":{"api_id":"x","versions":["v1"]},"y":{"api_id":"y"}}}`,
	`{"id":"b","rate":2,"per":1,"access_rights":{"y":{"api_id":"y"},"x":{"versions":["v1"],"api_id":"x"}}}`,
	`{"id":"c","access_rights":{"x":{"api_id":"x","versions":["v1"]}}}`,
	`{"id":"d","access_rights":{"x":{"api_id":"x","versions":[]}}}`,
	`{"id":"e","access_rights":{"x":{"api_id":"x","x-mine":1}}}`,
	`{"id":"f","access_rights":{"y":{"versions":["v1"],"api_id":"y"}}}`,
	`{"id":"g"}`,
}

func TestPoliciesShareEqualRights(t *testing.T) {
	f := newFolder(t, false)
	var members []string
	for _, text := range sharing {
		id := text[len(`{"id":`):][:len(`"a"`)]
		members = append(members, id+":"+text)
	}
	f.write("policies/p.json", "{"+strings.Join(members, ",")+"}")
	ofAdmin, err := (*held)(nil).replacedBy(t.Context(), nil, []byte(`{"revision":"1","apis":[],"policies":[`+strings.Join(sharing, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string][]*definition.Policy{"files": f.src.mustRead(t).Policies, "admin": ofAdmin.bundle().Policies} {
		for i, text := range sharing {
			plain, err := definition.ParsePolicy([]byte(text))
			if err != nil || all[i].ContentHash() != plain.ContentHash() {
				t.Errorf("%s: %s became %s (%v)", name, text, asJSON(t, all[i]), err)
			}
		}
		a, c := all[0], all[2]
		if b := all[1]; a.AccessRights["x"] != b.AccessRights["x"] || a.AccessRights["y"] != b.AccessRights["y"] || fmt.Sprintf("%p", a.AccessRights) != fmt.Sprintf("%p", b.AccessRights) {
			t.Errorf("%s: equal rights are there twice", name)
		}
		if a.AccessRights["x"] != c.AccessRights["x"] {
			t.Errorf("%s: equal rights for one API are there twice", name)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAPolicyIsKeptInFewObjects(t *testing.T) {
	const many = 2000
	f := newFolder(t, false)
	all := make(map[string]any, many)
	for i := range many {
		all[fmt.Sprintf("policy-%04d", i)] = map[string]any{
			"rate": i, "per": 60, "org_id": "org", "active": true,
			"access_rights": map[string]any{"a": map[string]any{"api_id": "a", "versions": []string{"Default"}}},
		}
	}
	f.write("policies/p.json", asJSON(t, all))
	all = nil
	before := objects()
	b := f.src.mustRead(t)
	// The policy, its organisation and its id.
	if each := (objects() - before) / many; each > 3.5 {
		t.Errorf("%.1f objects per policy", each)
	}
	runtime.KeepAlive(b)
	runtime.KeepAlive(f)
}
