package system

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

const filesSecret = "secret-of-files-mode-4e2b"

// files is a folder of definitions beside a file of policies, and gateways that
// serve them without a database.
type files struct {
	t        *testing.T
	dir      string // of definitions
	policies string // file
	origin   string
	gateways []*rig.Server
}

// newFiles starts n gateways on one folder.
func newFiles(t *testing.T, n int, with settings) *files {
	t.Helper()
	base := t.TempDir()
	f := &files{t: t, dir: filepath.Join(base, "apps"), policies: filepath.Join(base, "policies.json"), origin: "http://" + testenv.Origin(t, rig.Echo)}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f.api("plain", f.origin, true)
	f.api("keyed", f.origin, false)
	rig.SaveJSON(t, f.policies, object{"ten": object{"id": "ten", "name": "Ten", "quota_max": 10, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("keyed")}})
	for range n {
		f.gateways = append(f.gateways, rig.NewGateway(t, rig.Merge(settings{
			"gateway.apps_dir": f.dir, "gateway.policies_file": f.policies, "secret": filesSecret,
		}, with)).StartReady())
	}
	return f
}

func (f *files) api(id, target string, keyless bool) {
	f.t.Helper()
	rig.SaveJSON(f.t, filepath.Join(f.dir, id+".json"), rig.APIDef(id, target, keyless))
}

// svc calls the gateway API of a gateway, which must answer 200.
func svc(t testing.TB, g *rig.Server, method, path string, body any) rig.Answer {
	t.Helper()
	got := rig.Call(t, method, g.Control+path, body, "X-Svc-Authorization", filesSecret)
	if got.Status != http.StatusOK {
		t.Fatalf("%s %s: %s", method, path, got)
	}
	return got
}

func svcKey(t testing.TB, g *rig.Server, session object) string {
	t.Helper()
	var made struct{ Key string }
	svc(t, g, "POST", "/svc/keys/create", session).Into(t, &made)
	return rig.Plant(made.Key)
}

// Keys that were made without a database are in a file, which is whole after any
// crash: what was acknowledged is there, what was deleted is not.
func TestKeysInFilesModeSurviveKills(t *testing.T) {
	t.Parallel()
	f := newFiles(t, 1, nil)
	g := f.gateways[0]
	var kept, gone []string
	for range 4 {
		acknowledged := make(chan string, 10_000)
		writes := rig.StartLoad(t, 2, func(*http.Client, int) error {
			got, err := rig.Send("POST", g.Control+"/svc/keys/create", object{"access_rights": rig.AccessTo("keyed")}, "X-Svc-Authorization", filesSecret)
			if err != nil {
				return nil // the kill
			}
			var made struct{ Key string }
			if got.Status == http.StatusOK {
				got.Into(t, &made)
				acknowledged <- rig.Plant(made.Key)
			}
			return rig.Want(http.StatusOK, got, nil)
		})
		writes.AwaitMore(25)
		g.Kill()
		writes.Stop()
		close(acknowledged)
		g.StartReady()
		for key := range acknowledged {
			kept = append(kept, key)
		}
		deleted := kept[len(kept)-1]
		svc(t, g, "DELETE", "/svc/keys/"+deleted, nil)
		gone, kept = append(gone, deleted), kept[:len(kept)-1]
		g.Kill()
		g.StartReady()
		for _, key := range kept {
			if got := rig.Call(t, "GET", g.Traffic+"/keyed/x", nil, "Authorization", key); got.Status != http.StatusOK {
				t.Errorf("a key was acknowledged and does not work: %s", got)
			}
		}
		for _, key := range gone {
			if got := rig.Call(t, "GET", g.Traffic+"/keyed/x", nil, "Authorization", key); got.Status != http.StatusForbidden {
				t.Errorf("a key was deleted and works: %s", got)
			}
		}
	}
	t.Logf("8 kills: %d keys acknowledged and kept, %d deleted and gone", len(kept), len(gone))
}

// blocked reloads and returns what the gateway says when that is done.
func blocked(t testing.TB, g *rig.Server) (rig.Answer, map[string]string) {
	t.Helper()
	got := svc(t, g, "GET", "/svc/reload?block=true", nil)
	var said struct {
		Meta struct {
			Errors map[string]string `json:"errors"`
		} `json:"meta"`
	}
	got.Into(t, &said)
	return got, said.Meta.Errors
}

// A file that breaks leaves its API at the last good form, and is named to
// whoever reloads, in the log and by the health of the gateway.
func TestABrokenFileKeepsTheLastGoodForm(t *testing.T) {
	t.Parallel()
	f := newFiles(t, 1, nil)
	g := f.gateways[0]
	key := svcKey(t, g, object{"apply_policies": []string{"ten"}})
	cases := []struct {
		name, file, text string
		named            []string // in the answer and in the log
	}{
		{"cut off", "plain.json", `{"api_id": "plain", "proxy": {`, []string{"plain"}},
		{"a wrong type", "plain.json", `{"api_id": "plain", "name": 5, "proxy": {"listen_path": "/plain/", "target_url": "http://127.0.0.1:1"}}`, []string{"plain", "name"}},
		{"a feature that does not exist", "plain.json", `{"api_id": "plain", "name": "P", "use_keyless": true, "graphql": {"enabled": true}, "enable_signature_checking": true, "proxy": {"listen_path": "/plain/", "target_url": "http://127.0.0.1:1"}}`, []string{"plain", "GraphQL", "HMAC"}},
		{"broken policies", "../policies.json", `{"ten": `, []string{"policies.json"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(f.dir, c.file)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			mark := len(g.Run.Stderr.String())
			rig.SaveText(t, path, c.text)
			got, errs := blocked(t, g)
			if len(errs) != 1 {
				t.Errorf("the reload answers %s, want one error", got)
			}
			for _, name := range c.named {
				if !strings.Contains(fmt.Sprint(errs), name) {
					t.Errorf("the answer does not name %q: %s", name, got)
				}
				g.Await(fmt.Sprintf("the log to name %q", name), func() error { return rig.Lacks(g.Run.Stderr.String()[mark:], name) })
			}
			f.serves(t, g, key)
			g.Await("health to warn", func() error {
				hello := rig.Call(t, "GET", g.Control+"/hello", nil)
				if hello.Status != http.StatusOK || !strings.Contains(hello.Body, "1 definitions are not served as written") {
					return fmt.Errorf("%s", hello)
				}
				return nil
			})
			if ready := rig.Call(t, "GET", g.Telemetry+"/readyz", nil); ready.Status != http.StatusOK || !strings.Contains(ready.Body, "degraded") {
				t.Errorf("readiness: %s, want 200 and degraded", ready)
			}
			rig.SaveText(t, path, string(good))
			if got, errs := blocked(t, g); len(errs) != 0 {
				t.Errorf("mended, and the reload answers %s", got)
			}
			f.serves(t, g, key)
		})
	}
}

// serves checks that both APIs are served as at first.
func (f *files) serves(t *testing.T, g *rig.Server, key string) {
	t.Helper()
	if got := rig.Call(t, "GET", g.Traffic+"/plain/x", nil); got.Status != http.StatusOK || got.Body != "origin /x" {
		t.Errorf("the open API: %s", got)
	}
	if got := rig.Call(t, "GET", g.Traffic+"/keyed/x", nil, "Authorization", key); got.Status != http.StatusOK || got.Header.Get("X-RateLimit-Limit") != "10" {
		t.Errorf("the API with a key: %s", got)
	}
}

// A definition of what does not exist is never served as if it did, not even by
// a gateway that starts with it.
func TestADefinitionOfAMissingFeatureIsNotServedAtAll(t *testing.T) {
	t.Parallel()
	f := newFiles(t, 1, nil)
	g := f.gateways[0]
	asks := rig.APIDef("asks", f.origin, true)
	asks["use_keyless"], asks["enable_signature_checking"] = false, true
	refusedAPI := rig.Call(t, "POST", g.Control+"/svc/apis", asks, "X-Svc-Authorization", filesSecret)
	if refusedAPI.Status != http.StatusBadRequest || !strings.Contains(refusedAPI.Body, "HMAC") {
		t.Errorf("saving it: %s, want 400 that names HMAC signatures", refusedAPI)
	}
	rig.SaveJSON(t, filepath.Join(f.dir, "asks.json"), asks)
	g.Stop()
	g.StartReady()
	if got := rig.Call(t, "GET", g.Traffic+"/asks/x", nil); got.Status == http.StatusOK {
		t.Errorf("it is served: %s", got)
	}
	if _, errs := blocked(t, g); !strings.Contains(fmt.Sprint(errs), "HMAC") {
		t.Errorf("a reload does not name what is missing: %v", errs)
	}
	f.serves(t, g, svcKey(t, g, object{"apply_policies": []string{"ten"}}))
}

// A keyless API whose callers a plugin checked is not served open: neither when its file
// comes, nor in place of its last good form, nor by a gateway that starts with it.
func TestAnAPIThatReliedOnAPluginIsNotServedOpen(t *testing.T) {
	t.Parallel()
	f := newFiles(t, 1, nil)
	g := f.gateways[0]
	const named = "custom_middleware.auth_check: asks for a feature that this release does not have"
	checked := func(id, target string) object {
		api := rig.APIDef(id, target, true)
		api["custom_middleware"] = object{"auth_check": object{"name": "check", "path": "check.js"}}
		return api
	}
	rig.SaveJSON(t, filepath.Join(f.dir, "checked.json"), checked("checked", f.origin))
	rig.SaveJSON(t, filepath.Join(f.dir, "plain.json"), checked("plain", "http://127.0.0.1:1"))
	for _, restarted := range []bool{false, true} {
		if restarted {
			g.Stop()
			g.StartReady()
		}
		if _, errs := blocked(t, g); !strings.Contains(errs["checked"], named) || !strings.Contains(errs["plain"], named) {
			t.Errorf("restarted: %v: a reload says %v", restarted, errs)
		}
		if got := rig.Call(t, "GET", g.Traffic+"/checked/x", nil); got.Status < 500 {
			t.Errorf("restarted: %v: an API that was never served: %s", restarted, got)
		}
		got := rig.Call(t, "GET", g.Traffic+"/plain/x", nil)
		if restarted && got.Status < 500 || !restarted && got.Status != http.StatusOK {
			t.Errorf("restarted: %v: an API that was served: %s", restarted, got)
		}
	}
}

// The admin refuses the same at save, with every problem at once.
func TestTheAdminNamesEveryProblemOfADefinition(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	bad := rig.APIDef("bad", "ftp://nowhere", false)
	bad["enable_signature_checking"], bad["graphql"], bad["name"] = true, object{"enabled": true}, ""
	bad["proxy"].(object)["listen_path"] = "no-slash"
	got, err := s.rest.Try("POST", "/api/apis", bad)
	if err = rig.Want(http.StatusBadRequest, got, err); err != nil {
		t.Fatal(err)
	}
	var said struct{ Errors []string }
	got.Into(t, &said)
	for _, named := range []string{"proxy.listen_path", "proxy.target_url", "HMAC", "GraphQL"} {
		if !strings.Contains(strings.Join(said.Errors, "\n"), named) {
			t.Errorf("no problem names %q: %s", named, got)
		}
	}
	if got, _ := s.rest.Try("GET", "/api/apis/bad", nil); got.Status != http.StatusNotFound && got.Status != http.StatusBadRequest {
		t.Errorf("it was saved: %s", got)
	}
}

// A reload of a group reaches every gateway that shares the store; SIGHUP
// reloads the one that gets it.
func TestReloadsReachTheGroup(t *testing.T) {
	t.Parallel()
	store := testenv.Valkey(t, "--requirepass", splitPassword)
	rig.Plant(splitPassword)
	f := newFiles(t, 2, settings{"valkey.url": "redis://:" + splitPassword + "@" + store.Addr})
	first, second := f.gateways[0], f.gateways[1]
	other := "http://" + testenv.Origin(t, echoOther)
	shows := func(g *rig.Server, text string) func() error {
		return func() error {
			got, err := rig.Send("GET", g.Traffic+"/plain/x", nil)
			if err == nil {
				err = body(text)(got)
			}
			return err
		}
	}
	group := &measured{t: t, what: "a reload of the group"}
	for i := range 5 {
		target, text := other, "other /x"
		if i%2 == 1 {
			target, text = f.origin, "origin /x"
		}
		f.api("plain", target, true)
		began := time.Now()
		svc(t, f.gateways[i%2], "GET", "/svc/reload/group", nil)
		first.Await("the group's reload", shows(first, text))
		second.Await("the group's reload", shows(second, text))
		group.add(time.Since(began))
	}
	group.report()

	f.api("plain", f.origin, true)
	second.Signal(syscall.SIGHUP)
	took := second.Await("the reload at SIGHUP", shows(second, "origin /x"))
	if err := shows(first, "other /x")(); err != nil {
		t.Errorf("the signal reached another gateway: %v", err)
	}
	t.Logf("SIGHUP: in force after %s", took.Round(time.Millisecond))

	key := svcKey(t, first, object{"apply_policies": []string{"ten"}})
	got := second.AwaitUse("/keyed/x", key)
	if again := rig.Call(t, "GET", first.Traffic+"/keyed/x", nil, "Authorization", key); got.Header.Get("X-RateLimit-Remaining") != "9" || again.Header.Get("X-RateLimit-Remaining") != "8" {
		t.Errorf("a key made at one gateway and used at both: %s, then %s", got, again)
	}
}

// Reloads under load: every answer is that of the old definition or of the new
// one, and none waits long.
func TestReloadsUnderLoadFailNoRequest(t *testing.T) {
	t.Parallel()
	f := newFiles(t, 1, nil)
	g := f.gateways[0]
	other := "http://" + testenv.Origin(t, echoOther)
	key := svcKey(t, g, object{"access_rights": rig.AccessTo("keyed")})
	var slowest atomic.Int64
	load := rig.StartLoad(t, 4, func(client *http.Client, n int) error {
		began := time.Now()
		got, err := rig.SendBy(client, "GET", g.Traffic+"/keyed/x", nil, "Authorization", key)
		if took := int64(time.Since(began)); took > slowest.Load() {
			slowest.Store(took)
		}
		if err == nil && got.Body != "origin /x" && got.Body != "other /x" {
			err = fmt.Errorf("%s", got)
		}
		return rig.Want(200, got, err)
	})
	reloads := 0
	for i := range 8 {
		f.api("keyed", []string{other, f.origin}[i%2], false)
		for n := range 20 { // APIs come and go besides
			f.api(fmt.Sprintf("extra-%d-%d", i, n), f.origin, true)
		}
		if got, errs := blocked(t, g); len(errs) > 0 {
			t.Errorf("%s", got)
		}
		reloads++
		load.AwaitMore(40)
	}
	t.Logf("%d reloads, %d requests, none failed, slowest %s", reloads, load.Stop(), time.Duration(slowest.Load()).Round(time.Millisecond))
}

// Without a secret the gateway API does not exist, and health is served; with an address
// of its own it is not on the traffic port.
func TestTheGatewayAPINeedsASecret(t *testing.T) {
	t.Parallel()
	without := newFiles(t, 1, settings{"secret": ""}).gateways[0]
	for _, path := range []string{"/svc/apis", "/svc/keys", "/svc/reload"} {
		for _, shown := range []string{"", filesSecret} {
			if got := rig.Call(t, "GET", without.Traffic+path, nil, "X-Svc-Authorization", shown); got.Status != http.StatusNotFound {
				t.Errorf("without a secret %s answers %s, want 404", path, got)
			}
		}
	}
	for _, path := range []string{"/hello", "/live", "/ready"} {
		if got := rig.Call(t, "GET", without.Traffic+path, nil); got.Status != http.StatusOK {
			t.Errorf("without a secret %s answers %s, want 200", path, got)
		}
	}
	without.AwaitLog("set secret to turn it on")

	own := newFiles(t, 1, settings{"gateway.control_listen": rig.FreeAddress(t)}).gateways[0]
	if got := rig.Call(t, "GET", own.Traffic+"/svc/apis", nil, "X-Svc-Authorization", filesSecret); got.Status != http.StatusNotFound {
		t.Errorf("with an address of its own it is on the traffic port too: %s", got)
	}
	svc(t, own, "GET", "/svc/apis", nil)
	for _, shown := range []string{"", "wrong", filesSecret + "x", filesSecret[1:]} {
		if got := rig.Call(t, "GET", own.Control+"/svc/apis", nil, "X-Svc-Authorization", shown); got.Status != http.StatusForbidden {
			t.Errorf("with the secret %q: %s, want 403", shown, got)
		}
	}
}
