package system

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

func TestWhoLoggedInNeedsNoFlags(t *testing.T) {
	t.Parallel()
	s, home := rig.NewUp(t, rig.DataDir(t), nil).StartReady(), t.TempDir()
	r := s.Rest()
	r.Do(http.MethodPost, "/api/apis", rig.APIDef("orders", "http://127.0.0.1:1", false))
	key := strings.TrimSpace(s.ReadState("admin.key"))
	mine := func(args ...string) rig.Result { // of a user who knows nothing but where their home is
		return rig.Command(t, settings{"HOME": home, "data_dir": rig.DataDir(t)}, args...)
	}
	mine("api", "ls").Wants(t, 2, "sluice login")
	login := rig.Command(t, settings{"HOME": home, "SLUICE_TOKEN": key}, "login", s.Admin).Wants(t, 0, "as admin@localhost (admin)")
	if strings.Contains(login.Stdout+login.Stderr, key) {
		t.Error("the key is printed")
	}
	mine("api", "ls").Wants(t, 0, "orders")
	mine("config", "history").Wants(t, 0, "created api orders")
	mine("profile", "ls", "-o", "json").Wants(t, 0, s.Admin)
	mine("--profile", "other", "api", "ls").Wants(t, 2, `"other" is not there; there is default`)
	mine("api", "ls", "--server", "http://127.0.0.1:1").Wants(t, 2, "no access key for http://127.0.0.1:1")
	mine("logout").Wants(t, 0, "forgot default")
	mine("api", "ls").Wants(t, 2, "sluice login")
}

func TestSecretsOfFilesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	s, dir := rig.NewUp(t, rig.DataDir(t), nil).StartReady(), t.TempDir()
	file := filepath.Join(dir, "api.yaml")
	rig.SaveText(t, filepath.Join(dir, "token.txt"), "from-a-file\n")
	rig.SaveText(t, file, `kind: API
metadata: {name: orders}
spec:
  use_keyless: true
  proxy: {listen_path: /orders/, target_url: "http://127.0.0.1:1"}
  version_data:
    not_versioned: true
    versions: {Default: {name: Default, global_headers: {Authorization: {env: UPSTREAM_KEY}, X-Other: {file: token.txt}}}}
---
kind: Policy
metadata: {name: gold}
spec: {name: gold, access_rights: {orders: {}}}
---
kind: Key
metadata: {name: ann}
generate: true
spec: {apply_policies: [gold]}
`)
	own := func(key string, args ...string) rig.Result {
		return rig.Command(t, settings{"data_dir": s.Settings["data_dir"], "admin.listen": strings.TrimPrefix(s.Admin, "http://"), "UPSTREAM_KEY": key}, args...)
	}
	s.CLI("apply", "-f", file).Wants(t, 6, "global_headers.Authorization: environment variable UPSTREAM_KEY is not set")
	own("from-env", "validate", "--against", s.Admin, file).Wants(t, 0, "no problem")
	own("from-env", "apply", "-f", file).Wants(t, 0, "3 changes made", "key ann  slk_", "shown once")
	own("from-env", "diff", "-f", file).Wants(t, 0, "no difference")
	changed := own("another", "diff", "-f", file).Wants(t, 5, `"***" -> "***"`)
	if strings.Contains(changed.Stdout, "another") || strings.Contains(changed.Stdout, "from-env") {
		t.Errorf("a secret is shown: %s", changed.Stdout)
	}
	out := own("", "export", "--split", filepath.Join(dir, "out")).Wants(t, 0)
	exported := own("", "export").Wants(t, 0, `env: "UPSTREAM_KEY"`, `file: "token.txt"`)
	if all := exported.Stdout + out.Stdout; strings.Contains(all, "from-env") || strings.Contains(all, "from-a-file") {
		t.Errorf("a secret is exported: %s", all)
	}
	own("", "export", "--include-secrets").Wants(t, 0, "from-env", "from-a-file")
	got := s.Rest().Do(http.MethodGet, "/api/apis/orders", nil)
	if !strings.Contains(got.Body, "from-env") || !strings.Contains(got.Body, "from-a-file") {
		t.Errorf("the server has %s", got)
	}
}
