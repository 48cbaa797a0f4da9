package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const wantedFiles = `kind: API
metadata: {name: orders, labels: {team: a}}
spec:
  name: API orders
  use_standard_auth: true
  active: true
  proxy: {listen_path: /orders/, target_url: "UPSTREAM", strip_listen_path: true}
  x-later: {kept: [1, "two"]}
  version_data: {not_versioned: true, versions: {Default: {name: Default}}}
---
kind: Policy
metadata: {name: gold, labels: {team: a}}
spec:
  name: gold
  quota_max: 5
  quota_renewal_rate: 3600
  access_rights: {orders: {versions: [Default]}}
---
kind: Key
metadata: {name: ann}
generate: true
spec: {apply_policies: [gold]}
---
kind: Key
metadata: {name: bob}
hash: 3f5ac07e93d9e3a1b7c42f3d5b6a89f1c0d2e4f60718293a4b5c6d7e8f901234
spec: {apply_policies: [gold], expires: 4102444800}
`

func TestWhatFilesDescribeIsApplied(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	s := newUp(t, dataDir(t), nil).startReady()
	dir := t.TempDir()
	file := filepath.Join(dir, "all.yaml")
	saveText(t, file, strings.ReplaceAll(wantedFiles, "UPSTREAM", "http://"+up))
	s.own("diff", "-f", file).wants(t, 5, "create API orders", "create Policy gold", "create Key ann", "create Key bob")
	s.own("apply", "-f", file, "--dry-run").wants(t, 0, "4 changes would be made")
	s.own("config", "history", "-q").wants(t, 0)
	s.own("apply", "-f", file, "--expect-revision", "7").wants(t, 6, "in the meantime")
	var out struct {
		Revision int64
		Keys     []struct{ Name, Key string }
	}
	told := s.own("apply", "-f", file, "--reason", "first", "--wait", "-o", "json").wants(t, 0).stdout
	if err := json.Unmarshal([]byte(told), &out); err != nil || len(out.Keys) != 1 || out.Keys[0].Name != "ann" {
		t.Fatalf("%v in %s", err, told)
	}
	if a := s.awaitUse("/orders/", out.Keys[0].Key); a.status != 200 {
		t.Fatalf("%s", a)
	}
	s.own("config", "history").wants(t, 0, "first")
	s.own("diff", "-f", dir).wants(t, 0, "no difference")
	s.own("apply", "-f", file, "--wait=30s").wants(t, 0, "nothing to change", "1 gateway serves it")

	saveText(t, file, strings.NewReplacer("UPSTREAM", "http://"+up, "quota_max: 5", "quota_max: 9").Replace(wantedFiles))
	s.own("diff", "-f", file).wants(t, 5, "update Policy gold", "quota_max: 5 -> 9")
	s.own("apply", "-f", "-").wants(t, 2, "no object")
	s.own("apply", "-f", file).wants(t, 0, "1 change made")
}

func TestWhatIsExportedIsAppliedElsewhere(t *testing.T) {
	t.Parallel()
	s, other := newUp(t, dataDir(t), nil).startReady(), newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	r.do(http.MethodPost, "/api/apis", apiDef("orders", "http://127.0.0.1:1", false))
	r.do(http.MethodPost, "/api/apis", apiDef("users", "http://127.0.0.1:1", true))
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "rate": 5, "per": 1.5, "tags": []string{"b", "a"}, "access_rights": accessTo("orders")})
	s.own("key", "create", "--policy", "gold", "--alias", "ann").wants(t, 0)
	dir := filepath.Join(t.TempDir(), "out")
	s.own("export", "--split", dir, "--include-keys").wants(t, 0, "4 objects")
	s.own("diff", "-f", dir, "--prune").wants(t, 0, "no difference")
	other.own("apply", "-f", dir).wants(t, 0, "4 changes made")
	first, second := s.own("export", "--include-keys").wants(t, 0), other.own("export", "--include-keys").wants(t, 0)
	if first.stdout != second.stdout || !strings.Contains(first.stdout, "kind: \"Policy\"") {
		t.Errorf("one has\n%s\nthe other\n%s", first.stdout, second.stdout)
	}
	s.own("export", "-o", "json").wants(t, 0, `"kind": "API"`)
	s.own("export", "--format", "classic").wants(t, 2, "--split")
	classic := t.TempDir()
	s.own("export", "--format", "classic", "--split", classic).wants(t, 0)
	command(t, nil, "validate", filepath.Join(classic, "apps"), filepath.Join(classic, "policies.json")).wants(t, 0, "3 files")
}

func TestOnlyWhatWasAskedForIsPruned(t *testing.T) {
	t.Parallel()
	s := newUp(t, dataDir(t), nil).startReady()
	dir := t.TempDir()
	doc := func(name, team string) string {
		return "kind: API\nmetadata: {name: " + name + ", labels: {team: " + team + "}}\nspec: {use_keyless: true, proxy: {listen_path: /" + name + "/, target_url: \"http://127.0.0.1:1\"}}\n"
	}
	for _, name := range []string{"one", "two"} {
		saveText(t, filepath.Join(dir, name+".yaml"), doc(name, "a"))
	}
	saveText(t, filepath.Join(dir, "three.yaml"), doc("three", "b"))
	s.own("apply", "-f", dir).wants(t, 0, "3 changes")
	only := filepath.Join(dir, "one.yaml")
	s.own("apply", "-f", only).wants(t, 0, "nothing to change")
	s.own("apply", "-f", only, "--select", "team=a").wants(t, 2, "--prune")
	s.own("apply", "-f", only, "--prune", "--select", "team=a").wants(t, 2, "delete API two", "--yes")
	s.own("apply", "-f", only, "--prune", "--select", "team=a", "--yes").wants(t, 0, "1 change made")
	s.own("diff", "-f", only, "--prune").wants(t, 5, "delete API three")
}

func TestBadFilesAreRefusedWithEveryPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	saveText(t, filepath.Join(dir, "a.yaml"), "kind: API\nmetadata: {name: one}\nspec: {proxy: {listen_path: x}, api_id: other}\n---\nkind: Catalogue\nmetadata: {name: c}\n---\nkind: Policy\nmetadata: {}\nspec: 5\n---\nkind: Key\nmetadata: {name: k}\nspec: {}\n")
	saveText(t, filepath.Join(dir, "b.yaml"), "kind: API\nmetadata: {name: two}\nspec: {proxy: {listen_path: x}}\n")
	saveText(t, filepath.Join(dir, "c.yaml"), "kind: API\nmetdata: {name: two}\n")
	saveText(t, filepath.Join(dir, "d.json"), `{"api_id":"bare"}`)
	command(t, nil, "apply", "-f", dir).wants(t, 6, "a.yaml: spec.api_id", "a.yaml: document 2: kind: this release does not have Catalogue",
		"a.yaml: document 3: metadata.name", "spec: must be an object", "document 4: a Key has either", "b.yaml: spec.proxy.listen_path", "b.yaml: spec.proxy.target_url", "c.yaml", "metdata", "d.json", "api_id")
	command(t, nil, "apply", "-f", filepath.Join(dir, "none")).wants(t, 2, "none")
	command(t, nil, "apply").wants(t, 2, "-f PATH")
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, nil, "apply", "-f", empty).wants(t, 2, "*.yaml")
}
