package definition_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/internal/definition"
)

// FuzzAcceptedAPIsCompile holds validation to what the gateway can match and
// reach: what is accepted when it is saved must not fail when it is served.
func FuzzAcceptedAPIsCompile(f *testing.F) {
	for _, path := range []string{"/", "/a", "/a/", "/a%2fb/c%20d", "/{a}/{b:[^/]+}", "/{a:(}", "/..", "/%2e%2e", "/%2E;x", "/ü", "/a:b", "/%25", "/%5c..", "/;", "/{a}x", "//", "/%0a", "/svcx", "/%73vc", "/svc/x", "/hello/", "/hello/x", "/{a:\\d{1,2}}"} {
		f.Add(path, "http://b", "")
	}
	for _, target := range []string{"https://a:8443/x?y=1", "http://[::1]:80/", "http://a:/", "http://%41", "http://a/%zz", "http://a?x=^", "http://a/ b", "HTTP://A"} {
		f.Add("/a", target, "A.example")
	}
	f.Add("/a", "http://b", "[::1]")
	f.Add("/a", "http://b", "a.")
	f.Add("/a", "http://b", "[")
	f.Fuzz(func(t *testing.T, path, target, domain string) {
		a := &definition.API{Domain: domain, Proxy: definition.Proxy{ListenPath: path, TargetURL: target}}
		if a.Validate() != nil {
			return
		}
		var none *match.Tree[int]
		if err := none.Edit().Add(match.Entry[int]{Domain: domain, ListenPath: path}); err != nil {
			t.Errorf("path %q, domain %q: accepted, but %v", path, domain, err)
		}
		if _, err := match.CompileTarget(target); err != nil {
			t.Errorf("target %q: accepted, but it %v", target, err)
		}
		plain, err := url.PathUnescape(strings.TrimRight(path, "/"))
		if err != nil {
			return
		}
		if slices.Contains([]string{"/svc", "/hello", "/ready", "/live"}, plain) || strings.HasPrefix(plain, "/svc/") {
			t.Errorf("path %q: accepted, but it is reserved", path)
		}
	})
}
