package system

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
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
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	dir := t.TempDir()
	file := filepath.Join(dir, "all.yaml")
	rig.SaveText(t, file, strings.ReplaceAll(wantedFiles, "UPSTREAM", "http://"+up))
	s.CLI("diff", "-f", file).Wants(t, 5, "create API orders", "create Policy gold", "create Key ann", "create Key bob")
	s.CLI("apply", "-f", file, "--dry-run").Wants(t, 0, "4 changes would be made")
	s.CLI("config", "history", "-q").Wants(t, 0)
	s.CLI("apply", "-f", file, "--expect-revision", "7").Wants(t, 6, "in the meantime")
	var out struct {
		Revision int64
		Keys     []struct{ Name, Key string }
	}
	told := s.CLI("apply", "-f", file, "--reason", "first", "--wait", "-o", "json").Wants(t, 0).Stdout
	if err := json.Unmarshal([]byte(told), &out); err != nil || len(out.Keys) != 1 || out.Keys[0].Name != "ann" {
		t.Fatalf("%v in %s", err, told)
	}
	if a := s.AwaitUse("/orders/", out.Keys[0].Key); a.Status != 200 {
		t.Fatalf("%s", a)
	}
	s.CLI("config", "history").Wants(t, 0, "first")
	s.CLI("diff", "-f", dir).Wants(t, 0, "no difference")
	s.CLI("apply", "-f", file, "--wait=30s").Wants(t, 0, "nothing to change", "1 gateway serves it")

	rig.SaveText(t, file, strings.NewReplacer("UPSTREAM", "http://"+up, "quota_max: 5", "quota_max: 9").Replace(wantedFiles))
	s.CLI("diff", "-f", file).Wants(t, 5, "update Policy gold", "quota_max: 5 -> 9")
	s.CLI("apply", "-f", "-").Wants(t, 2, "no object")
	s.CLI("apply", "-f", file).Wants(t, 0, "1 change made")
}

func TestUnknownMembersOfFilesAreNamed(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	file := filepath.Join(t.TempDir(), "all.yaml")
	rig.SaveText(t, file, strings.NewReplacer("UPSTREAM", "http://127.0.0.1:1", "quota_max: 5", "quota_mx: 5", "strip_listen_path: true", "retries: 3").Replace(wantedFiles))
	const api, policy = "spec.proxy.retries: is not known to this release and has no effect", "spec.quota_mx: is not known to this release and has no effect; did you mean quota_max?"
	for _, command := range []string{"diff", "apply"} {
		s.CLI(command, "-f", file, "--strict").Wants(t, 6, api, policy)
	}
	s.CLI("diff", "-f", file).Wants(t, 5, "sluice: warning: "+file+": "+api, policy)
	s.CLI("diff", "-f", file, "-o", "json").Wants(t, 5, `"warnings"`, "did you mean quota_max?")
	s.CLI("apply", "-f", file, "--dry-run").Wants(t, 0, api, policy)
	s.CLI("apply", "-f", file).Wants(t, 0, "4 changes made", api, policy)
	s.CLI("apply", "-f", file, "-o", "json").Wants(t, 0, `"warnings"`, "did you mean quota_max?")
	s.CLI("validate", file).Wants(t, 0, "warning: "+api, "no problem, 2 warnings")
	s.CLI("validate", file, "--strict").Wants(t, 5, policy)

	rig.SaveText(t, file, `{"apply_policies": ["gold"], "expirs": 5}`)
	s.CLI("key", "create", "-f", file).Wants(t, 0, "sluice: warning: expirs: is not known to this release and has no effect; did you mean expires?", "shown once")
}

func TestWhatIsExportedIsAppliedElsewhere(t *testing.T) {
	t.Parallel()
	s, other := rig.NewUp(t, rig.DataDir(t), nil).StartReady(), rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	r.Do(http.MethodPost, "/api/apis", rig.APIDef("orders", "http://127.0.0.1:1", false))
	r.Do(http.MethodPost, "/api/apis", rig.APIDef("users", "http://127.0.0.1:1", true))
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "rate": 5, "per": 1.5, "tags": []string{"b", "a"}, "access_rights": rig.AccessTo("orders")})
	s.CLI("key", "create", "--policy", "gold", "--alias", "ann").Wants(t, 0)
	dir := filepath.Join(t.TempDir(), "out")
	s.CLI("export", "--split", dir, "--include-keys").Wants(t, 0, "4 objects")
	s.CLI("diff", "-f", dir, "--prune").Wants(t, 0, "no difference")
	other.CLI("apply", "-f", dir).Wants(t, 0, "4 changes made")
	first, second := s.CLI("export", "--include-keys").Wants(t, 0), other.CLI("export", "--include-keys").Wants(t, 0)
	if first.Stdout != second.Stdout || !strings.Contains(first.Stdout, "kind: \"Policy\"") {
		t.Errorf("one has\n%s\nthe other\n%s", first.Stdout, second.Stdout)
	}
	s.CLI("export", "-o", "json").Wants(t, 0, `"kind": "API"`)
	s.CLI("export", "--format", "classic").Wants(t, 2, "--split")
	classic := t.TempDir()
	s.CLI("export", "--format", "classic", "--split", classic).Wants(t, 0)
	rig.Command(t, nil, "validate", filepath.Join(classic, "apps"), filepath.Join(classic, "policies.json")).Wants(t, 0, "3 files")
}

func TestOnlyWhatWasAskedForIsPruned(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	dir := t.TempDir()
	doc := func(name, team string) string {
		return "kind: API\nmetadata: {name: " + name + ", labels: {team: " + team + "}}\nspec: {use_keyless: true, proxy: {listen_path: /" + name + "/, target_url: \"http://127.0.0.1:1\"}}\n"
	}
	for _, name := range []string{"one", "two"} {
		rig.SaveText(t, filepath.Join(dir, name+".yaml"), doc(name, "a"))
	}
	rig.SaveText(t, filepath.Join(dir, "three.yaml"), doc("three", "b"))
	s.CLI("apply", "-f", dir).Wants(t, 0, "3 changes")
	only := filepath.Join(dir, "one.yaml")
	s.CLI("apply", "-f", only).Wants(t, 0, "nothing to change")
	s.CLI("apply", "-f", only, "--select", "team=a").Wants(t, 2, "--prune")
	s.CLI("apply", "-f", only, "--prune", "--select", "team=a").Wants(t, 2, "delete API two", "--yes")
	s.CLI("apply", "-f", only, "--prune", "--select", "team=a", "--yes").Wants(t, 0, "1 change made")
	s.CLI("diff", "-f", only, "--prune").Wants(t, 5, "delete API three")
}

func TestBadFilesAreRefusedWithEveryPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.SaveText(t, filepath.Join(dir, "a.yaml"), "kind: API\nmetadata: {name: one}\nspec: {proxy: {listen_path: x}, api_id: other}\n---\nkind: Catalogue\nmetadata: {name: c}\n---\nkind: Policy\nmetadata: {}\nspec: 5\n---\nkind: Key\nmetadata: {name: k}\nspec: {}\n")
	rig.SaveText(t, filepath.Join(dir, "b.yaml"), "kind: API\nmetadata: {name: two}\nspec: {proxy: {listen_path: x}}\n")
	rig.SaveText(t, filepath.Join(dir, "c.yaml"), "kind: API\nmetdata: {name: two}\n")
	rig.SaveText(t, filepath.Join(dir, "d.json"), `{"api_id":"bare"}`)
	rig.Command(t, nil, "apply", "-f", dir).Wants(t, 6, "a.yaml: spec.api_id", "a.yaml: document 2: kind: this release does not have Catalogue",
		"a.yaml: document 3: metadata.name", "spec: must be an object", "document 4: a Key has either", "b.yaml: spec.proxy.listen_path", "b.yaml: spec.proxy.target_url", "c.yaml", "metdata", "d.json", "api_id")
	rig.Command(t, nil, "apply", "-f", filepath.Join(dir, "none")).Wants(t, 2, "none")
	rig.Command(t, nil, "apply").Wants(t, 2, "-f PATH")
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	rig.Command(t, nil, "apply", "-f", empty).Wants(t, 2, "*.yaml")
}
