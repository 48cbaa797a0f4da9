package rig

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
)

// BasicHeader returns the Authorization header of a user and a password (RFC 7617).
func BasicHeader(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// TLSClient returns a client that opens a new connection to an address for each
// request, whatever the URL.
func TLSClient(address string, conf *tls.Config) *http.Client {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&tls.Dialer{Config: conf}).DialContext(ctx, network, address)
	}
	return &http.Client{Transport: &http.Transport{DialTLSContext: dial, DisableKeepAlives: true}, Timeout: Patience}
}

// ForgetEverywhere runs forget, which empties the cache of one gateway for an API,
// and waits until all gateways have emptied theirs.
func ForgetEverywhere(t *testing.T, gateways []*Server, path string, forget func()) {
	t.Helper()
	body := func(g *Server) string { return Call(t, "GET", g.Traffic+path, nil).Body }
	before := make([]string, len(gateways))
	for i, g := range gateways {
		if before[i] = body(g); body(g) != before[i] {
			t.Fatalf("gateway %d keeps nothing: %s", i+1, before[i])
		}
	}
	forget()
	for i, g := range gateways {
		Eventually(t, fmt.Sprintf("gateway %d forgets", i+1), func() error {
			if got := body(g); got == before[i] {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}
}

// Echo is an upstream that answers with the path of the request.
func Echo(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("origin " + string(ctx.Path())) }
