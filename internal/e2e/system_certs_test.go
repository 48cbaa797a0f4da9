package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

// TestCertificatesOfTheAdminReachItsGateway has a gateway take everything that it
// knows of certificates from the admin: what it shows to clients, whom it lets in,
// and what it shows to upstreams.
func TestCertificatesOfTheAdminReachItsGateway(t *testing.T) {
	t.Parallel()
	servers, clients := testenv.NewAuthority(t, "servers"), testenv.NewAuthority(t, "clients")
	site, me, gatewayItself := servers.Server("site.example"), clients.Client("me"), clients.Client("gateway")
	upstream := newMutualUpstream(t, clients)

	secure := freeAddress(t)
	up := newUp(t, dataDir(t), settings{"gateway.tls.listen": secure}).startReady()
	admin := up.rest()
	add := func(pem string) (id string) {
		var made struct{ ID string }
		admin.do(http.MethodPost, "/api/certs", object{"pem": pem}).into(t, &made)
		return made.ID
	}
	plant(strings.Split(me.KeyPEM, "\n")[1]) // no log may have it
	add(site.CertPEM + site.KeyPEM)
	towards := add(gatewayItself.CertPEM + gatewayItself.KeyPEM)
	authority := add(clients.PEM())
	api := transport(apiDef("m", upstream, true), object{"ssl_insecure_skip_verify": true})
	api["use_mutual_tls_auth"], api["client_certificates"] = true, []string{authority}
	api["upstream_certificates"] = object{"*": towards}
	admin.do(http.MethodPost, "/api/apis", api)

	client := tlsClient(secure, &tls.Config{RootCAs: servers.Pool(), ServerName: "site.example", Certificates: []tls.Certificate{me.TLS}})
	ask := func() (answer, error) { return sendBy(client, http.MethodGet, "https://site.example/m/x", nil) }
	up.await("a client that is let in", func() error {
		got, err := ask()
		if err == nil && (got.status != 200 || got.body != "gateway") {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
	list := admin.do(http.MethodGet, "/api/certs", nil)
	if strings.Contains(list.body, "PRIVATE") || !strings.Contains(list.body, towards) {
		t.Errorf("list %s", list)
	}
	proxied := call(t, http.MethodGet, up.control+"/svc/certs", nil, "X-Svc-Authorization", plant(up.readState("gateway.secret")))
	if proxied.status != 200 || !strings.Contains(proxied.body, authority) {
		t.Errorf("by the gateway API: %s", proxied)
	}

	admin.do(http.MethodDelete, "/api/certs/"+authority, nil)
	up.await("the client to be refused", func() error {
		got, err := ask()
		if err == nil && got.reason() != "certificate_denied" {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
	added := call(t, http.MethodPost, up.control+"/svc/certs", clients.PEM(), "X-Svc-Authorization", up.readState("gateway.secret"))
	if added.status != 200 || !strings.Contains(added.body, authority) {
		t.Errorf("added by the gateway API: %s", added)
	}
	up.await("the client to be let in again", func() error {
		got, err := ask()
		return want(200, got, err)
	})
	up.kill()
	up.startReady()
	up.await("the client to be let in after a crash", func() error {
		got, err := ask()
		return want(200, got, err)
	})
}

// TestCertificatesTravelToGatewaysOfTheirOwn has gateways beside an admin show an
// upstream what the admin keeps, also when they start while the admin is away.
func TestCertificatesTravelToGatewaysOfTheirOwn(t *testing.T) {
	t.Parallel()
	clients := testenv.NewAuthority(t, "clients")
	itself := clients.Client("gateway")
	upstream := newMutualUpstream(t, clients)
	s := newSplit(t, 2, testenv.Postgres(t))
	var made struct{ ID string }
	s.rest.do(http.MethodPost, "/api/certs", object{"pem": itself.CertPEM + itself.KeyPEM}).into(t, &made)
	api := transport(apiDef("m", upstream, true), object{"ssl_insecure_skip_verify": true})
	api["upstream_certificates"] = object{"*": made.ID}
	s.rest.do(http.MethodPost, "/api/apis", api)
	s.everywhere("the certificate", "/m/x", "", body("gateway"))
	if got := s.rest.do(http.MethodPost, "/api/explain", object{"url": "/m/x"}); !strings.Contains(got.body, `"allowed":true`) {
		t.Errorf("the admin explains %s", got)
	}
	sealed := s.gateways[0].readState("certs.sealed")
	if strings.Contains(sealed, "BEGIN") {
		t.Error("a gateway's copy of the certificates is not sealed")
	}
	s.admin.kill()
	s.gateways[0].kill()
	s.gateways[0].startReady()
	s.everywhere("the certificate without the admin", "/m/x", "", body("gateway"))
}

// newMutualUpstream starts an upstream that answers with the name of its client,
// which an authority must have signed.
func newMutualUpstream(t *testing.T, clients *testenv.Authority) (url string) {
	t.Helper()
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	upstream.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients.Pool()}
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	return upstream.URL
}
