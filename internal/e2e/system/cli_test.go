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

func TestValidateTellsGoodFromBad(t *testing.T) {
	t.Parallel()
	good, bad, odd := t.TempDir(), t.TempDir(), t.TempDir()
	rig.SaveJSON(t, filepath.Join(good, "fine.json"), rig.APIDef("fine", "http://127.0.0.1:1", true))
	rig.SaveJSON(t, filepath.Join(good, "also.json"), rig.APIDef("also", "http://127.0.0.1:1", false))
	wrong := rig.APIDef("wrong", "ftp://nowhere", false)
	wrong["graphql"] = object{"enabled": true}
	rig.SaveJSON(t, filepath.Join(bad, "wrong.json"), wrong)
	rig.SaveText(t, filepath.Join(bad, "cut.json"), `{"api_id":`)
	twin := rig.APIDef("twin", "http://127.0.0.1:1", true)
	twin["proxy"].(object)["listen_path"] = "/fine/"
	rig.SaveJSON(t, filepath.Join(odd, "fine.json"), rig.APIDef("fine", "http://127.0.0.1:1", true))
	rig.SaveJSON(t, filepath.Join(odd, "twin.json"), twin)
	unknown := t.TempDir()
	strange := rig.APIDef("strange", "http://127.0.0.1:1", true)
	strange["no_such_member"] = 1
	rig.SaveJSON(t, filepath.Join(unknown, "strange.json"), strange)

	cases := []struct {
		name  string
		args  []string
		code  int
		named []string
	}{
		{"good folder", []string{good}, 0, nil},
		{"bad folder", []string{bad}, 6, []string{"wrong.json", "proxy.target_url", "GraphQL", "cut.json"}},
		{"both", []string{good, bad}, 6, []string{"wrong.json"}},
		{"one listen path twice", []string{odd}, 6, []string{"twin.json", "/fine/"}},
		{"unknown members pass", []string{unknown}, 0, nil},
		{"unknown members, strictly", []string{"--strict", unknown}, 5, []string{"no_such_member"}},
		{"no such folder", []string{filepath.Join(good, "nowhere")}, 2, []string{"nowhere"}},
		{"nothing named", nil, 2, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := rig.Command(t, nil, append([]string{"validate"}, c.args...)...)
			if got.Code != c.code {
				t.Errorf("ended with code %d, want %d; it said:\n%s%s", got.Code, c.code, got.Stdout, got.Stderr)
			}
			for _, name := range c.named {
				if !strings.Contains(got.Stdout+got.Stderr, name) {
					t.Errorf("does not name %q:\n%s%s", name, got.Stdout, got.Stderr)
				}
			}
		})
	}
}

func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	got := rig.Command(t, nil, "version", "-o", "json")
	var said struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(got.Stdout), &said); err != nil || got.Code != 0 || said.Version == "" || !strings.HasPrefix(said.Go, "go1.") {
		t.Errorf("code %d, %v: %s%s", got.Code, err, got.Stdout, got.Stderr)
	}
}

func TestMigrateBringsAFreshDatabaseUpToDate(t *testing.T) {
	t.Parallel()
	with := settings{"database.url": testenv.Postgres(t)}
	before := rig.Command(t, with, "migrate", "status")
	if before.Code != 0 || !strings.Contains(before.Stdout, "pending") {
		t.Fatalf("status of a fresh database: code %d\n%s%s", before.Code, before.Stdout, before.Stderr)
	}
	pending := strings.Count(before.Stdout, "pending")
	up := rig.Command(t, with, "migrate", "up")
	if rows := strings.Count(strings.TrimSpace(up.Stdout), "\n"); up.Code != 0 || rows != pending {
		t.Errorf("up: code %d, %d rows below the head, want the %d that were pending\n%s%s", up.Code, rows, pending, up.Stdout, up.Stderr)
	}
	after := rig.Command(t, with, "migrate", "status")
	if after.Code != 0 || strings.Contains(after.Stdout, "pending") {
		t.Errorf("status afterwards: code %d\n%s", after.Code, after.Stdout)
	}
	if again := rig.Command(t, with, "migrate", "up"); again.Code != 0 || !strings.Contains(again.Stdout+again.Stderr, "up to date") {
		t.Errorf("up once more: code %d\n%s%s", again.Code, again.Stdout, again.Stderr)
	}
	if none := rig.Command(t, nil, "migrate", "status"); none.Code != 2 || !strings.Contains(none.Stderr, "database.url") {
		t.Errorf("without a database: code %d\n%s", none.Code, none.Stderr)
	}
}

func TestConfigPrintShowsOriginsAndNoSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	rig.SaveText(t, file, "gateway:\n  group: of-the-file\n  token: "+rig.Plant("token-in-a-file-31c9")+"\n")
	with := settings{
		"secret": "secret-in-the-environment-5d", "valkey.url": "redis://:" + rig.Plant("password-in-an-url-8e2") + "@127.0.0.1:1",
		"database.url": "postgres://sluice:" + rig.Plant("password-of-a-database-66") + "@127.0.0.1:1/sluice",
		"admin.listen": "127.0.0.1:9999",
	}
	for _, form := range []string{"table", "json", "yaml"} {
		got := rig.Command(t, with, "config", "print", "--config", file, "--log-level", "warn", "-o", form)
		if got.Code != 0 {
			t.Fatalf("%s: code %d\n%s", form, got.Code, got.Stderr)
		}
		for _, part := range []string{"of-the-file", "127.0.0.1:9999", "***", "sluice.yaml:2", "SLUICE_ADMIN_LISTEN", "--log-level"} {
			if !strings.Contains(got.Stdout, part) {
				t.Errorf("%s lacks %q:\n%s", form, part, got.Stdout)
			}
		}
	}
}

func TestWrongConfigurationEndsTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	rig.SaveText(t, file, "gateway:\n  listn: 127.0.0.1:0\n")
	cases := []struct {
		name  string
		with  settings
		args  []string
		named []string
	}{
		{"unknown key in a file", nil, []string{"up", "--config", file}, []string{"sluice.yaml:2", "listn", "did you mean gateway.listen"}},
		{"unknown variable", settings{"gatway.listen": "x"}, []string{"up"}, []string{"SLUICE_GATWAY_LISTEN", "SLUICE_GATEWAY_LISTEN"}},
		{"a number without a unit", settings{"gateway.drain_timeout": "15"}, []string{"up"}, []string{"SLUICE_GATEWAY_DRAIN_TIMEOUT"}},
		{"a gateway without a source", nil, []string{"gateway"}, []string{"gateway.apps_dir", "gateway.admin_url"}},
		{"an admin without a database", nil, []string{"admin"}, []string{"database.url"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := rig.Command(t, rig.Merge(c.with, settings{"data_dir": rig.DataDir(t)}), c.args...)
			if got.Code != 2 {
				t.Errorf("ended with code %d, want 2", got.Code)
			}
			for _, name := range c.named {
				if !strings.Contains(got.Stderr, name) {
					t.Errorf("does not name %q:\n%s", name, got.Stderr)
				}
			}
		})
	}
}

// What stands in the way of a start is said in one message, with a code that
// scripts can tell apart.
func TestAStartThatCannotBeSaysWhy(t *testing.T) {
	t.Parallel()
	taken := rig.FreeAddress(t)
	serveUpstream(t, taken)
	busy := rig.NewGateway(t, settings{"gateway.apps_dir": t.TempDir()})
	busy.Settings["gateway.listen"] = taken
	busy.Start()
	if code := busy.Wait(); code != 1 || !strings.Contains(busy.Run.Stderr.String(), "gateway.listen") || !strings.Contains(busy.Run.Stderr.String(), "address already in use") {
		t.Errorf("on an address that is taken: code %d\n%s", code, busy.Run.Stderr.String())
	}

	bare := rig.NewUp(t, rig.DataDir(t), settings{"postgres.bin_dir": t.TempDir()})
	bare.Start()
	if code := bare.Wait(); code != 3 || !strings.Contains(bare.Run.Stderr.String(), "apt") && !strings.Contains(bare.Run.Stderr.String(), "bin_dir") {
		t.Errorf("without PostgreSQL: code %d\n%s", code, bare.Run.Stderr.String())
	}
}

// The secrets of a whole deployment are in the hands of its processes, and in
// none of their outputs; checkOutput looks for them at the end of every test.
// This one makes sure that it would find one, and that refusals quote none.
func TestNoSecretIsWritten(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	path, key := s.governed("quiet", 1)
	g := s.gateways[0]
	for range 3 {
		rig.Call(t, "GET", g.Traffic+path, nil, "Authorization", key)
	}
	guess := rig.Plant("slk_" + strings.Repeat("x", 40))
	rig.Call(t, "GET", g.Traffic+path+"?key="+guess, nil, "Authorization", guess)
	rig.Call(t, "GET", g.Traffic+path, nil, "Authorization", "Bearer "+guess, "Cookie", "session="+rig.Plant("cookie-of-a-client-1234"))
	rig.Call(t, "GET", g.Control+"/svc/keys/"+key, nil, "X-Svc-Authorization", rig.Plant("a-wrong-gateway-secret"))
	rig.Call(t, "GET", g.Control+"/svc/keys/"+key, nil, "X-Svc-Authorization", splitSecret)
	rig.Call(t, "DELETE", g.Control+"/svc/keys/"+key, nil, "X-Svc-Authorization", splitSecret)
	wrong := rig.NewRest(t, s.admin.Admin, rig.Plant("sla_a-wrong-key-of-an-admin"))
	if got, err := wrong.Try("GET", "/api/keys/"+key, nil); rig.Want(http.StatusUnauthorized, got, err) != nil {
		t.Errorf("a wrong admin key: %v %s", err, got)
	}
	if got, err := rig.Send("GET", s.admin.Admin+"/api/gateway/bundle", nil, "Authorization", "Bearer "+rig.Plant("a-wrong-token-of-gateways")); got.Status == 200 {
		t.Errorf("a wrong gateway token: %v %s", err, got)
	}
	secretUpstream := rig.APIDef("creds", "http://user:"+rig.Plant("password-of-an-upstream-5")+"@127.0.0.1:1", true)
	if got, err := s.rest.Try("POST", "/api/apis", secretUpstream); err == nil && got.Status == http.StatusOK {
		s.everywhere("the API", "/creds/x", "", refused("upstream_connect"))
	}
	unseen, another := s.rest.NewKey(object{"apply_policies": []string{"quiet"}}), s.rest.NewKey(object{"apply_policies": []string{"quiet"}})
	s.store.Kill() // errors of clients may quote addresses with their passwords
	rig.Call(t, "GET", g.Traffic+path, nil, "Authorization", unseen)
	s.admin.Stop()
	rig.Call(t, "GET", g.Traffic+path, nil, "Authorization", another)
	s.store.Restart()

	g.Stop() // writes out what waits
	log := g.Run.Stdout.String()
	for _, reason := range []string{"quota_exceeded", "auth_unknown", "key_store_unavailable"} {
		if !strings.Contains(log, reason) {
			t.Errorf("the access log that is searched has no line with %s:\n%s", reason, log)
		}
	}
	for _, file := range []string{s.admin.Settings["data_dir"], g.Settings["data_dir"]} {
		s.searchFiles(file)
	}
}

// searchFiles looks for tokens and keys in what a program keeps, its own admin
// key excepted.
func (s *split) searchFiles(dir string) {
	s.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || e.Name() == "admin.key" {
			continue // a folder has no text of its own
		}
		for _, secret := range []string{splitToken, splitPassword, splitSecret, "password-of-an-upstream-5", s.rest.Key} {
			if strings.Contains(string(data), secret) {
				s.t.Errorf("%s holds a secret in clear", filepath.Join(dir, e.Name()))
			}
		}
	}
}
