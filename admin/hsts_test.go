package admin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// Browsers are kept to HTTPS where they use it, and where no other program needs HTTP.
func TestBrowsersAreKeptToHTTPS(t *testing.T) {
	b := start(t, func(d *Deps) {
		d.HSTS, d.Trusted, d.Portal.Apart, d.Portal.HSTS = 365*24*time.Hour, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, true, time.Hour
	})
	authority := testenv.NewAuthority(t, "ours")
	serving := &tls.Config{Certificates: []tls.Certificate{authority.Server("admin.example").TLS}}
	listen := func(local string, secure bool, serve func(net.Listener) error) string {
		ln, err := net.Listen("tcp", local)
		if err != nil {
			t.Fatal(err)
		}
		address := ln.Addr().String()
		if secure {
			ln = tls.NewListener(ln, serving)
		}
		go func() { _ = serve(ln) }() // until the server is shut down
		return address
	}
	admin, secure := listen("127.0.0.1:0", false, b.server.Serve), listen("127.0.0.1:0", true, b.server.Serve)
	portal, securePortal := listen("127.0.0.1:0", false, b.server.ServePortal), listen("127.0.0.1:0", true, b.server.ServePortal)
	const year, hour = "max-age=31536000", "max-age=3600"
	for name, c := range map[string]struct {
		at, url, from, proto string
		want                 string
	}{
		"TLS":                                {at: secure, url: "https://admin.example/hello", want: year},
		"TLS with a port":                    {at: secure, url: "https://admin.example:8081/api/apis", want: year},
		"TLS to a path that is not there":    {at: secure, url: "https://admin.example/x/y", want: year},
		"TLS of the portal":                  {at: securePortal, url: "https://admin.example/portal/", want: hour},
		"TLS at an address":                  {at: secure, url: "https://192.0.2.1/hello"},
		"TLS at an address with a port":      {at: secure, url: "https://[2001:db8::1]:8081/hello"},
		"TLS at localhost":                   {at: secure, url: "https://LocalHost:8081/hello"},
		"TLS below localhost":                {at: secure, url: "https://a.localhost./hello"},
		"plain HTTP":                         {at: admin, url: "http://admin.example/hello"},
		"a trusted proxy with TLS":           {at: admin, url: "http://admin.example/hello", proto: "https", want: year},
		"a trusted proxy behind another":     {at: admin, url: "http://admin.example/hello", proto: "HTTPS, http", want: year},
		"a trusted proxy of the portal":      {at: portal, url: "http://admin.example/portal/", proto: "https", want: hour},
		"a trusted proxy with plain HTTP":    {at: admin, url: "http://admin.example/hello", proto: "http"},
		"a client that says what proxies do": {at: admin, url: "http://admin.example/hello", from: "127.0.0.2", proto: "https"},
	} {
		dial := net.Dialer{}
		if c.from != "" {
			dial.LocalAddr = &net.TCPAddr{IP: net.ParseIP(c.from)}
		}
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), ServerName: "admin.example"},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial.DialContext(ctx, "tcp", c.at) },
		}}
		req, err := http.NewRequestWithContext(t.Context(), "GET", c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.proto != "" {
			req.Header.Set("X-Forwarded-Proto", c.proto)
			req.Header.Set("X-Forwarded-For", "198.51.100.7")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Strict-Transport-Security"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNothingIsSaidOfHTTPSUnlessItIsAskedFor(t *testing.T) {
	if hstsValue(0) != "" || hstsValue(time.Second) != "max-age=1" {
		t.Errorf("%q, %q", hstsValue(0), hstsValue(time.Second))
	}
}
