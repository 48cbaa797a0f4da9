package control

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

func TestAnAPIIsStoredAtOnceAndLiveAfterAReload(t *testing.T) {
	b := onFiles(t)
	b.want("GET", "/svc/apis", "", 200, `[]`)
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	if b.files() != "weather.json" {
		t.Errorf("files: %s", b.files())
	}
	b.want("GET", "/svc/apis", "", 200, `[]`)
	b.want("GET", "/svc/apis/weather", "", 404, failed("API not found"))
	b.reload()
	got := decoded[[]definition.API](t, b.call("GET", "/svc/apis", ""))
	if len(got) != 1 || got[0].ID != "weather" || got[0].Proxy.TargetURL != "http://upstream.example" {
		t.Errorf("got %+v", got)
	}
	if one := decoded[definition.API](t, b.call("GET", "/svc/apis/weather", "")); one.ID != "weather" {
		t.Errorf("got %+v", one)
	}
	b.want("DELETE", "/svc/apis/weather", "", 200, done("weather", "deleted"))
	if b.files() != "" {
		t.Errorf("files: %s", b.files())
	}
	if b.call("GET", "/svc/apis/weather", "").status != 200 {
		t.Error("not live any more before the reload")
	}
	b.want("DELETE", "/svc/apis/weather", "", 500, failed("Delete failed"))
	b.reload()
	b.want("DELETE", "/svc/apis/weather", "", 404, failed("API not found"))
	b.want("GET", "/svc/apis", "", 200, `[]`)
}

func TestAnIDIsGeneratedWhenThereIsNone(t *testing.T) {
	b := onFiles(t)
	got := decoded[change](t, b.call("POST", "/svc/apis", definitionOf("", "")))
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(got.Key) || got.Action != "added" {
		t.Fatalf("got %+v", got)
	}
	if b.files() != got.Key+".json" {
		t.Errorf("files: %s", b.files())
	}
	data, err := os.ReadFile(filepath.Join(b.apps, b.files()))
	if err != nil {
		t.Fatal(err)
	}
	if api, err := definition.ParseAPI(data); err != nil || api.ID != got.Key {
		t.Errorf("stored %s: %v", data, err)
	}
}

func TestPostingAnAPIAgainReplacesIt(t *testing.T) {
	b := onFiles(t)
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	b.want("POST", "/svc/apis", definitionOf("weather", `"tags":["new"],`), 200, done("weather", "added"))
	b.reload()
	if api := b.live.API("weather"); len(api.Tags) != 1 || b.files() != "weather.json" {
		t.Errorf("got %v in %s", api.Tags, b.files())
	}
}

func TestAnAPIIsReplacedByItsID(t *testing.T) {
	b := onFiles(t)
	const mismatch = "Request APIID does not match that in Definition! For Update operations these must match."
	b.want("PUT", "/svc/apis/weather", definitionOf("weather", ""), 404, failed("API not found"))
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	b.want("PUT", "/svc/apis/weather/", definitionOf("weather", `"tags":["new"],`), 200, done("weather", "modified"))
	b.want("PUT", "/svc/apis/weather", definitionOf("other", ""), 400, failed(mismatch))
	b.want("PUT", "/svc/apis/weather", definitionOf("", ""), 400, failed(mismatch))
	b.reload()
	if tags := b.live.API("weather").Tags; len(tags) != 1 {
		t.Errorf("tags %v", tags)
	}
	b.want("DELETE", "/svc/apis/weather", "", 200, done("weather", "deleted"))
	b.want("PUT", "/svc/apis/weather", definitionOf("weather", ""), 200, done("weather", "modified"))
}

func TestAllFaultsOfADefinitionAreReported(t *testing.T) {
	b := onFiles(t)
	for _, c := range []struct {
		name, body, message string
		paths               []string
	}{
		{"no JSON", `{"api_id":`, "Request malformed", []string{""}},
		{"nothing", ``, "Request malformed", []string{""}},
		{"two values", `{} {}`, "Request malformed", []string{""}},
		{"an array", `[]`, "Validation of API Definition failed. Reason: ", []string{""}},
		{"null", `null`, "Validation of API Definition failed. Reason: ", []string{""}},
		{
			"wrong types", `{"api_id":5,"name":[],"use_keyless":true,"proxy":{"listen_path":"/a/","target_url":"http://u"}}`,
			"Validation of API Definition failed. Reason: api_id: must be a string, not a number; name: must be a string, not an array.",
			[]string{"api_id", "name"},
		},
		{
			"path characters", strings.Replace(definitionOf("x", ""), `"x"`, `"../../etc/passwd"`, 1),
			"Validation of API Definition failed. Reason: api_id: must consist of",
			[]string{"api_id"},
		},
		{
			"companion", strings.Replace(definitionOf("x", ""), `"x"`, `"x-oas"`, 1),
			"Validation of API Definition failed. Reason: api_id: must not end in",
			[]string{"api_id"},
		},
		{
			"several", `{"api_id":"x","use_jwt":true,"enable_jwt":true,"proxy":{"listen_path":"x","target_url":"ftp://u"}}`,
			"Validation of API Definition failed. Reason: ",
			[]string{"proxy.listen_path", "proxy.target_url", "jwt_signing_method"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := b.call("POST", "/svc/apis", c.body)
			said := decoded[outcome](t, got)
			if got.status != 400 || said.Status != "error" || !strings.HasPrefix(said.Message, c.message) {
				t.Errorf("got %d %s", got.status, got.body)
			}
			var paths []string
			for _, p := range said.Errors {
				paths = append(paths, p.Path)
				if p.Message == "" {
					t.Errorf("no message at %q", p.Path)
				}
			}
			if strings.Join(paths, " ") != strings.Join(c.paths, " ") {
				t.Errorf("problems at %q, want %q: %s", paths, c.paths, got.body)
			}
			if put := b.call("PUT", "/svc/apis/x", c.body); put.status != 400 || put.body != got.body {
				t.Errorf("PUT: %d %s", put.status, put.body)
			}
		})
	}
	if b.files() != "" {
		t.Errorf("files: %s", b.files())
	}
}

func TestUnknownMembersSurvive(t *testing.T) {
	b := onFiles(t)
	b.want("POST", "/svc/apis", definitionOf("weather", `"x-owner":{"team":"<sky> & sea"},`), 200, done("weather", "added"))
	data, err := os.ReadFile(filepath.Join(b.apps, "weather.json"))
	if err != nil || !strings.Contains(string(data), `"team": "<sky> & sea"`) {
		t.Errorf("stored %s: %v", data, err)
	}
	b.reload()
	if got := b.call("GET", "/svc/apis/weather", ""); !strings.Contains(got.body, `"x-owner":{"team":"<sky> & sea"}`) {
		t.Errorf("got %s", got.body)
	}
}

func TestUnknownMembersAreWarnedOfOrRefused(t *testing.T) {
	b := onFiles(t)
	const noEffect = "is not known to this release and has no effect"
	for _, c := range []struct{ method, path, body, member, near string }{
		{"POST", "/svc/apis", definitionOf("weather", `"use_keyles":true,`), "use_keyles", "use_keyless"},
		{"PUT", "/svc/apis/weather", definitionOf("weather", `"use_keyles":true,`), "use_keyles", "use_keyless"},
		{"POST", "/svc/policies", `{"id":"gold","name":"Gold","quota_mx":5}`, "quota_mx", "quota_max"},
		{"PUT", "/svc/policies/gold", `{"id":"gold","name":"Gold","quota_mx":5}`, "quota_mx", "quota_max"},
		{"POST", "/svc/keys", `{"access_rights":{"weather":{}},"expirs":5}`, "expirs", "expires"},
		{"POST", "/svc/keys/create", `{"access_rights":{"weather":{}},"expirs":5}`, "expirs", "expires"},
		{"POST", "/svc/keys/a-key-of-a-caller", `{"access_rights":{"weather":{}},"expirs":5}`, "expirs", "expires"},
		{"PUT", "/svc/keys/a-key-of-a-caller", `{"access_rights":{"weather":{}},"expirs":5}`, "expirs", "expires"},
	} {
		if c.path == "/svc/keys" {
			b.reload() // keys name APIs in service
		}
		want := noEffect + "; did you mean " + c.near + "?"
		got := b.call(c.method, c.path, c.body)
		if said := decoded[change](t, got); got.status != 200 || len(said.Warnings) != 1 || said.Warnings[0].Path != c.member || said.Warnings[0].Message != want {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
		strict := strings.Replace(c.body, "{", `{"strict":true,`, 1)
		for _, got := range []response{b.call(c.method, c.path+"?strict=true", c.body), b.call(c.method, c.path, strict)} {
			if said := decoded[outcome](t, got); got.status != 400 || len(said.Errors) != 1 || said.Errors[0].Path != c.member || !strings.Contains(said.Message, c.member+": "+noEffect) {
				t.Errorf("%s %s, strictly: %d %s", c.method, c.path, got.status, got.body)
			}
		}
	}
	if got := b.call("GET", "/svc/apis?strict=true", ""); got.status != 400 {
		t.Errorf("a list: %d %s", got.status, got.body)
	}
}

func TestVersionsAreListed(t *testing.T) {
	b := onFiles(t)
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	b.want("GET", "/svc/apis/weather/versions", "", 404, failed("API not found"))
	b.reload()
	b.want("GET", "/svc/apis/weather/versions", "", 200, `[{"api_id":"weather","name":"Default","is_default":true}]`)
	b.live.put(&definition.Bundle{Revision: "r", APIs: []*definition.API{{ID: "v", VersionData: &definition.VersionData{
		DefaultVersion: "two", Versions: map[string]*definition.Version{"two": {}, "one": {Expires: "2020-01-01 00:00"}},
	}}}})
	b.want("GET", "/svc/apis/v/versions", "", 200,
		`[{"api_id":"v","name":"one","expires":"2020-01-01 00:00","is_default":false},{"api_id":"v","name":"two","is_default":true}]`)
}

func TestADefinitionStaysInItsFile(t *testing.T) {
	b := onFiles(t)
	b.write("my petstore.json", definitionOf("pets", ""))
	b.write("unnamed.json", definitionOf("", `"domain":"a.example",`))
	b.reload()
	b.want("PUT", "/svc/apis/pets", definitionOf("pets", `"tags":["new"],`), 200, done("pets", "modified"))
	b.want("POST", "/svc/apis", definitionOf("unnamed", ""), 200, done("unnamed", "added"))
	if b.files() != "my petstore.json unnamed.json" {
		t.Errorf("files: %s", b.files())
	}
	b.reload()
	if tags := b.live.API("pets").Tags; len(tags) != 1 || len(b.live.Failed()) > 0 {
		t.Errorf("tags %v, failed %v", tags, b.live.Failed())
	}
	b.want("DELETE", "/svc/apis/pets", "", 200, done("pets", "deleted"))
	if b.files() != "unnamed.json" {
		t.Errorf("files: %s", b.files())
	}
}

func TestAFileOfAnotherAPIIsNotOverwritten(t *testing.T) {
	b := onFiles(t)
	b.write("weather.json", definitionOf("pets", ""))
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 500, failed("weather.json defines the API pets: rename that file first"))
	b.reload()
	if b.live.API("pets") == nil {
		t.Error("the other API is gone")
	}
	b.want("PUT", "/svc/apis/pets", definitionOf("pets", `"tags":["new"],`), 200, done("pets", "modified"))
	b.reload()
	if tags := b.live.API("pets").Tags; len(tags) != 1 {
		t.Errorf("tags %v", tags)
	}
}

func TestABrokenFileIsRepairedByItsName(t *testing.T) {
	b := onFiles(t)
	b.write("weather.json", `{"api_id":"wea`)
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	b.reload()
	if b.live.API("weather") == nil || len(b.live.Failed()) > 0 {
		t.Errorf("failed %v", b.live.Failed())
	}
}

func TestNoIDLeadsOutOfTheAppsFolder(t *testing.T) {
	b := onFiles(t)
	outside := filepath.Join(filepath.Dir(b.apps), "outside.json")
	if err := os.WriteFile(outside, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"..%2Foutside", "%2e%2e%2foutside", "..%5Coutside", ".%2F..%2Foutside", "%2Fetc%2Fpasswd", "..", "a%2F..%2F..%2Foutside"} {
		if got := b.call("DELETE", "/svc/apis/"+id, ""); got.status != 404 {
			t.Errorf("%s: %d %s", id, got.status, got.body)
		}
	}
	files, err := NewFiles(FilesOptions{AppsDir: b.apps, Live: b.live})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../outside", "..", "/etc/passwd", "a/../../outside", ".x", "a\x00"} {
		if _, err := files.SaveAPI(t.Context(), &definition.API{ID: id}, false); err == nil {
			t.Errorf("%q was saved", id)
		}
		if err := files.DeleteAPI(t.Context(), id); err == nil {
			t.Errorf("%q was deleted", id)
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != `{}` {
		t.Errorf("outside: %s, %v", data, err)
	}
}
