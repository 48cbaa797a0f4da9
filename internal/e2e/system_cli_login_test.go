package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhoLoggedInNeedsNoFlags(t *testing.T) {
	t.Parallel()
	s, home := newUp(t, dataDir(t), nil).startReady(), t.TempDir()
	r := s.rest()
	r.do(http.MethodPost, "/api/apis", apiDef("orders", "http://127.0.0.1:1", false))
	key := strings.TrimSpace(s.readState("admin.key"))
	mine := func(args ...string) result { // of a user who knows nothing but where their home is
		return command(t, settings{"HOME": home, "data_dir": dataDir(t)}, args...)
	}
	mine("api", "ls").wants(t, 2, "sluice login")
	login := command(t, settings{"HOME": home, "SLUICE_TOKEN": key}, "login", s.admin).wants(t, 0, "as admin@localhost (admin)")
	if strings.Contains(login.stdout+login.stderr, key) {
		t.Error("the key is printed")
	}
	mine("api", "ls").wants(t, 0, "orders")
	mine("config", "history").wants(t, 0, "created api orders")
	mine("profile", "ls", "-o", "json").wants(t, 0, s.admin)
	mine("--profile", "other", "api", "ls").wants(t, 2, `"other" is not there; there is default`)
	mine("api", "ls", "--server", "http://127.0.0.1:1").wants(t, 2, "no access key for http://127.0.0.1:1")
	mine("logout").wants(t, 0, "forgot default")
	mine("api", "ls").wants(t, 2, "sluice login")
}

func TestSecretsOfFilesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	s, dir := newUp(t, dataDir(t), nil).startReady(), t.TempDir()
	file := filepath.Join(dir, "api.yaml")
	saveText(t, filepath.Join(dir, "token.txt"), "from-a-file\n")
	saveText(t, file, `kind: API
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
	own := func(key string, args ...string) result {
		return command(t, settings{"data_dir": s.settings["data_dir"], "admin.listen": strings.TrimPrefix(s.admin, "http://"), "UPSTREAM_KEY": key}, args...)
	}
	s.own("apply", "-f", file).wants(t, 6, "global_headers.Authorization: environment variable UPSTREAM_KEY is not set")
	own("from-env", "validate", "--against", s.admin, file).wants(t, 0, "no problem")
	own("from-env", "apply", "-f", file).wants(t, 0, "3 changes made", "key ann  slk_", "shown once")
	own("from-env", "diff", "-f", file).wants(t, 0, "no difference")
	changed := own("another", "diff", "-f", file).wants(t, 5, `"***" -> "***"`)
	if strings.Contains(changed.stdout, "another") || strings.Contains(changed.stdout, "from-env") {
		t.Errorf("a secret is shown: %s", changed.stdout)
	}
	out := own("", "export", "--split", filepath.Join(dir, "out")).wants(t, 0)
	exported := own("", "export").wants(t, 0, `env: "UPSTREAM_KEY"`, `file: "token.txt"`)
	if all := exported.stdout + out.stdout; strings.Contains(all, "from-env") || strings.Contains(all, "from-a-file") {
		t.Errorf("a secret is exported: %s", all)
	}
	own("", "export", "--include-secrets").wants(t, 0, "from-env", "from-a-file")
	got := s.rest().do(http.MethodGet, "/api/apis/orders", nil)
	if !strings.Contains(got.body, "from-env") || !strings.Contains(got.body, "from-a-file") {
		t.Errorf("the server has %s", got)
	}
}
