package bench

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/gateway/certs"
	"github.com/sluicegate/sluice/gateway/wire"
	shown "github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// secureCases are requests over TLS on one connection. The first is what the
// others are compared with.
var secureCases = []struct{ name, path, key string }{
	{"token", "/plain/x", "plain"},
	{"mutual TLS and a token", "/mutual/x", "plain"},
	{"a certificate as a token", "/certificate/x", ""},
	{"a bound key", "/plain/x", "bound"},
}

// secureWorld is a world with a listener for TLS, and a client of it that shows a
// certificate.
type secureWorld struct {
	*world
	secure *listener
	client *tls.Config
	keys   map[string]string
}

func newSecureWorld(tb testing.TB) *secureWorld {
	tb.Helper()
	servers, clients := testenv.NewAuthority(tb, "servers"), testenv.NewAuthority(tb, "clients")
	me, site := clients.Client("me"), servers.Server("gate.test")
	sum := shown.SumOf(me.Leaf.Raw)
	w := &secureWorld{
		world: newWorld(tb, settings{}), secure: newListener(), keys: make(map[string]string),
		client: &tls.Config{RootCAs: servers.Pool(), ServerName: "gate.test", Certificates: []tls.Certificate{me.TLS}},
	}
	dir := tb.TempDir()
	authority, cert := filepath.Join(dir, "clients.pem"), filepath.Join(dir, "site.pem")
	for path, text := range map[string]string{authority: clients.PEM(), cert: site.CertPEM + site.KeyPEM} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	at := origin(tb)
	api := func(id string) *definition.API {
		a := &definition.API{ID: id, OrgID: "bench", Proxy: definition.Proxy{ListenPath: "/" + id + "/", TargetURL: at, StripListenPath: true}}
		w.add(a)
		return a
	}
	api("plain")
	mutual := api("mutual")
	mutual.UseMutualTLS, mutual.ClientCertificates = true, []string{authority}
	api("certificate").Auth = &definition.Auth{UseCertificate: true}
	w.apply()
	all := map[string]*definition.Access{}
	for _, id := range []string{"plain", "mutual", "certificate"} {
		all[id] = rights(id)[id]
	}
	w.keys["plain"] = w.key(&definition.Session{OrgID: "bench", Limits: none, AccessRights: all})
	w.keys["bound"] = w.key(&definition.Session{OrgID: "bench", Limits: none, AccessRights: all, Extra: &definition.Extra{CertificateBindings: []string{sum}}})
	own := &definition.Session{OrgID: "bench", Limits: none, AccessRights: all, Extra: &definition.Extra{Certificate: "bench" + sum}}
	w.Put("bench"+sum, own)
	server, err := certs.NewServer(certs.ServerOptions{
		Files: []shown.Pair{{Cert: cert}}, AlwaysAsk: true, MinVersion: tls.VersionTLS12, Store: new(certs.Store), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- w.ServeTLS(w.secure, &wire.Secure{Config: server.Config, Timeout: 10 * time.Second, Pending: 10})
	}()
	tb.Cleanup(func() { // before the world's end
		_ = w.secure.Close()
		if err := <-done; err != nil && !errors.Is(err, wire.ErrStopped) && !errors.Is(err, net.ErrClosed) {
			tb.Errorf("TLS listener: %v", err)
		}
	})
	return w
}

// round returns a round of a case, after the first.
func (w *secureWorld) round(tb testing.TB, path, key string) func() {
	tb.Helper()
	r := request{path: path, key: key, status: 200}
	conn := tls.Client(w.secure.dial(), w.client)
	tb.Cleanup(func() { _ = conn.Close() })
	c, sent, want := &client{tb: tb, conn: conn, reads: answer.NewReader(conn)}, r.bytes(w.keys), r.want()
	for range 500 {
		c.round(sent, want)
	}
	return func() { c.round(sent, want) }
}

// TestCertificatesCostNothingBesideTokens counts client and TLS along, which
// allocate a little of their own in every case.
func TestCertificatesCostNothingBesideTokens(t *testing.T) {
	if race.Enabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	w := newSecureWorld(t)
	token := 0.0
	for i, c := range secureCases {
		n := allocations(w.round(t, c.path, c.key))
		t.Logf("%s: %.3f allocations per request, of client, TLS and gateway together", c.name, n)
		if i == 0 {
			token = n
		} else if n > token+slack {
			t.Errorf("%s: %.3f allocations more than with a token", c.name, n-token)
		}
	}
}

func BenchmarkSecure(b *testing.B) {
	w := newSecureWorld(b)
	for _, c := range secureCases {
		b.Run(c.name, func(b *testing.B) {
			round := w.round(b, c.path, c.key)
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
		})
	}
}
