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
	dry := b.Call("POST", "/api/config/apply", b.editor, body+`,"dry_run":true}`).Want(200)
	if !strings.Contains(string(dry.Body), `"action":"created"`) || !strings.Contains(string(dry.Body), `"dry_run":true`) {
		t.Errorf("%s", dry.Body)
	}
	b.Call("GET", "/api/apis/one", b.viewer, "").Want(404)
	b.Call("POST", "/api/config/apply", b.editor, body+`}`).Want(200)
	b.Call("GET", "/api/apis/one", b.viewer, "").Want(200)
	if got := b.Call("GET", "/api/keys/"+adopted+"?hashed=true", b.viewer, "").Want(200); !strings.Contains(string(got.Body), `"ann"`) {
		t.Errorf("%s", got.Body)
	}
	b.Call("POST", "/api/config/apply", b.editor, body+`}`).Want(409)

	swapped := `{"apis":[` + plainAPI("one", "/two/") + `,` + plainAPI("two", "/one/") + `]}`
	b.Call("POST", "/api/config/apply", b.editor, swapped).Want(200)
	if got := b.Call("GET", "/api/apis/one", b.viewer, ""); !strings.Contains(string(got.Body), `"/two/"`) {
		t.Errorf("the two have not traded places: %s", got.Body)
	}
	inUse := b.Call("POST", "/api/config/apply", b.editor, `{"delete":{"apis":["one"]}}`).Want(409)
	if !strings.Contains(inUse.Text("Message"), "gold") {
		t.Errorf("%s", inUse.Body)
	}
	b.Call("POST", "/api/config/apply", b.editor, `{"delete":{"apis":["one"],"policies":["gold"]}}`).Want(200)
	b.Call("GET", "/api/apis/one", b.viewer, "").Want(404)
	b.Call("GET", "/api/apis/two", b.viewer, "").Want(200)
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
		got := b.Call("POST", "/api/config/apply", b.editor, c.body).Want(c.status)
		for _, text := range c.named {
			if !strings.Contains(string(got.Body), text) {
				t.Errorf("%s: lacks %q: %s", name, text, got.Body)
			}
		}
	}
	if got := b.Call("GET", "/api/apis", b.viewer, "").Want(200); strings.Contains(string(got.Body), "api_id") {
		t.Errorf("something of a refused batch was stored: %s", got.Body)
	}
	b.Call("POST", "/api/config/apply", b.viewer, `{}`).Want(403)
}

func TestKeysAreMadeInTheTransactionOfTheirBatch(t *testing.T) {
	t.Parallel()
	b := start(t)
	gold := `"apis":[` + plainAPI("one", "/one/") + `],"policies":[{"id":"gold","name":"gold","access_rights":{"one":{}}}]`
	ann := `{"generate":true,"session":{"alias":"ann","apply_policies":["gold"]}}`
	got := b.Call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[`+ann+`],"dry_run":true}`).Want(200)
	if strings.Contains(string(got.Body), "new_keys") {
		t.Errorf("a key that was not made: %s", got.Body)
	}
	b.Call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[`+ann+`,{"generate":true,"session":{"apply_policies":["none"]}}]}`).Want(400).Says(`keys[1].session.apply_policies`)
	b.Call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[{"session":{}},{"generate":true,"key_hash":"`+adopted+`","session":{}}]}`).Want(400).Says(`keys[0]: has either key_hash, or generate: true`, `keys[1]: has either`)
	b.Call("GET", "/api/portal/policies/gold", b.viewer, "").Want(404)

	var made struct {
		Keys []struct {
			At              int
			Name, Key, Hash string
			KeyHash         string `json:"key_hash"`
		} `json:"new_keys"`
	}
	got = b.Call("POST", "/api/config/apply", b.editor, `{`+gold+`,"keys":[`+ann+`,`+strings.Replace(ann, "ann", "bob", 1)+`]}`).Want(200)
	if err := json.Unmarshal(got.Body, &made); err != nil || len(made.Keys) != 2 || made.Keys[1].At != 1 || made.Keys[1].Name != "bob" {
		t.Fatalf("%v in %s", err, got.Body)
	}
	for _, k := range made.Keys {
		b.Call("GET", "/api/keys/"+k.Key, b.viewer, "").Want(200).Says(k.Name)
		b.Call("GET", "/api/keys/"+k.KeyHash+"?hashed=true", b.viewer, "").Want(200)
	}
}

func TestALargeBodyIsReadOfWhoMaySendIt(t *testing.T) {
	t.Parallel()
	b := start(t)
	large := `{"apis":[` + strings.TrimSuffix(strings.Repeat(plainAPI("one", "/one/")+",", (rest.MaxBody>>20+1)*10_000), ",") + `]}`
	if len(large) <= rest.MaxBody {
		t.Fatal("it is not large")
	}
	if got := b.Call("POST", "/api/config/apply", b.editor, large); got.Status != 400 || !strings.Contains(string(got.Body), "is there twice") {
		t.Errorf("of an editor: %d %.200s", got.Status, got.Body)
	}
	large = strings.Repeat(large[:rest.MaxBody], 4) // more than the sockets hold: the answer is read all the same
	for name, who := range map[string]string{"a viewer": b.viewer, "nobody": "", "a stranger": "sla_unknown"} {
		if got := b.Call("POST", "/api/config/apply", who, large); got.Status != 413 {
			t.Errorf("of %s: %d %.200s", name, got.Status, got.Body)
		}
	}
	if got := b.Call("POST", "/api/apis", b.editor, large); got.Status != 413 {
		t.Errorf("on another route: %d", got.Status)
	}
}
