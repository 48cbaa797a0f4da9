package declarative

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nothing is an empty environment.
func nothing(string) (string, bool) { return "", false }

const secretDoc = `kind: API
metadata: {name: orders}
spec:
  use_keyless: true
  proxy: {listen_path: /orders/, target_url: "http://a"}
  version_data:
    not_versioned: true
    versions:
      Default:
        name: Default
        global_headers: {Authorization: {env: UPSTREAM_KEY}, X-Plain: {file: plain.txt}}
  x-own: {env: NOT_A_SECRET}
`

func TestSecretsAreReadFromWhereFilesSay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sub", "api.yaml")
	for name, text := range map[string]string{file: secretDoc, filepath.Join(dir, "sub", "plain.txt"): "from-file\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := Read([]string{dir}, nil, func(name string) (string, bool) { return "from-" + name, name == "UPSTREAM_KEY" })
	if err != nil {
		t.Fatal(err)
	}
	body := string(set.Objects[0].Body)
	for _, want := range []string{`"Authorization":"from-UPSTREAM_KEY"`, `"X-Plain":"from-file"`, `"x-own":{"env":"NOT_A_SECRET"}`} {
		if !strings.Contains(body, want) {
			t.Errorf("lacks %s: %s", want, body)
		}
	}
	text, named, err := set.Objects[0].Document(false)
	if err != nil || len(named) > 0 {
		t.Fatal(named, err)
	}
	for _, want := range []string{`"Authorization":{"env":"UPSTREAM_KEY"}`, `"X-Plain":{"file":"plain.txt"}`, `"x-own":{"env":"NOT_A_SECRET"}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("lacks %s: %s", want, text)
		}
	}
	if strings.Contains(string(text), "from-") || strings.Contains(string(text), refsMember) {
		t.Errorf("a secret is written: %s", text)
	}
	if text, _, err = set.Objects[0].Document(true); err != nil || !strings.Contains(string(text), `"from-UPSTREAM_KEY"`) || strings.Contains(string(text), refsMember) {
		t.Errorf("with values: %s, %v", text, err)
	}
}

func TestSecretsThatAreNotThereAreNamed(t *testing.T) {
	_, wrong := Parse("f.yaml", []byte(secretDoc), nothing)
	text := wrong.Error()
	for _, want := range []string{
		"f.yaml: spec.version_data.versions.Default.global_headers.Authorization: environment variable UPSTREAM_KEY is not set",
		"f.yaml: spec.version_data.versions.Default.global_headers.X-Plain: reading a secret: open plain.txt",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q: %s", want, text)
		}
	}
}

func TestSecretsOfUnknownOriginAreWrittenAsVariables(t *testing.T) {
	stored := &Object{Kind: API, Name: "or-ders", Body: []byte(`{"api_id":"or-ders","use_keyless":true,"proxy":{"listen_path":"/o/","target_url":"http://a"},
		"graphql":{"enabled":true,"schema":"type Query { a: Int }","execution_mode":"proxyOnly","proxy":{"auth_headers":{"Authorization":"planted"}}}}`)}
	text, named, err := stored.Document(false)
	if err != nil {
		t.Fatal(err)
	}
	const name = "API_OR_DERS_GRAPHQL_PROXY_AUTH_HEADERS_AUTHORIZATION"
	if !slices.Equal(named, []string{name}) || strings.Contains(string(text), "planted") || !strings.Contains(string(text), `{"env":"`+name+`"}`) {
		t.Fatalf("%q in %s", named, text)
	}
	again, wrong := Parse("f.json", text, func(name string) (string, bool) { return "planted", true })
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	p := plan(t, &Set{Objects: []*Object{stored}}, &Set{Objects: again}, Options{})
	if len(p.Changes) != 1 || len(p.Changes[0].Members) != 1 || p.Changes[0].Members[0].Path != refsMember {
		t.Errorf("only where it comes from is new: %s", p.Text())
	}
}

func TestDifferencesShowNoSecrets(t *testing.T) {
	parse := func(text, value string) *Set {
		objects, wrong := Parse("f.yaml", []byte(text), func(string) (string, bool) { return value, true })
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		return &Set{Objects: objects}
	}
	doc := strings.Replace(secretDoc, "X-Plain: {file: plain.txt}", "X-Plain: {env: B}, Cookie: planted-c", 1)
	p := plan(t, parse(doc, "planted-one"), parse(strings.Replace(doc, "planted-c", "planted-d", 1), "planted-two"), Options{})
	text := p.Text()
	if strings.Contains(text, "planted") || strings.Count(text, `"***" -> "***"`) != 3 {
		t.Errorf("%s", text)
	}
}
