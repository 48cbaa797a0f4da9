package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
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

func TestKeysAreMadeInTheTransactionOfTheirBatch(t *testing.T) {
	t.Parallel()
	b := start(t)
	gold := `"apis":[` + plainAPI("one", "/one/") + `],"policies":[{"id":"gold","name":"gold","access_rights":{"one":{}}}]`
	ann := `{"generate":true,"session":{"alias":"ann","apply_policies":["gold"]}}`
	got := b.call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[`+ann+`],"dry_run":true}`).want(200)
	if strings.Contains(string(got.body), "new_keys") {
		t.Errorf("a key that was not made: %s", got.body)
	}
	b.call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[`+ann+`,{"generate":true,"session":{"apply_policies":["none"]}}]}`).want(400).says(`keys[1].session.apply_policies`)
	b.call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[{"session":{}},{"generate":true,"key_hash":"`+adopted+`","session":{}}]}`).want(400).says(`keys[0]: has either key_hash, or generate: true`, `keys[1]: has either`)
	b.call("GET", "/api/portal/policies/gold", b.viewer, "").want(404)

	var made struct {
		Keys []struct {
			At              int
			Name, Key, Hash string
			KeyHash         string `json:"key_hash"`
		} `json:"new_keys"`
	}
	got = b.call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[`+ann+`,`+strings.Replace(ann, "ann", "bob", 1)+`]}`).want(200)
	if err := json.Unmarshal(got.body, &made); err != nil || len(made.Keys) != 2 || made.Keys[1].At != 1 || made.Keys[1].Name != "bob" {
		t.Fatalf("%v in %s", err, got.body)
	}
	for _, k := range made.Keys {
		b.call("GET", "/api/keys/"+k.Key, b.viewer, "").want(200).says(k.Name)
		b.call("GET", "/api/keys/"+k.KeyHash+"?hashed=true", b.viewer, "").want(200)
	}
}

func TestALargeBodyIsReadOfWhoMaySendIt(t *testing.T) {
	t.Parallel()
	b := start(t)
	large := `{"apis":[` + strings.TrimSuffix(strings.Repeat(plainAPI("one", "/one/")+",", (rest.MaxBody>>20+1)*10_000), ",") + `]}`
	if len(large) <= rest.MaxBody {
		t.Fatal("it is not large")
	}
	if got := b.call("POST", "/api/config/apply", b.editor, large); got.status != 400 || !strings.Contains(string(got.body), "is there twice") {
		t.Errorf("of an editor: %d %.200s", got.status, got.body)
	}
	large = strings.Repeat(large[:rest.MaxBody], 4) // more than the sockets hold: the answer is read all the same
	for name, who := range map[string]string{"a viewer": b.viewer, "nobody": "", "a stranger": "sla_unknown"} {
		if got := b.call("POST", "/api/config/apply", who, large); got.status != 413 {
			t.Errorf("of %s: %d %.200s", name, got.status, got.body)
		}
	}
	if got := b.call("POST", "/api/apis", b.editor, large); got.status != 413 {
		t.Errorf("on another route: %d", got.status)
	}
}
