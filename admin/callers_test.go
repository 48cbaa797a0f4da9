package admin

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// guess shows a wrong credential for somebody behind proxies.
func (b *bench) guess(forwardedFor ...string) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.URL+"/api/apis", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header["X-Forwarded-For"] = forwardedFor
	req.Header.Set("Authorization", "wrong")
	resp, err := b.HTTP.Do(req) // over one connection, as a proxy does
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestGuessesBehindATrustedProxyAreCountedByClient(t *testing.T) {
	b := start(t, func(d *Deps) { d.LoginRate, d.Trusted = 2, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	var statuses []int
	for range 3 {
		statuses = append(statuses, b.guess("192.0.2.1"))
	}
	for _, others := range [][]string{{"192.0.2.2"}, {"192.0.2.1, 192.0.2.3"}, {"192.0.2.1", "192.0.2.4, 127.0.0.9"}, {"[2001:db8::1]:99"}, nil} {
		statuses = append(statuses, b.guess(others...))
	}
	// What a client writes itself stands before what the proxy adds.
	statuses = append(statuses, b.guess("198.51.100.7, 192.0.2.1"))
	if !slices.Equal(statuses, []int{401, 401, 429, 401, 401, 401, 401, 401, 429}) {
		t.Errorf("statuses %v", statuses)
	}
}

func TestWhatOthersThanTrustedProxiesForwardIsIgnored(t *testing.T) {
	for _, trusted := range [][]netip.Prefix{nil, {netip.MustParsePrefix("10.0.0.0/8")}} {
		b := start(t, func(d *Deps) { d.LoginRate, d.Trusted = 2, trusted })
		var statuses []int
		for i := range 4 {
			statuses = append(statuses, b.guess(fmt.Sprint("192.0.2.", i)))
		}
		if !slices.Equal(statuses, []int{401, 401, 429, 429}) {
			t.Errorf("with %v: statuses %v", trusted, statuses)
		}
	}
}

func TestAProxyThatIsNotTrustedIsWarnedOfOnce(t *testing.T) {
	b := start(t)
	b.Call("GET", "/api/apis", b.viewer, "").Want(200)
	if log := b.log.String(); strings.Contains(log, "trusted_proxies") {
		t.Errorf("warned of a proxy without one: %s", log)
	}
	for range 3 {
		b.guess("192.0.2.1")
	}
	if log := b.log.String(); strings.Count(log, "name its network in admin.trusted_proxies") != 1 {
		t.Errorf("want one warning: %s", log)
	}
}

func TestTheAuditLogNamesTheClientBehindAProxy(t *testing.T) {
	b := start(t, func(d *Deps) { d.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+"/api/portal/policies", strings.NewReader(`{"id":"p","name":"p"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "192.0.2.77")
	req.Header.Set("Authorization", b.editor)
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.HTTP.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
	b.Call("GET", "/api/audit", b.admin, "").Want(200).Says("192.0.2.77")
}
