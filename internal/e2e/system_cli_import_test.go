package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestClassicFilesAreTakenOver(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	s := newUp(t, dataDir(t), nil).startReady()
	folder, err := filepath.Abs("../cli/testdata/examples/classic")
	if err != nil {
		t.Fatal(err)
	}
	command(t, nil, "import", folder, "--dry-run", "--rename", "acme=svc").wants(t, 0, "API orders: taken over", "mapped: access_rights", "unknown, kept: x-svc-owner")
	s.own("import", folder, "--rename", "acme=svc", "--reason", "from the old one", "--wait").wants(t, 0, "6 changes made", "1 gateway serves it")
	s.own("import", folder, "--rename", "acme=svc").wants(t, 0, "nothing to change")
	s.own("config", "history").wants(t, 0, "from the old one")
	api := apiDef("orders", "http://"+up, false)
	s.rest().do(http.MethodPut, "/api/apis/orders", api)
	// The example's keys are "foo" and "bar", of which it has the hashes.
	for _, key := range []string{"foo", "bar"} {
		eventually(t, "use of key "+key, func() error {
			if a := call(t, http.MethodGet, s.traffic+"/orders/", nil, "Authorization", key); a.status != 200 {
				return fmt.Errorf("%s", a)
			}
			return nil
		})
	}
}

func TestNothingIsTakenOverWhenSomethingIsRefused(t *testing.T) {
	t.Parallel()
	s := newUp(t, dataDir(t), nil).startReady()
	dir := t.TempDir()
	saveJSON(t, filepath.Join(dir, "good.json"), apiDef("good", "http://127.0.0.1:1", true))
	saveText(t, filepath.Join(dir, "bad.json"), `{"api_id":"bad","proxy":{"listen_path":"x"}}`)
	saveText(t, filepath.Join(dir, "policies.json"), `{"gold":{"access_rights":{"nowhere":{}}}}`)
	s.own("import", dir).wants(t, 6, "API bad: REFUSED", "proxy.listen_path", `access_rights["nowhere"]`, "2 objects refused; nothing was changed")
	s.own("export").wants(t, 0)
	s.own("import", dir, "--skip-refused").wants(t, 0, "1 change made")
	s.own("import", dir, "--skip-refused", "-o", "json").wants(t, 0, `"report"`, `"refused"`)
	s.own("import").wants(t, 2, "want one PATH")
	s.own("import", filepath.Join(dir, "none")).wants(t, 2, "none")
	s.own("import", dir, "--rename", "A b=c").wants(t, 2, "--rename")
}

func TestARunningGatewayIsTakenOver(t *testing.T) {
	t.Parallel()
	const hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" // of foo
	answers := map[string]string{
		"/acme/apis":     `[{"api_id":"orders","name":"orders","use_standard_auth":true,"proxy":{"listen_path":"/orders/","target_url":"http://127.0.0.1:1"}}]`,
		"/acme/policies": `[{"_id":"gold","name":"gold","access_rights":{"orders":{}}}]`,
		"/acme/keys":     `{"keys":["` + hash + `"]}`, "/acme/keys/" + hash: `{"alias":"ann","apply_policies":["gold"]}`,
	}
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if r.Header.Get("X-Acme-Authorization") != "of-the-old-one" || !ok {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(old.Close)
	s := newUp(t, dataDir(t), nil).startReady()
	args := []string{"import", "--from", old.URL, "--from-path", "/acme", "--from-header", "X-Acme-Authorization"}
	s.own(args...).wants(t, 2, "SLUICE_IMPORT_SECRET")
	s.own(append(args, "--secret", "wrong")...).wants(t, 6, "403")
	s.own(append(args, "--secret", "of-the-old-one")...).wants(t, 0, "3 changes made")
	s.own("key", "get", hash).wants(t, 0, "ann", "gold")
	if got := s.own("key", "ls").wants(t, 0).stdout; !strings.Contains(got, hash) {
		t.Errorf("%s", got)
	}
	old.Close()
	s.own(append(args, "--secret", "of-the-old-one")...).wants(t, 7, "cannot be reached")
}
