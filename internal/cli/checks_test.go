package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesForApplyAreCheckedBesideDefinitions(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":      "kind: API\nmetadata: {name: a}\nspec: {use_keyless: true, proxy: {listen_path: /a/, target_url: \"http://a\"}}\n",
		"b.yml":       "kind: API\nmetadata: {name: b}\nspec: {proxy: {listen_path: b}}\n---\nkind: Catalogue\nmetadata: {name: c}\n",
		"c.json":      `{"kind":"Policy","metadata":{"name":"gold"},"spec":{"rate":"x"}}`,
		"d.json":      `{"api_id":"d","use_keyless":true,"proxy":{"listen_path":"/d/","target_url":"http://a"}}`,
		"sluice.yaml": "gateway: {listen: x}\n",
		"notes.txt":   "nothing",
		"d-oas.json":  "{",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newFileChecks(os.LookupEnv)
	if err := c.Path(dir); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range c.Findings {
		all.WriteString(filepath.Base(f.File) + "|" + f.Path + "|" + f.Message + "\n")
	}
	for _, want := range []string{"b.yml||spec.proxy.listen_path: ", "b.yml||document 2: kind: this release does not have Catalogue", "c.json||spec.rate: "} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("lacks %q:\n%s", want, all.String())
		}
	}
	if c.Files != 4 || strings.Contains(all.String(), "a.yaml") || strings.Contains(all.String(), "d.json") {
		t.Errorf("%d files:\n%s", c.Files, all.String())
	}
	if err := newFileChecks(os.LookupEnv).Path(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("%v", err)
	}
}
