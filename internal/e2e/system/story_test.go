package system

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// echoOther is another upstream.
func echoOther(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("other " + string(ctx.Path())) }

// demoKeyOf reads the demo's key off the lines to copy.
func demoKeyOf(t *testing.T, banner string) string {
	t.Helper()
	found := regexp.MustCompile(`curl -i http://\S+/keyed/hello -H 'Authorization: (slk_\w+)'`).FindStringSubmatch(banner)
	if found == nil {
		t.Fatalf("the banner has no line for the keyed API:\n%s", banner)
	}
	return rig.Plant(found[1])
}

// The first five minutes as the README tells them: a demo, ten calls and no
// more, renewal, a clean stop, and a second start that knows what was used.
func TestTheStoryOfTheReadme(t *testing.T) {
	t.Parallel()
	dir := rig.DataDir(t)
	s := rig.NewUp(t, dir, nil, "--demo").StartReady()
	banner := s.Run.Stdout.String()
	for _, part := range []string{"embedded PostgreSQL", "unix socket, no TCP port", "admin key      sla_", "saved every second", "10 calls per 60 s"} {
		if !strings.Contains(banner, part) {
			t.Errorf("the banner lacks %q:\n%s", part, banner)
		}
	}
	if shown := regexp.MustCompile(`sla_\w+`).FindString(banner); shown != s.AdminKey() {
		t.Error("the banner's admin key is not the one of the file")
	}
	key := demoKeyOf(t, banner)
	useUpTheDemo(t, s, key)
	t.Run("renewal", func(t *testing.T) { renewal(t, s) })
	long := useSome(t, s)
	t.Run("a second start on the directory", func(t *testing.T) { refusedWhileRunning(t, s, dir) })

	began := time.Now()
	if code := s.Stop(); code != 0 {
		t.Fatalf("Ctrl-C ended it with code %d, want 0", code)
	}
	t.Logf("stopped within %s", time.Since(began).Round(time.Millisecond))
	if _, err := os.Stat(filepath.Join(dir, "pg", "postmaster.pid")); err == nil {
		t.Error("the database still runs after the stop")
	}

	s.StartReady()
	banner = s.Run.Stdout.String()
	if strings.Contains(banner, "sla_") {
		t.Error("the admin key is shown a second time")
	}
	if demoKeyOf(t, banner) != key {
		t.Error("the demo has another key after the restart")
	}
	if got := rig.Call(t, "GET", s.Traffic+"/keyed/hello", nil, "Authorization", key); got.Status != 403 || got.Reason() != "quota_exceeded" {
		t.Errorf("the used quota was forgotten by a clean stop: %s", got)
	}
	if got := rig.Call(t, "GET", s.Traffic+"/long/x", nil, "Authorization", long); got.Header.Get("X-RateLimit-Remaining") != "62" {
		t.Errorf("after 37 of 100 calls, a restart and one more: %s, want 62 left", got)
	}
	if got := rig.Call(t, "GET", s.Traffic+"/open/hello", nil); got.Status != 200 {
		t.Errorf("open API of the demo after the restart: %s", got)
	}
	if code := s.Stop(); code != 0 {
		t.Errorf("the second stop ended with code %d, want 0", code)
	}
}

// useUpTheDemo makes the calls of the README.
func useUpTheDemo(t *testing.T, s *rig.Server, key string) {
	t.Helper()
	if got := rig.Call(t, "GET", s.Traffic+"/keyed/hello", nil); got.Status != 401 || got.Reason() != "auth_missing" {
		t.Errorf("without a key: %s", got)
	}
	for i := range 12 {
		got := rig.Call(t, "GET", s.Traffic+"/keyed/hello", nil, "Authorization", key)
		if i >= 10 {
			if got.Status != 403 || got.Reason() != "quota_exceeded" || !strings.Contains(got.Body, `"error": "Quota exceeded"`) {
				t.Errorf("call %d: %s, want 403 Quota exceeded", i+1, got)
			}
			continue
		}
		left := strconv.Itoa(9 - i)
		if got.Status != 200 || got.Header.Get("X-RateLimit-Limit") != "10" || got.Header.Get("X-RateLimit-Remaining") != left {
			t.Errorf("call %d: %s, want 200 with limit 10 and %s left", i+1, got, left)
		}
		reset, err := strconv.ParseInt(got.Header.Get("X-RateLimit-Reset"), 10, 64)
		if in := reset - time.Now().Unix(); err != nil || in < 30 || in > 61 {
			t.Errorf("call %d renews in %d s (%v), want at most 60", i+1, in, err)
		}
	}
	const joined = `{"data":{"country":{"name":"Switzerland","capital":"Bern","currency":{"name":"Swiss franc"},"diallingCode":"+41"}}}`
	got := rig.Call(t, "POST", s.Traffic+"/world/", object{"query": `{ country(code: "CH") { name capital currency { name } diallingCode } }`}, "Content-Type", "application/json")
	if got.Status != 200 || got.Body != joined {
		t.Errorf("the graph of two subgraphs and a REST service: %s", got)
	}
}

// renewal uses up a quota of two seconds and waits until it is fresh.
func renewal(t *testing.T, s *rig.Server) {
	admin := s.Rest()
	origin := "http://" + testenv.Origin(t, rig.Echo)
	admin.Do("POST", "/api/apis", rig.APIDef("short", origin, false))
	admin.Do("POST", "/api/portal/policies", object{"id": "short", "name": "Short", "quota_max": 3, "quota_renewal_rate": 2, "access_rights": rig.AccessTo("short")})
	key := admin.NewKey(object{"apply_policies": []string{"short"}})
	s.AwaitUse("/short/x", key)
	for seen := 1; seen < 3; seen++ {
		if got := rig.Call(t, "GET", s.Traffic+"/short/x", nil, "Authorization", key); got.Status != 200 {
			t.Fatalf("call %d of 3: %s", seen+1, got)
		}
	}
	refused := rig.Call(t, "GET", s.Traffic+"/short/x", nil, "Authorization", key)
	if refused.Status != 403 {
		t.Fatalf("call 4 of 3: %s", refused)
	}
	reset, err := strconv.ParseInt(refused.Header.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", refused, err)
	}
	s.Await("the quota to renew", func() error {
		before := time.Now()
		got := rig.Call(t, "GET", s.Traffic+"/short/x", nil, "Authorization", key)
		if got.Status == 403 {
			return fmt.Errorf("%s", got)
		}
		if got.Status != 200 || got.Header.Get("X-RateLimit-Remaining") != "2" {
			t.Fatalf("after the period: %s, want 200 with 2 left", got)
		}
		if late := before.Sub(time.Unix(reset, 0)); late < -time.Second || late > 3*time.Second {
			t.Errorf("renewed %s after the announced time", late)
		}
		return nil
	})
}

// useSome makes 37 of 100 calls and returns the key.
func useSome(t *testing.T, s *rig.Server) string {
	t.Helper()
	admin := s.Rest()
	admin.Do("POST", "/api/apis", rig.APIDef("long", "http://"+testenv.Origin(t, rig.Echo), false))
	admin.Do("POST", "/api/portal/policies", object{"id": "long", "name": "Long", "quota_max": 100, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("long")})
	key := admin.NewKey(object{"apply_policies": []string{"long"}})
	got := s.AwaitUse("/long/x", key)
	for range 36 {
		got = rig.Call(t, "GET", s.Traffic+"/long/x", nil, "Authorization", key)
	}
	if got.Status != 200 || got.Header.Get("X-RateLimit-Remaining") != "63" {
		t.Fatalf("call 37 of 100: %s, want 63 left", got)
	}
	return key
}

func refusedWhileRunning(t *testing.T, s *rig.Server, dir string) {
	second := rig.NewUp(t, dir, nil)
	second.Start()
	if code := second.Wait(); code != 4 {
		t.Errorf("it ended with code %d, want 4", code)
	}
	if said := second.Run.Stderr.String(); !strings.Contains(said, strconv.Itoa(s.PID())) {
		t.Errorf("it does not name process %d:\n%s", s.PID(), said)
	}
	if got := rig.Call(t, "GET", s.Traffic+"/open/hello", nil); got.Status != 200 {
		t.Errorf("the first one is disturbed: %s", got)
	}
}
