package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/valyala/fasthttp"
)

// serve runs a gateway on loopback until the test ends.
func serve(t *testing.T, change ...func(*gateway.Deps)) (*gateway.Gateway, string) {
	t.Helper()
	g := gatewaytest.Start(t, gatewaytest.Options{Deps: func(d *gateway.Deps) {
		d.Config.CustomDomains = true
		for _, c := range change {
			c(d)
		}
	}})
	return g.Gateway, g.Addr
}

// keyless returns the definition of an open API.
func keyless(id, listenPath, target string) *definition.API {
	return &definition.API{ID: id, Name: id, UseKeyless: true, Proxy: definition.Proxy{
		ListenPath: listenPath, TargetURL: target, StripListenPath: true,
	}}
}

func bundle(revision string, apis ...*definition.API) *definition.Bundle {
	return &definition.Bundle{Revision: revision, APIs: apis}
}

// named answers with its name and what it was asked.
func named(t *testing.T, name string) string {
	return "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		fmt.Fprintf(ctx, "%s %s %s", name, ctx.Method(), ctx.RequestURI())
	})
}

func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestRequestsReachTheAPIWithTheLongestListenPath(t *testing.T) {
	g, addr := serve(t)
	a, b := named(t, "a"), named(t, "b")
	g.Apply(bundle("1", keyless("a", "/sample", a), keyless("b", "/sample/deep/", b+"/base/")))
	for _, c := range []struct {
		path string
		code int
		body string
	}{
		{"/sample", 200, "a GET /"},
		{"/sample/", 200, "a GET /"},
		{"/sample/x?y=1", 200, "a GET /x?y=1"},
		{"/sample/a%2Fb%20c", 200, "a GET /a%2Fb%20c"},
		{"/sample/deep", 200, "b GET /base"},
		{"/sample/deep/er", 200, "b GET /base/er"},
		{"/samplefoo", 404, "Not Found"},
		{"/", 404, "Not Found"},
	} {
		if code, body := get(t, addr, c.path); code != c.code || body != c.body {
			t.Errorf("%s: %d %q, want %d %q", c.path, code, body, c.code, c.body)
		}
	}
}

func TestAmbiguousPathsAreRefused(t *testing.T) {
	g, addr := serve(t)
	g.Apply(bundle("1", keyless("a", "/", named(t, "a"))))
	for _, path := range []string{"/a/../b", "/a/%2e%2e/b", "/a/%zz", "/a/%00"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
		got, _ := io.ReadAll(c)
		if !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
			t.Errorf("%s: %q", path, got)
		}
		c.Close()
	}
}

func TestBadDefinitionKeepsTheLastGoodForm(t *testing.T) {
	g, addr := serve(t)
	a := named(t, "a")
	if failed := g.Apply(bundle("1", keyless("a", "/a", a))); len(failed) > 0 {
		t.Fatal(failed)
	}
	bad := keyless("a", "/a", a)
	bad.EnableJWT = true
	other := keyless("b", "/b", a)
	other.Proxy.TargetURL = "nonsense"
	failed := g.Apply(bundle("2", bad, other, keyless("c", "/c", a)))
	if failed["a"] == nil || failed["b"] == nil || len(failed) != 2 {
		t.Errorf("failed: %v", failed)
	}
	if !strings.Contains(failed["a"].Error(), "enable_jwt") {
		t.Errorf("the error does not name what is missing: %v", failed["a"])
	}
	for path, want := range map[string]int{"/a": 200, "/b": 503, "/c": 200} {
		if code, body := get(t, addr, path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
}

func TestBundlesCannotEmptyAGatewayByAccident(t *testing.T) {
	g, addr := serve(t)
	if code, _ := get(t, addr, "/a"); code != 503 {
		t.Errorf("before the first bundle: %d", code)
	}
	g.Apply(bundle("1", keyless("a", "/a", named(t, "a"))))
	if failed := g.Apply(bundle("2")); failed[""] == nil {
		t.Error("an empty bundle was applied")
	}
	if code, _ := get(t, addr, "/a"); code != 200 {
		t.Errorf("after an empty bundle: %d", code)
	}
	empty := bundle("3")
	empty.ConfirmedEmpty = true
	g.Apply(empty)
	if code, _ := get(t, addr, "/a"); code != 404 {
		t.Errorf("after a confirmed empty bundle: %d", code)
	}
}

func TestNewcomerTakesNoListenPathAway(t *testing.T) {
	g, addr := serve(t)
	a, b := keyless("z", "/x", named(t, "first")), keyless("a", "/x", named(t, "second"))
	g.Apply(bundle("1", a))
	failed := g.Apply(bundle("2", b, a))
	if failed["a"] == nil || failed["z"] != nil {
		t.Errorf("failed: %v", failed)
	}
	if _, body := get(t, addr, "/x"); body != "first GET /" {
		t.Errorf("got %q", body)
	}
}

func TestInactiveAndInternalAPIsHaveNoRoute(t *testing.T) {
	g, addr := serve(t)
	off, inside, a := false, keyless("i", "/i", named(t, "i")), keyless("a", "/a", named(t, "a"))
	a.Active, inside.Internal = &off, true
	g.Apply(bundle("1", a, inside, keyless("b", "/b", named(t, "b"))))
	for path, want := range map[string]int{"/a": 404, "/i": 404, "/b": 200} {
		if code, _ := get(t, addr, path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

func TestDomainsGoBeforePaths(t *testing.T) {
	g, addr := serve(t)
	a := keyless("a", "/", named(t, "domain"))
	a.Domain = "API.example"
	g.Apply(bundle("1", a, keyless("b", "/", named(t, "any"))))
	for host, want := range map[string]string{"api.EXAMPLE:8080": "domain GET /", "other": "any GET /"} {
		req, _ := http.NewRequest("GET", "http://"+addr+"/", nil)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != want {
			t.Errorf("%s: %q, want %q", host, b, want)
		}
	}
}

// TestReloadsFailNoRequest changes configuration as fast as it can under load.
func TestReloadsFailNoRequest(t *testing.T) {
	g, addr := serve(t)
	targets := []string{named(t, "a"), named(t, "b")}
	g.Apply(bundle("0", keyless("x", "/x", targets[0])))
	stop := make(chan struct{})
	var served atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			br := bufio.NewReader(c)
			for {
				select {
				case <-stop:
					return
				default:
				}
				fmt.Fprint(c, "GET /x/y HTTP/1.1\r\nHost: a\r\n\r\n")
				resp, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Error(err)
					return
				}
				b, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 200 || !strings.HasSuffix(string(b), " GET /y") {
					t.Errorf("%d %q %v", resp.StatusCode, b, err)
					return
				}
				served.Add(1)
			}
		})
	}
	for i := 1; i <= 300 || served.Load() < 2000; i++ {
		g.Apply(bundle(fmt.Sprint(i), keyless("x", "/x", targets[i%2])))
	}
	close(stop)
	clients.Wait()
}

func TestRefusalsSpeakTheClientsLanguage(t *testing.T) {
	g, addr := serve(t)
	a := keyless("a", "/a", named(t, "a"))
	a.UseKeyless = false
	g.Apply(bundle("1", a))
	for _, c := range []struct{ sent, kind, body string }{
		{"", "application/json", "{\n    \"error\": \"Authorization field missing\"\n}"},
		{"text/xml; charset=utf-8", "text/xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<error>Authorization field missing</error>"},
	} {
		req, _ := http.NewRequest("POST", "http://"+addr+"/a", strings.NewReader("x"))
		req.Header.Set("Content-Type", c.sent)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 401 || resp.Header.Get("Content-Type") != c.kind || string(b) != c.body {
			t.Errorf("%q: %d %s %q", c.sent, resp.StatusCode, resp.Header.Get("Content-Type"), b)
		}
		if len(resp.Header.Get("X-Request-Id")) != 32 || resp.Header.Get("X-Generator") == "" {
			t.Errorf("headers %v", resp.Header)
		}
	}
}
