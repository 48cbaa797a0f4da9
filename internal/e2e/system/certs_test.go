package system

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
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

	secure := rig.FreeAddress(t)
	up := rig.NewUp(t, rig.DataDir(t), settings{"gateway.tls.listen": secure}).StartReady()
	admin := up.Rest()
	add := func(pem string) (id string) {
		var made struct{ ID string }
		admin.Do(http.MethodPost, "/api/certs", object{"pem": pem}).Into(t, &made)
		return made.ID
	}
	rig.Plant(strings.Split(me.KeyPEM, "\n")[1]) // no log may have it
	add(site.CertPEM + site.KeyPEM)
	towards := add(gatewayItself.CertPEM + gatewayItself.KeyPEM)
	authority := add(clients.PEM())
	api := rig.Transport(rig.APIDef("m", upstream, true), object{"ssl_insecure_skip_verify": true})
	api["use_mutual_tls_auth"], api["client_certificates"] = true, []string{authority}
	api["upstream_certificates"] = object{"*": towards}
	admin.Do(http.MethodPost, "/api/apis", api)

	client := rig.TLSClient(secure, &tls.Config{RootCAs: servers.Pool(), ServerName: "site.example", Certificates: []tls.Certificate{me.TLS}})
	ask := func() (rig.Answer, error) { return rig.SendBy(client, http.MethodGet, "https://site.example/m/x", nil) }
	up.Await("a client that is let in", func() error {
		got, err := ask()
		if err == nil && (got.Status != 200 || got.Body != "gateway") {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
	list := admin.Do(http.MethodGet, "/api/certs", nil)
	if strings.Contains(list.Body, "PRIVATE") || !strings.Contains(list.Body, towards) {
		t.Errorf("list %s", list)
	}
	proxied := rig.Call(t, http.MethodGet, up.Control+"/svc/certs", nil, "X-Svc-Authorization", rig.Plant(up.ReadState("gateway.secret")))
	if proxied.Status != 200 || !strings.Contains(proxied.Body, authority) {
		t.Errorf("by the gateway API: %s", proxied)
	}

	admin.Do(http.MethodDelete, "/api/certs/"+authority, nil)
	up.Await("the client to be refused", func() error {
		got, err := ask()
		if err == nil && got.Reason() != "certificate_denied" {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
	added := rig.Call(t, http.MethodPost, up.Control+"/svc/certs", clients.PEM(), "X-Svc-Authorization", up.ReadState("gateway.secret"))
	if added.Status != 200 || !strings.Contains(added.Body, authority) {
		t.Errorf("added by the gateway API: %s", added)
	}
	up.Await("the client to be let in again", func() error {
		got, err := ask()
		return rig.Want(200, got, err)
	})
	up.Kill()
	up.StartReady()
	up.Await("the client to be let in after a crash", func() error {
		got, err := ask()
		return rig.Want(200, got, err)
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
	s.rest.Do(http.MethodPost, "/api/certs", object{"pem": itself.CertPEM + itself.KeyPEM}).Into(t, &made)
	api := rig.Transport(rig.APIDef("m", upstream, true), object{"ssl_insecure_skip_verify": true})
	api["upstream_certificates"] = object{"*": made.ID}
	s.rest.Do(http.MethodPost, "/api/apis", api)
	s.everywhere("the certificate", "/m/x", "", body("gateway"))
	if got := s.rest.Do(http.MethodPost, "/api/explain", object{"url": "/m/x"}); !strings.Contains(got.Body, `"allowed":true`) {
		t.Errorf("the admin explains %s", got)
	}
	sealed := s.gateways[0].ReadState("certs.sealed")
	if strings.Contains(sealed, "BEGIN") {
		t.Error("a gateway's copy of the certificates is not sealed")
	}
	s.admin.Kill()
	s.gateways[0].Kill()
	s.gateways[0].StartReady()
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
