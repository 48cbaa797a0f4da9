package traffic

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// tlsTraffic is a gateway on files that speaks TLS beside plain HTTP.
type tlsTraffic struct {
	*traffic
	secure  string // address
	servers *testenv.Authority
	dir     string // of certificates
}

// newTLSTraffic starts a gateway whose first certificate is for first.example.
func newTLSTraffic(t testing.TB, with settings, apis ...object) *tlsTraffic {
	t.Helper()
	g := &tlsTraffic{secure: rig.FreeAddress(t), servers: testenv.NewAuthority(t, "servers"), dir: t.TempDir()}
	cert, key := g.save(t, "first", g.servers.Server("first.example", "127.0.0.1"))
	g.traffic = newTraffic(t, rig.Merge(settings{"gateway.tls.listen": g.secure, "gateway.tls.cert": cert, "gateway.tls.key": key}, with), nil, apis...)
	return g
}

// save writes the files of a certificate, each at once.
func (g *tlsTraffic) save(t testing.TB, name string, id *testenv.Identity) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(g.dir, name+".crt"), filepath.Join(g.dir, name+".key")
	rig.SaveText(t, cert, id.CertPEM)
	rig.SaveText(t, key, id.KeyPEM)
	return cert, key
}

// client is a client for a name that shows a certificate, or none.
func (g *tlsTraffic) client(name string, shown *testenv.Identity) *http.Client {
	conf := &tls.Config{RootCAs: g.servers.Pool(), ServerName: name}
	if shown != nil {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown.TLS, nil }
	}
	return rig.TLSClient(g.secure, conf)
}

func (g *tlsTraffic) ask(t testing.TB, shown *testenv.Identity, path string, headers ...string) rig.Answer {
	t.Helper()
	got, err := rig.SendBy(g.client("first.example", shown), http.MethodGet, "https://first.example"+path, nil, headers...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return got
}

// addCertificate adds one by the gateway API.
func (g *tlsTraffic) addCertificate(t testing.TB, pem string) (id string) {
	t.Helper()
	var made struct{ ID, Status, Message string }
	got := rig.Call(t, http.MethodPost, g.Control+"/svc/certs?org_id=acme", pem, "X-Svc-Authorization", testSecret)
	got.Into(t, &made)
	if got.Status != 200 || made.Status != "ok" || made.Message != "Certificate added" || !strings.HasPrefix(made.ID, "acme") {
		t.Fatalf("adding a certificate: %s", got)
	}
	return made.ID
}

func mutualAPI(id, target string, certificates ...string) object {
	api := rig.APIDef(id, target, true)
	api["org_id"], api["use_mutual_tls_auth"], api["client_certificates"] = "acme", true, certificates
	return api
}

func idOf(i *testenv.Identity) string { return "acme" + certs.SumOf(i.Leaf.Raw) }

func TestMutualTLSGivesEveryClientItsAnswer(t *testing.T) {
	t.Parallel()
	ours, theirs := testenv.NewAuthority(t, "ours"), testenv.NewAuthority(t, "theirs")
	pinned, signed, stranger := theirs.Client("pinned"), ours.Client("signed"), theirs.Client("stranger")
	old := ours.ClientUntil("old", time.Now().Add(-time.Second))
	origin := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		ctx.SetBodyString("told " + string(ctx.Request.Header.Peek("X-Forwarded-Proto")))
	})
	authorityID := "acme" + certs.SumOf(ours.Certificate().Raw)
	g := newTLSTraffic(t, nil, mutualAPI("m", origin, idOf(pinned), authorityID), rig.APIDef("open", origin, true))
	denied := func(i *testenv.Identity) string {
		return "403 certificate_denied Certificate with SHA256 " + certs.SumOf(i.Leaf.Raw) + " not allowed"
	}
	said := func(got rig.Answer) string {
		var refusal struct{ Error string }
		if got.Status == 200 {
			return "200"
		}
		got.Into(t, &refusal)
		return fmt.Sprint(got.Status, " ", got.Reason(), " ", refusal.Error)
	}
	expect := func(name, want string, got rig.Answer) {
		t.Helper()
		if have := said(got); have != want {
			t.Errorf("%s: %s, want %s", name, have, want)
		}
	}
	expect("listed, not in the store yet", denied(pinned), g.ask(t, pinned, "/m/x"))
	g.addCertificate(t, pinned.CertPEM)
	g.addCertificate(t, ours.PEM())
	expect("plain HTTP", "403 tls_required TLS not enabled", rig.Call(t, http.MethodGet, g.traffic.Traffic+"/m/x", nil))
	expect("no certificate", "403 certificate_missing Client TLS certificate is required", g.ask(t, nil, "/m/x"))
	expect("listed", "200", g.ask(t, pinned, "/m/x"))
	expect("of a listed authority", "200", g.ask(t, signed, "/m/x"))
	expect("of another authority", denied(stranger), g.ask(t, stranger, "/m/x"))
	expect("expired", "403 certificate_expired Certificate has expired", g.ask(t, old, "/m/x"))
	expect("another API", "200", g.ask(t, nil, "/open/x"))
	explained := func(pem string) string {
		description := object{"url": "https://first.example/m/x"}
		if pem != "" {
			description["certificate"] = pem
		}
		return rig.Call(t, http.MethodPost, g.Control+"/svc/explain", description, "X-Svc-Authorization", testSecret).Body
	}
	for pem, want := range map[string]string{
		"": "Client TLS certificate is required", pinned.CertPEM: "is listed, or signed by an authority that is",
		signed.CertPEM: "is listed, or signed by an authority that is", stranger.CertPEM: "certificate_denied",
	} {
		if got := explained(pem); !strings.Contains(got, want) {
			t.Errorf("explained: %s, want %s", got, want)
		}
	}
	if got := g.ask(t, nil, "/open/x"); got.Body != "told https" {
		t.Errorf("the upstream is %s", got.Body)
	}
	got := rig.Call(t, http.MethodDelete, g.Control+"/svc/certs/"+authorityID, nil, "X-Svc-Authorization", testSecret)
	if got.Status != 200 {
		t.Errorf("deleting the authority: %s", got)
	}
	expect("of an authority that was deleted", denied(signed), g.ask(t, signed, "/m/x"))
	g.Kill()
	g.StartReady()
	expect("listed, after a crash", "200", g.ask(t, pinned, "/m/x"))
}

func TestBadCertificatesAreRefusedByTheGatewayAPI(t *testing.T) {
	t.Parallel()
	g := newTLSTraffic(t, nil)
	one := g.servers.Server("one.example")
	for name, pem := range map[string]string{"no PEM": "hello", "nothing": "", "a key alone": one.KeyPEM} {
		if got := rig.Call(t, http.MethodPost, g.Control+"/svc/certs", pem, "X-Svc-Authorization", testSecret); got.Status != 403 {
			t.Errorf("%s: %s", name, got)
		}
	}
	for method, path := range map[string]string{http.MethodGet: "/svc/certs/none", http.MethodDelete: "/svc/certs/none"} {
		if got := rig.Call(t, method, g.Control+path, nil, "X-Svc-Authorization", testSecret); got.Status != 404 {
			t.Errorf("%s: %s", method, got)
		}
	}
	id := g.addCertificate(t, one.CertPEM+one.KeyPEM)
	another := g.servers.Server("*.example")
	got := rig.Call(t, http.MethodPost, g.Control+"/svc/certs?org_id=other", another.CertPEM+another.KeyPEM, "X-Svc-Authorization", testSecret)
	if got.Status != 409 || !strings.Contains(got.Body, "*.example") || strings.Contains(got.Body, "acme") {
		t.Errorf("a name of another organisation: %s", got)
	}
	list := rig.Call(t, http.MethodGet, g.Control+"/svc/certs", nil, "X-Svc-Authorization", testSecret)
	if want := fmt.Sprintf(`{"certs":[%q]}`, id); strings.TrimSpace(list.Body) != want {
		t.Errorf("list %s, want %s", list.Body, want)
	}
	shown := rig.Call(t, http.MethodGet, g.Control+"/svc/certs/"+id, nil, "X-Svc-Authorization", testSecret)
	if shown.Status != 200 || strings.Contains(shown.Body, "PRIVATE") || !strings.Contains(shown.Body, `"has_private":true`) {
		t.Errorf("shown %s", shown)
	}
	if got := rig.Call(t, http.MethodGet, g.Control+"/svc/certs", nil); got.Status != 403 {
		t.Errorf("without the secret: %s", got)
	}
}

func TestCertificatesAreTokensAndKeysAreBoundToThem(t *testing.T) {
	t.Parallel()
	authority := testenv.NewAuthority(t, "clients")
	mine, second, theirs := authority.Client("mine"), authority.Client("second"), authority.Client("theirs")
	old := authority.ClientUntil("old", time.Now().Add(-time.Second))
	origin := "http://" + testenv.Origin(t, rig.Echo)
	byCert, byToken := rig.APIDef("c", origin, false), rig.APIDef("t", origin, false)
	byCert["org_id"], byToken["org_id"] = "acme", "acme"
	byCert["auth_configs"] = object{"authToken": object{"use_certificate": true}}
	g := newTLSTraffic(t, settings{"gateway.tls.ask_clients": "always"}, byCert, byToken)
	session := func(with object) object {
		s := object{"org_id": "acme", "access_rights": rig.AccessTo("c", "t")}
		maps.Copy(s, with)
		return s
	}
	if key := g.newKey(session(object{"certificate": idOf(mine)})); key != idOf(mine) {
		t.Errorf("the key of a certificate is called %s, want %s", key, idOf(mine))
	}
	g.newKey(session(object{"certificate": idOf(old)}))
	bound := g.newKey(session(object{"mtls_static_certificate_bindings": []string{idOf(second)}}))
	free := g.newKey(session(nil))
	const disallowed = "Access to this API has been disallowed"
	for _, c := range []struct {
		name   string
		shown  *testenv.Identity
		path   string
		token  string
		status int
		text   string
	}{
		{"the certificate of a key", mine, "/c/x", "", 200, ""},
		{"no certificate", nil, "/c/x", "", 401, "Client certificate required"},
		{"no certificate, and a key", nil, "/c/x", free, 401, "Client certificate required"},
		{"a certificate without a key", theirs, "/c/x", "", 401, disallowed},
		{"an expired certificate", old, "/c/x", "", 403, "Certificate has expired"},
		{"another's certificate for a token", theirs, "/c/x", idOf(mine), 401, disallowed},
		{"a key bound to the certificate", second, "/c/x", bound, 200, ""},
		{"a key bound to another", mine, "/c/x", bound, 401, disallowed},
		{"a key, on an API that takes tokens", nil, "/t/x", free, 200, ""},
		{"a bound key with its certificate, there", second, "/t/x", bound, 200, ""},
		{"a bound key with another, there", mine, "/t/x", bound, 401, disallowed},
		{"a bound key without one, there", nil, "/t/x", bound, 401, "Client certificate required"},
		{"a certificate's name for a token, there", theirs, "/t/x", idOf(mine), 401, disallowed},
		{"a certificate's name for a token, with the certificate, there", mine, "/t/x", idOf(mine), 200, ""},
	} {
		headers := []string{}
		if c.token != "" {
			headers = []string{"Authorization", c.token}
		}
		got := g.ask(t, c.shown, c.path, headers...)
		if got.Status != c.status || !strings.Contains(got.Body, c.text) {
			t.Errorf("%s: %s, want %d %s", c.name, got, c.status, c.text)
		}
	}
	plain := rig.Call(t, http.MethodGet, g.traffic.Traffic+"/t/x", nil, "Authorization", bound)
	if plain.Status != 401 {
		t.Errorf("a bound key over plain HTTP: %s", plain)
	}
}

// shownTo returns the name of the certificate that a client gets.
func (g *tlsTraffic) shownTo(name string) string {
	c, err := tls.Dial("tcp", g.secure, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].DNSNames[0]
}

func TestCertificatesGoByNameAndAreReplacedWithoutAFailedRequest(t *testing.T) {
	t.Parallel()
	extra := t.TempDir()
	authority := testenv.NewAuthority(t, "more")
	wild, whole := authority.Server("*.wild.example"), filepath.Join(extra, "wild.pem")
	rig.SaveText(t, whole, wild.CertPEM+wild.KeyPEM)
	g := newTLSTraffic(t, settings{"gateway.tls.certificates": whole}, rig.APIDef("a", "http://"+testenv.Origin(t, rig.Echo), true))
	stored := authority.Server("stored.example")
	g.addCertificate(t, stored.CertPEM+stored.KeyPEM)
	for name, want := range map[string]string{
		"first.example": "first.example", "a.wild.example": "*.wild.example", "stored.example": "stored.example",
		"other.example": "first.example", "wild.example": "first.example", "": "first.example",
	} {
		if got := g.shownTo(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	load := rig.StartLoad(t, 4, func(_ *http.Client, n int) error {
		client := g.client("first.example", nil) // a handshake for each request
		got, err := rig.SendBy(client, http.MethodGet, "https://first.example/a/x", nil)
		return rig.Want(200, got, err)
	})
	names := []string{"first.example"}
	for i := range 4 {
		load.AwaitMore(20)
		name := fmt.Sprintf("renewed-%d.example", i)
		g.save(t, "first", g.servers.Server(name, "first.example", "127.0.0.1"))
		rig.Eventually(t, name, func() error {
			if got := g.shownTo(""); got != name {
				return fmt.Errorf("it is %s still", got)
			}
			return nil
		})
		names = append(names, name)
	}
	rig.SaveText(t, filepath.Join(g.dir, "first.crt"), "junk")
	g.AwaitLog("certificates that changed cannot be used")
	load.AwaitMore(20)
	t.Logf("%d requests, each with a handshake, over %d certificates", load.Stop(), len(names))
	if got := g.shownTo(""); got != names[len(names)-1] {
		t.Errorf("a broken file took the place of a good one: %s", got)
	}
	if got := rig.Call(t, http.MethodGet, g.Telemetry+"/metrics", nil); !strings.Contains(got.Body, "sluice_tls_reload_failures_total 1\n") || !strings.Contains(got.Body, `name="stored.example"`) {
		t.Error("metrics do not tell of the broken file, or of all certificates")
	}
}

func TestSlowAndOldHandshakesEndAndHoldNobodyUp(t *testing.T) {
	t.Parallel()
	g := newTLSTraffic(t, settings{"gateway.tls.handshake_timeout": "3s", "gateway.tls.max_handshakes": "8"}, rig.APIDef("a", "http://"+testenv.Origin(t, rig.Echo), true))
	var slow []net.Conn
	for range 20 {
		c := connect(t, g.secure)
		_, _ = io.WriteString(c, "\x16\x03\x01\x02\x00")
		slow = append(slow, c)
	}
	began := time.Now()
	if got := g.ask(t, nil, "/a/x"); got.Status != 200 {
		t.Errorf("beside them: %s", got)
	}
	t.Logf("answered within %s", time.Since(began))
	for i, c := range slow {
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("slow handshake %d: %d bytes, %v, want its end", i, n, err)
		}
	}
	if c, err := tls.Dial("tcp", g.secure, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is spoken")
	} else if !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	g.AwaitLog("TLS handshake failed")
	rig.Eventually(t, "the metrics to tell of 21 failed handshakes", func() error { // a connection ends before it is counted
		return rig.Lacks(rig.Call(t, http.MethodGet, g.Telemetry+"/metrics", nil).Body, "sluice_tls_handshake_failures_total 21\n")
	})
}
