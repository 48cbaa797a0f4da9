package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

// server is an admin or a gateway with responses of a test.
type server struct {
	*httptest.Server
	answers map[string]string
	clock   time.Duration // how far it is ahead
}

func newServer(t *testing.T, answers map[string]string) *server {
	t.Helper()
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := s.answers[r.URL.Path]
		w.Header().Set("Date", time.Now().Add(s.clock).UTC().Format(http.TimeFormat))
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) Base() string { return s.URL }

func (s *server) Call(_ context.Context, _, path string, _ any) ([]byte, error) {
	path, _, _ = strings.Cut(path, "?")
	if answer, ok := s.answers[path]; ok {
		return []byte(answer), nil
	}
	return nil, errors.New(path + " is not there")
}

func (d *Doctor) wants(t *testing.T, lines ...string) {
	t.Helper()
	var all strings.Builder
	for _, f := range d.Examine(t.Context()) {
		if f.State != OK && f.Remedy == "" {
			t.Errorf("%s has no remedy", f.Check)
		}
		all.WriteString(string(f.State) + " " + f.Check + ": " + f.Detail + "\n")
	}
	for _, line := range lines {
		if !strings.Contains(all.String(), line) {
			t.Errorf("lacks %q:\n%s", line, all.String())
		}
	}
}

func newDoctor(t *testing.T) *Doctor {
	return &Doctor{Config: &config.Config{DataDir: t.TempDir()}, Now: time.Now}
}

func TestAPortalBesideAPublicAdminIsWarnedOf(t *testing.T) {
	for listen, warned := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "[::1]:0": false, ":0": true, "192.0.2.1:0": true} {
		d := newDoctor(t)
		d.Config.Admin.Listen = listen
		d.portal()
		if got := len(d.found) == 1 && d.found[0].Check == "portal.listen" && d.found[0].State == Warn; got != warned {
			t.Errorf("admin.listen %s: %v", listen, d.found)
		}
		d.Config.Portal.Listen, d.found = "127.0.0.1:0", nil
		if d.portal(); len(d.found) > 0 {
			t.Errorf("apart: %v", d.found)
		}
	}
}

func TestServersAreLookedAt(t *testing.T) {
	long := time.Now().Add(time.Hour * 24 * 365).Format(time.RFC3339)
	past, now := time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Format(time.RFC3339)
	admin := newServer(t, map[string]string{
		"/readyz":       "{}",
		"/api/gateways": `{"revision":"7","gateways":[{"name":"a","revision":"7","up_to_date":true,"seen_at":"` + now + `"},{"name":"b","error":"no such file","seen_at":"` + now + `"},{"name":"c","seen_at":"` + past + `"}]}`,
		"/api/certs":    `{"certificates":[{"subject":"CN=old","not_after":"` + past + `"},{"subject":"CN=new","not_after":"` + long + `"}]}`,
		"/api/acme": `{"certificates":[{"domain":"good.example","not_before":"` + past + `","not_after":"` + long + `"},` +
			`{"domain":"bad.example","failures":2,"error":"no route","next_try":"2026-11-28T10:00:00Z"},` +
			`{"domain":"old.example","not_before":"` + past + `","not_after":"` + long + `","failures":1,"error":"refused","next_try":"2026-11-28T10:00:00Z"}]}`,
		"/api/apis": `{"apis":[{"api_id":"plain"},{"api_id":"q","api_definition":{"graphql":{"enabled":true}}}]}`,
		"/api/usage": `{"Data":[{"api_id":"good","status":200,"hits":99},{"api_id":"good","status":404,"hits":50},{"api_id":"good","status":503,"reason":"overloaded","hits":1},` +
			`{"api_id":"bad","status":200,"hits":10},{"api_id":"bad","status":502,"reason":"upstream_connect","hits":80},{"api_id":"bad","status":500,"hits":10},` +
			`{"api_id":"some","status":200,"hits":90},{"api_id":"some","status":504,"reason":"upstream_timeout","hits":10},{"api_id":"few","status":502,"hits":4}]}`,
		"/api/keys/legacy_hashes":   `{"keys":3,"by_hash":{"murmur64":2,"murmur32":1},"legacy_hashes":["murmur32","murmur64"]}`,
		"/api/apis/q/schema/status": `{"last_sync_error":"upstream answers 500"}`,
	})
	gateway := newServer(t, map[string]string{"/hello": `{"details":{"keys":{"status":"pass"},"counters":{"status":"fail","output":"unreachable"}}}`})
	gateway.clock = time.Minute
	d := newDoctor(t)
	d.Admin, d.Gateway = admin, gateway.URL
	d.wants(t, "ok admin: ", "ok clock of the admin", "ok gateway a: serves revision 7", "fail gateway b: does not serve revision 7 as written: no such file", "warn gateway c: was last heard of 1h",
		"fail certificate: CN=old", "ok certificate: CN=new", "warn schema of q: could not be fetched: upstream answers 500",
		"ok ACME certificate: good.example", "fail ACME certificate of bad.example: there is none; 2 attempts failed: no route", "warn ACME certificate of old.example: the one in use ends on ",
		"ok calls of good: 1 of 150 failed in the last 15 minutes, most with 503 overloaded\n", "fail calls of bad: 90 of 100 failed in the last 15 minutes, most with 502 upstream_connect\n",
		"warn calls of some: 10 of 100 failed in the last 15 minutes, most with 504 upstream_timeout\n",
		"warn legacy hashes: 1 under murmur32, 2 under murmur64; a token with the same hash",
		"ok gateway: keys", "fail gateway: counters: unreachable", "fail clock of the gateway: ")
	delete(admin.answers, "/readyz")
	d.found = nil
	d.wants(t, "fail admin: "+admin.URL+" answers 503")
	admin.Close()
	gateway.Close()
	d.found = nil
	d.wants(t, "fail admin: "+admin.URL+" cannot be reached", "warn gateway: "+gateway.URL+" cannot be reached")
	if Worst(d.found) != Fail || Worst(nil) != OK || Worst([]Finding{{State: Warn}, {State: OK}}) != Warn {
		t.Error("the worst is another")
	}
}

func TestAGatewayWithTLSAloneIsLookedAt(t *testing.T) {
	for auth, want := range map[tls.ClientAuthType][]string{
		tls.NoClientCert:         {" answers\n", "ok gateway: keys"},
		tls.RequireAnyClientCert: {" answers, and requires a client certificate\n"},
	} {
		gateway := newServer(t, map[string]string{"/hello": `{"details":{"keys":{"status":"pass"}}}`})
		encrypted := httptest.NewUnstartedServer(gateway.Config.Handler)
		encrypted.TLS = &tls.Config{ClientAuth: auth}
		encrypted.StartTLS()
		t.Cleanup(encrypted.Close)
		d := newDoctor(t)
		d.Gateway, d.ToGateway = encrypted.URL, encrypted.Client().Transport
		d.Config.Gateway.TLS.Listen = encrypted.Listener.Addr().String()
		want[0] = "ok gateway: " + encrypted.URL + want[0]
		d.wants(t, want...)
		if Worst(d.found) == Fail {
			t.Errorf("%v", d.found)
		}
	}
}

func certificate(t *testing.T, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cert.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTheMachineIsLookedAt(t *testing.T) {
	d := newDoctor(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d.Config.Gateway.Listen, d.Config.Admin.Listen = taken.Addr().String(), "127.0.0.1:0"
	d.Config.Gateway.TLS.Cert = certificate(t, time.Now().Add(72*time.Hour))
	d.Config.Gateway.TLS.Certificates = []string{certificate(t, time.Now().Add(-time.Hour)), "/nowhere/x.pem"}
	d.Config.Gateway.TLS.ClientCA = certificate(t, time.Now().Add(time.Hour))
	d.Config.Gateway.AdminURL = "http://127.0.0.1:1"
	d.wants(t, "fail gateway.listen: "+taken.Addr().String(), "ok admin.listen", "warn gateway.tls.cert: "+d.Config.Gateway.TLS.Cert+" ends in 2 days",
		"fail gateway.tls.certificates: "+d.Config.Gateway.TLS.Certificates[0]+" ended on", "fail gateway.tls.certificates: /nowhere/x.pem: no such file",
		"ok gateway.tls.client_ca", "warn last good: ", "is not there", "open files: at most", "disk: ")
	if err := os.WriteFile(filepath.Join(d.Config.DataDir, "last-good.sealed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.found, d.Config.DataDir = nil, d.Config.DataDir+"/"
	d.wants(t, "ok last good: written")
}

// The admin of a gateway is called as the gateway calls it.
func TestTheAdminOfAGatewayIsAsked(t *testing.T) {
	authority := testenv.NewAuthority(t, "private")
	ca, other := filepath.Join(t.TempDir(), "authority.crt"), filepath.Join(t.TempDir(), "other.crt")
	for path, text := range map[string]string{ca: authority.PEM(), other: testenv.NewAuthority(t, "other").PEM()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ready := http.StatusOK
	admin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(ready)
	}))
	admin.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Server("127.0.0.1").TLS}}
	admin.StartTLS()
	t.Cleanup(admin.Close)
	for _, c := range []struct {
		ca, want string
		ready    int
	}{
		{ca, "ok gateway.admin_url: " + admin.URL + " is ready", http.StatusOK},
		{ca, "fail gateway.admin_url: " + admin.URL + " answers 503", http.StatusServiceUnavailable},
		{other, "fail gateway.admin_url: " + admin.URL + " cannot be reached: ", http.StatusOK},
		{"/nowhere.crt", "fail gateway.admin_url: not asked: ", http.StatusOK},
	} {
		ready = c.ready
		d := newDoctor(t)
		d.Config.Gateway.AdminURL, d.Config.Gateway.AdminCA = admin.URL, c.ca
		d.wants(t, c.want)
	}
	admin.Close()
	d := newDoctor(t)
	d.Config.Gateway.AdminURL, d.Config.Gateway.AdminCA = admin.URL, ca
	d.wants(t, "fail gateway.admin_url: "+admin.URL+" cannot be reached: ")
}

func TestTheClockOfTheStoreIsCompared(t *testing.T) {
	store := testenv.Valkey(t, "--requirepass", "pw")
	for _, c := range []struct {
		password, want string
		ago            time.Duration
	}{
		{"pw", "ok store: ", 0},
		{"pw", "fail clock of the store", time.Hour},
		{"other", "fail store: ", 0},
	} {
		d := newDoctor(t)
		d.Now = func() time.Time { return time.Now().Add(-c.ago) }
		d.Config.Valkey.URL = secret.New("redis://:" + c.password + "@" + store.Addr)
		d.wants(t, c.want)
	}
	d := newDoctor(t)
	d.Config.Valkey.URL = secret.New("redis://127.0.0.1:1")
	d.wants(t, "fail store: 127.0.0.1:1: ")
	d = newDoctor(t)
	d.Config.Valkey.URL = secret.New("rediss://127.0.0.1:1")
	d.wants(t, "ok store: uses TLS")
}
