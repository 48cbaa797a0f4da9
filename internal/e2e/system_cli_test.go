package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

// result is what a command that ends by itself left behind.
type result struct {
	code           int
	stdout, stderr string
}

// command runs the program to its end.
func command(t testing.TB, with settings, args ...string) result {
	t.Helper()
	p := newProcess(t, with, args...)
	p.start()
	code := p.wait()
	return result{code, p.run.stdout.String(), p.run.stderr.String()}
}

func TestValidateTellsGoodFromBad(t *testing.T) {
	t.Parallel()
	good, bad, odd := t.TempDir(), t.TempDir(), t.TempDir()
	saveJSON(t, filepath.Join(good, "fine.json"), apiDef("fine", "http://127.0.0.1:1", true))
	saveJSON(t, filepath.Join(good, "also.json"), apiDef("also", "http://127.0.0.1:1", false))
	wrong := apiDef("wrong", "ftp://nowhere", false)
	wrong["graphql"] = object{"enabled": true}
	saveJSON(t, filepath.Join(bad, "wrong.json"), wrong)
	saveText(t, filepath.Join(bad, "cut.json"), `{"api_id":`)
	twin := apiDef("twin", "http://127.0.0.1:1", true)
	twin["proxy"].(object)["listen_path"] = "/fine/"
	saveJSON(t, filepath.Join(odd, "fine.json"), apiDef("fine", "http://127.0.0.1:1", true))
	saveJSON(t, filepath.Join(odd, "twin.json"), twin)
	unknown := t.TempDir()
	strange := apiDef("strange", "http://127.0.0.1:1", true)
	strange["no_such_member"] = 1
	saveJSON(t, filepath.Join(unknown, "strange.json"), strange)

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
			got := command(t, nil, append([]string{"validate"}, c.args...)...)
			if got.code != c.code {
				t.Errorf("ended with code %d, want %d; it said:\n%s%s", got.code, c.code, got.stdout, got.stderr)
			}
			for _, name := range c.named {
				if !strings.Contains(got.stdout+got.stderr, name) {
					t.Errorf("does not name %q:\n%s%s", name, got.stdout, got.stderr)
				}
			}
		})
	}
}

func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	got := command(t, nil, "version", "-o", "json")
	var said struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || got.code != 0 || said.Version == "" || !strings.HasPrefix(said.Go, "go1.") {
		t.Errorf("code %d, %v: %s%s", got.code, err, got.stdout, got.stderr)
	}
}

func TestMigrateBringsAFreshDatabaseUpToDate(t *testing.T) {
	t.Parallel()
	with := settings{"database.url": testenv.Postgres(t)}
	before := command(t, with, "migrate", "status")
	if before.code != 0 || !strings.Contains(before.stdout, "pending") {
		t.Fatalf("status of a fresh database: code %d\n%s%s", before.code, before.stdout, before.stderr)
	}
	pending := strings.Count(before.stdout, "pending")
	up := command(t, with, "migrate", "up")
	if rows := strings.Count(strings.TrimSpace(up.stdout), "\n"); up.code != 0 || rows != pending {
		t.Errorf("up: code %d, %d rows below the head, want the %d that were pending\n%s%s", up.code, rows, pending, up.stdout, up.stderr)
	}
	after := command(t, with, "migrate", "status")
	if after.code != 0 || strings.Contains(after.stdout, "pending") {
		t.Errorf("status afterwards: code %d\n%s", after.code, after.stdout)
	}
	if again := command(t, with, "migrate", "up"); again.code != 0 || !strings.Contains(again.stdout+again.stderr, "up to date") {
		t.Errorf("up once more: code %d\n%s%s", again.code, again.stdout, again.stderr)
	}
	if none := command(t, nil, "migrate", "status"); none.code != 2 || !strings.Contains(none.stderr, "database.url") {
		t.Errorf("without a database: code %d\n%s", none.code, none.stderr)
	}
}

func TestConfigPrintShowsOriginsAndNoSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	saveText(t, file, "gateway:\n  group: of-the-file\n  token: "+plant("token-in-a-file-31c9")+"\n")
	with := settings{
		"secret": "secret-in-the-environment-5d", "valkey.url": "redis://:" + plant("password-in-an-url-8e2") + "@127.0.0.1:1",
		"database.url": "postgres://sluice:" + plant("password-of-a-database-66") + "@127.0.0.1:1/sluice",
		"admin.listen": "127.0.0.1:9999",
	}
	for _, form := range []string{"table", "json", "yaml"} {
		got := command(t, with, "config", "print", "--config", file, "--log-level", "warn", "-o", form)
		if got.code != 0 {
			t.Fatalf("%s: code %d\n%s", form, got.code, got.stderr)
		}
		for _, part := range []string{"of-the-file", "127.0.0.1:9999", "***", "sluice.yaml:2", "SLUICE_ADMIN_LISTEN", "--log-level"} {
			if !strings.Contains(got.stdout, part) {
				t.Errorf("%s lacks %q:\n%s", form, part, got.stdout)
			}
		}
	}
}

func TestWrongConfigurationEndsTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	saveText(t, file, "gateway:\n  listn: 127.0.0.1:0\n")
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
			got := command(t, merged(c.with, settings{"data_dir": dataDir(t)}), c.args...)
			if got.code != 2 {
				t.Errorf("ended with code %d, want 2", got.code)
			}
			for _, name := range c.named {
				if !strings.Contains(got.stderr, name) {
					t.Errorf("does not name %q:\n%s", name, got.stderr)
				}
			}
		})
	}
}

// What stands in the way of a start is said in one message, with a code that
// scripts can tell apart.
func TestAStartThatCannotBeSaysWhy(t *testing.T) {
	t.Parallel()
	taken := freeAddress(t)
	serveUpstream(t, taken)
	busy := newGateway(t, settings{"gateway.apps_dir": t.TempDir()})
	busy.settings["gateway.listen"] = taken
	busy.start()
	if code := busy.wait(); code != 1 || !strings.Contains(busy.run.stderr.String(), "gateway.listen") || !strings.Contains(busy.run.stderr.String(), "address already in use") {
		t.Errorf("on an address that is taken: code %d\n%s", code, busy.run.stderr.String())
	}

	bare := newUp(t, dataDir(t), settings{"postgres.bin_dir": t.TempDir()})
	bare.start()
	if code := bare.wait(); code != 3 || !strings.Contains(bare.run.stderr.String(), "apt") && !strings.Contains(bare.run.stderr.String(), "bin_dir") {
		t.Errorf("without PostgreSQL: code %d\n%s", code, bare.run.stderr.String())
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
		call(t, "GET", g.traffic+path, nil, "Authorization", key)
	}
	guess := plant("slk_" + strings.Repeat("x", 40))
	call(t, "GET", g.traffic+path+"?key="+guess, nil, "Authorization", guess)
	call(t, "GET", g.traffic+path, nil, "Authorization", "Bearer "+guess, "Cookie", "session="+plant("cookie-of-a-client-1234"))
	call(t, "GET", g.control+"/svc/keys/"+key, nil, "X-Svc-Authorization", plant("a-wrong-gateway-secret"))
	call(t, "GET", g.control+"/svc/keys/"+key, nil, "X-Svc-Authorization", splitSecret)
	call(t, "DELETE", g.control+"/svc/keys/"+key, nil, "X-Svc-Authorization", splitSecret)
	wrong := &rest{t, s.admin.admin, plant("sla_a-wrong-key-of-an-admin")}
	if got, err := wrong.try("GET", "/api/keys/"+key, nil); want(http.StatusUnauthorized, got, err) != nil {
		t.Errorf("a wrong admin key: %v %s", err, got)
	}
	if got, err := send("GET", s.admin.admin+"/api/gateway/bundle", nil, "Authorization", "Bearer "+plant("a-wrong-token-of-gateways")); got.status == 200 {
		t.Errorf("a wrong gateway token: %v %s", err, got)
	}
	secretUpstream := apiDef("creds", "http://user:"+plant("password-of-an-upstream-5")+"@127.0.0.1:1", true)
	if got, err := s.rest.try("POST", "/api/apis", secretUpstream); err == nil && got.status == http.StatusOK {
		s.everywhere("the API", "/creds/x", "", refused("upstream_connect"))
	}
	unseen := s.rest.newKey(object{"apply_policies": []string{"quiet"}})
	s.store.Kill() // errors of clients may quote addresses with their passwords
	call(t, "GET", g.traffic+path, nil, "Authorization", unseen)
	s.store.Restart()

	g.stop() // writes out what waits
	s.admin.stop()
	log := g.run.stdout.String()
	for _, reason := range []string{"quota_exceeded", "auth_unknown", "key_store_unavailable"} {
		if !strings.Contains(log, reason) {
			t.Errorf("the access log that is searched has no line with %s:\n%s", reason, log)
		}
	}
	for _, file := range []string{s.admin.settings["data_dir"], g.settings["data_dir"]} {
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
		for _, secret := range []string{splitToken, splitPassword, splitSecret, "password-of-an-upstream-5", s.rest.key} {
			if strings.Contains(string(data), secret) {
				s.t.Errorf("%s holds a secret in clear", filepath.Join(dir, e.Name()))
			}
		}
	}
}
