package admin

import (
	"fmt"
	"strings"
	"testing"
)

const adopted = "3f5ac07e93d9e3a1b7c42f3d5b6a89f1c0d2e4f60718293a4b5c6d7e8f901234"

func plainAPI(id, path string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":%q,"proxy":{"listen_path":%q,"target_url":"http://127.0.0.1:1"}}`, id, id, path)
}

func TestManyObjectsAreAppliedAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	gold := `{"id":"gold","name":"gold","access_rights":{"one":{"versions":["Default"]}}}`
	key := `{"key_hash":"` + adopted + `","session":{"alias":"ann","apply_policies":["gold"]}}`
	body := `{"expect_revision":0,"reason":"first","apis":[` + plainAPI("one", "/one/") + `,` + plainAPI("two", "/two/") + `],"policies":[` + gold + `],"keys":[` + key + `]`
	dry := b.call("POST", "/api/config/apply", b.editor, body+`,"dry_run":true}`).want(200)
	if !strings.Contains(string(dry.body), `"action":"created"`) || !strings.Contains(string(dry.body), `"dry_run":true`) {
		t.Errorf("%s", dry.body)
	}
	b.call("GET", "/api/apis/one", b.viewer, "").want(404)
	b.call("POST", "/api/config/apply", b.editor, body+`}`).want(200)
	b.call("GET", "/api/apis/one", b.viewer, "").want(200)
	if got := b.call("GET", "/api/keys/"+adopted+"?hashed=true", b.viewer, "").want(200); !strings.Contains(string(got.body), `"ann"`) {
		t.Errorf("%s", got.body)
	}
	b.call("POST", "/api/config/apply", b.editor, body+`}`).want(409)

	swapped := `{"apis":[` + plainAPI("one", "/two/") + `,` + plainAPI("two", "/one/") + `]}`
	b.call("POST", "/api/config/apply", b.editor, swapped).want(200)
	if got := b.call("GET", "/api/apis/one", b.viewer, ""); !strings.Contains(string(got.body), `"/two/"`) {
		t.Errorf("the two have not traded places: %s", got.body)
	}
	inUse := b.call("POST", "/api/config/apply", b.editor, `{"delete":{"apis":["one"]}}`).want(409)
	if !strings.Contains(inUse.text("Message"), "gold") {
		t.Errorf("%s", inUse.body)
	}
	b.call("POST", "/api/config/apply", b.editor, `{"delete":{"apis":["one"],"policies":["gold"]}}`).want(200)
	b.call("GET", "/api/apis/one", b.viewer, "").want(404)
	b.call("GET", "/api/apis/two", b.viewer, "").want(200)
}

func TestABatchIsRefusedAsAWholeWithEveryPlace(t *testing.T) {
	t.Parallel()
	b := start(t)
	cases := map[string]struct {
		body   string
		status int
		named  []string
	}{
		"two bad objects": {
			`{"apis":[{"api_id":"one","proxy":{"listen_path":"x"}},` + plainAPI("two", "/two/") + `],"policies":[{"id":"p","rate":"x"}]}`,
			400,
			[]string{`apis[\"one\"].proxy.listen_path`, `policies[\"p\"].rate`},
		},
		"an unknown API":    {`{"policies":[{"id":"p","access_rights":{"none":{}}}]}`, 400, []string{`policies[\"p\"].access_rights[\"none\"]`}},
		"no id":             {`{"apis":[{"proxy":{"listen_path":"/a/","target_url":"http://a"}}]}`, 400, []string{"api_id"}},
		"twice":             {`{"apis":[` + plainAPI("one", "/one/") + `,` + plainAPI("one", "/uno/") + `]}`, 400, []string{"twice"}},
		"one path":          {`{"apis":[` + plainAPI("one", "/one/") + `,` + plainAPI("two", "/one") + `]}`, 409, []string{"route"}},
		"nothing to delete": {`{"apis":[` + plainAPI("one", "/one/") + `],"delete":{"policies":["none"]}}`, 404, []string{"none"}},
		"a bad hash":        {`{"keys":[{"key_hash":"xyz","session":{"access_rights":{"two":{}}}}]}`, 400, []string{"hexadecimal"}},
		"an unknown policy": {`{"keys":[{"key_hash":"` + adopted + `","session":{"apply_policies":["none"]}}]}`, 400, []string{"apply_policies", "none"}},
		"no rights":         {`{"keys":[{"key_hash":"` + adopted + `","session":{}}]}`, 400, []string{"access_rights"}},
		"unknown member":    {`{"apps":[]}`, 400, []string{"apps"}},
	}
	for name, c := range cases {
		got := b.call("POST", "/api/config/apply", b.editor, c.body).want(c.status)
		for _, text := range c.named {
			if !strings.Contains(string(got.body), text) {
				t.Errorf("%s: lacks %q: %s", name, text, got.body)
			}
		}
	}
	if got := b.call("GET", "/api/apis", b.viewer, "").want(200); strings.Contains(string(got.body), "api_id") {
		t.Errorf("something of a refused batch was stored: %s", got.body)
	}
	b.call("POST", "/api/config/apply", b.viewer, `{}`).want(403)
}
