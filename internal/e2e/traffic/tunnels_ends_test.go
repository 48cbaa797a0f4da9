package traffic

import (
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/go-jose/go-jose/v4"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// speakTLS is speak over TLS, with a client's certificate or none.
func (g *tlsTraffic) speakTLS(conf *tls.Config, path string, headers ...string) *websocket.Conn {
	g.T.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	dialer := websocket.Dialer{HandshakeTimeout: rig.Patience, TLSClientConfig: conf}
	c, resp, err := dialer.Dial("wss://"+g.secure+path, h)
	if err != nil {
		g.T.Fatalf("%s: %v, %v", path, err, resp)
	}
	g.T.Cleanup(func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(rig.Patience))
	g.hear(c, "hello")
	return c
}

func TestTunnelsOverTLSEndWithTheirKeys(t *testing.T) {
	t.Parallel()
	g := newTLSTraffic(t, settings{"gateway.websockets": "true"}, rig.APIDef("keyed", newEcho(t), false))
	session := object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1}
	stays, revoked := g.newKey(session), g.newKey(session)
	staying := g.speakTLS(&tls.Config{RootCAs: g.servers.Pool(), ServerName: "first.example"}, "/keyed/x", "Authorization", stays)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conf := &tls.Config{RootCAs: g.servers.Pool(), ServerName: "first.example", MinVersion: version, MaxVersion: version}
		c := g.speakTLS(conf, "/keyed/x", "Authorization", revoked)
		since := time.Now()
		if got := g.traffic.ask(http.MethodDelete, "/svc/keys/"+revoked, nil); got.Status != 200 {
			t.Fatal(got)
		}
		g.cutsSoon(c, tls.VersionName(version), since)
		revoked = g.newKey(session)
	}
	g.hear(staying, "still here")
	g.showsTunnels("keyed", 1)
}

func TestTunnelsEndWithTheCertificatesOfTheirClients(t *testing.T) {
	t.Parallel()
	authority := testenv.NewAuthority(t, "clients")
	stays, ends := authority.Client("stays"), authority.ClientUntil("ends", time.Now().Add(3*time.Second))
	g := newTLSTraffic(t, settings{"gateway.websockets": "true"}, mutualAPI("m", newEcho(t), idOf(stays), idOf(ends)))
	open := func(shown *testenv.Identity) *websocket.Conn {
		g.addCertificate(t, shown.CertPEM)
		return g.speakTLS(&tls.Config{RootCAs: g.servers.Pool(), ServerName: "first.example", Certificates: []tls.Certificate{shown.TLS}}, "/m/x")
	}
	staying, ending := open(stays), open(ends)
	g.cutsSoon(ending, "an end of a certificate", ends.Leaf.NotAfter)
	if time.Now().Before(ends.Leaf.NotAfter) {
		t.Error("cut before the end")
	}
	g.hear(staying, "still here")
	since := time.Now()
	if got := g.traffic.ask(http.MethodDelete, "/svc/certs/"+idOf(stays), nil); got.Status != 200 {
		t.Fatal(got)
	}
	g.cutsSoon(staying, "a certificate that nobody knows any more", since)
}

func TestTunnelsEndWithTheirTokens(t *testing.T) {
	t.Parallel()
	echo, secret := newEcho(t), rig.Plant("the secret of an issuer, of enough bytes")
	central := rig.APIDef("central", echo, false)
	central["enable_jwt"], central["jwt_signing_method"] = true, "hmac"
	central["jwt_source"] = base64.StdEncoding.EncodeToString([]byte(secret))
	central["jwt_default_policies"], central["jwt_expires_at_validation_skew"] = []string{"gold"}, 1
	g := newTraffic(t, settings{"gateway.websockets": "true"}, object{
		"gold": object{"id": "gold", "name": "gold", "active": true, "access_rights": rig.AccessTo("central"), "rate": 100, "per": 1},
	}, central, ownSecrets("own", "hmac", echo))
	key := g.newKey(object{"access_rights": rig.AccessTo("own"), "jwt_data": object{"secret": secret}})
	other := g.newKey(object{"access_rights": rig.AccessTo("own"), "jwt_data": object{"secret": secret}})
	open := func(api, kid string, ends int64) *websocket.Conn {
		token := signedToken(t, jose.HS256, []byte(secret), kid, object{"sub": "ann", "exp": ends})
		return g.speak("/"+api+"/x", "Authorization", "Bearer "+token)
	}
	later := time.Now().Add(time.Hour).Unix()
	staying := open("own", key, later)
	gone := open("own", other, later)
	since := time.Now()
	if got := g.ask(http.MethodDelete, "/svc/keys/"+other, nil); got.Status != 200 {
		t.Fatal(got)
	}
	g.cutsSoon(gone, "the key that the token names was deleted", since)
	ends := time.Now().Add(2 * time.Second).Unix()
	own, issued := open("own", key, ends), open("central", "any", ends)
	g.cutsSoon(own, "a token of a key was over", time.Unix(ends, 0))
	g.cutsSoon(issued, "a token of an issuer was over, a second later for the skew", time.Unix(ends+1, 0))
	if early := time.Now().Unix(); early < ends+1 {
		t.Errorf("cut at %d, before %d", early, ends+1)
	}
	g.hear(staying, "still here")
}
