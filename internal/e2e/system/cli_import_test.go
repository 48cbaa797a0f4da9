package system

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestClassicFilesAreTakenOver(t *testing.T) {
	t.Parallel()
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	folder, err := filepath.Abs("../../cli/testdata/examples/classic")
	if err != nil {
		t.Fatal(err)
	}
	rig.Command(t, nil, "import", folder, "--dry-run", "--rename", "acme=svc").Wants(t, 0, "API orders: taken over", "mapped: access_rights", "unknown, kept: x-svc-owner")
	s.CLI("import", folder, "--rename", "acme=svc", "--reason", "from the old one", "--wait").Wants(t, 0, "6 changes made", "1 gateway serves it")
	s.CLI("import", folder, "--rename", "acme=svc").Wants(t, 0, "nothing to change")
	s.CLI("config", "history").Wants(t, 0, "from the old one")
	api := rig.APIDef("orders", "http://"+up, false)
	s.Rest().Do(http.MethodPut, "/api/apis/orders", api)
	// The example's keys are "foo" and "bar", of which it has the hashes.
	for _, key := range []string{"foo", "bar"} {
		rig.Eventually(t, "use of key "+key, func() error {
			if a := rig.Call(t, http.MethodGet, s.Traffic+"/orders/", nil, "Authorization", key); a.Status != 200 {
				return fmt.Errorf("%s", a)
			}
			return nil
		})
	}
}

func TestNothingIsTakenOverWhenSomethingIsRefused(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	dir := t.TempDir()
	rig.SaveJSON(t, filepath.Join(dir, "good.json"), rig.APIDef("good", "http://127.0.0.1:1", true))
	rig.SaveText(t, filepath.Join(dir, "bad.json"), `{"api_id":"bad","proxy":{"listen_path":"x"}}`)
	rig.SaveText(t, filepath.Join(dir, "policies.json"), `{"gold":{"access_rights":{"nowhere":{}}}}`)
	s.CLI("import", dir).Wants(t, 6, "API bad: REFUSED", "proxy.listen_path", `access_rights["nowhere"]`, "2 objects refused; nothing was changed")
	s.CLI("export").Wants(t, 0)
	s.CLI("import", dir, "--skip-refused").Wants(t, 0, "1 change made")
	s.CLI("import", dir, "--skip-refused", "-o", "json").Wants(t, 0, `"report"`, `"refused"`)
	s.CLI("import").Wants(t, 2, "want one PATH")
	s.CLI("import", filepath.Join(dir, "none")).Wants(t, 2, "none")
	s.CLI("import", dir, "--rename", "A b=c").Wants(t, 2, "--rename")
}

func TestWhatIsRefusedIsLeftOutOnWish(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	dir := t.TempDir()
	api := rig.APIDef("orders", "http://127.0.0.1:1", true)
	api["custom_middleware"], api["use_keyles"] = object{"auth_check": object{"name": "check"}}, true
	api["proxy"].(object)["transport"] = object{"ssl_min_version": 0, "proxy_url": "http://127.0.0.1:2"}
	rig.SaveJSON(t, filepath.Join(dir, "orders.json"), api)
	s.CLI("import", dir).Wants(t, 6, "custom_middleware.auth_check: asks for a feature", "proxy.transport.proxy_url: asks for a feature", "--drop MEMBER", "nothing was changed")
	s.CLI("import", dir, "--drop", "use_openid").Wants(t, 2, "--drop use_openid: no object is refused for it")
	drops := []string{"import", dir, "--drop", "custom_middleware", "--drop", "proxy.transport.proxy_url"}
	s.CLI(append(drops, "--strict")...).Wants(t, 6, "refused: use_keyles: is not known to this release and has no effect; did you mean use_keyless?")
	told := s.CLI(drops...).Wants(t, 0, "1 change made", "unknown, kept: use_keyles: is not known", "lost, who may call:\n  API orders: custom_middleware", "lost, where calls go:\n  API orders: proxy.transport.proxy_url").Stdout
	if strings.Index(told, "lost, who may call") > strings.Index(told, "lost, where calls go") {
		t.Errorf("%s", told)
	}
	s.CLI(append(drops, "-o", "json")...).Wants(t, 0, `"weight": "who may call"`)
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
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	args := []string{"import", "--from", old.URL, "--from-path", "/acme", "--from-header", "X-Acme-Authorization"}
	s.CLI(args...).Wants(t, 2, "SLUICE_IMPORT_SECRET")
	s.CLI(append(args, "--secret", "wrong")...).Wants(t, 6, "403")
	s.CLI(append(args, "--secret", "of-the-old-one")...).Wants(t, 0, "3 changes made")
	s.CLI("key", "get", hash).Wants(t, 0, "ann", "gold")
	if got := s.CLI("key", "ls").Wants(t, 0).Stdout; !strings.Contains(got, hash) {
		t.Errorf("%s", got)
	}
	old.Close()
	s.CLI(append(args, "--secret", "of-the-old-one")...).Wants(t, 7, "cannot be reached")
}
