package upstream

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestFailuresToConnectAreToldApart(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	mute := testenv.RawOrigin(t, func(conn net.Conn, _ int) { _, _ = io.Copy(io.Discard, conn) })
	plain := testenv.RawOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, hello) })
	for _, c := range []struct {
		name, target, reason, text string
		status                     int
		change                     func(g *gate)
	}{
		{"refused", "http://" + closed.Addr().String(), "upstream_connect", textProblem, 502, nil},
		{"no such name", "http://no-such-host.invalid", "upstream_lookup", textLookup, 502, func(g *gate) { g.conf.DialTimeout = time.Second }},
		{"TLS to plain", "https://" + plain, "upstream_tls", textProblem, 502, nil},
		{"TLS without an answer", "https://" + mute, "upstream_tls", textProblem, 502, func(g *gate) { g.conf.DialTimeout = time.Second }},
		{"unknown authority", tlsOrigin(t, func(net.Conn, int) {}), "upstream_tls", textProblem, 502, nil},
		{"timeout", "http://" + mute, "upstream_timeout", textTimeout, 504, func(g *gate) { g.conf.ResponseTimeout = 50 * time.Millisecond }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, c.target, c.change)
			a := g.get("/")
			if a.StatusCode != c.status || a.Header.Get("X-Reason") != c.reason || !strings.Contains(a.body, c.text) {
				t.Errorf("got %v, want %d %s", a, c.status, c.reason)
			}
			wait.Until(t, "the call is recorded", func() bool { return g.last().Address != "" && g.last().Status == 0 })
		})
	}
}

func TestUpstreamIsRecorded(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, hello) }), nil)
	g.get("/")
	wait.Until(t, "the call is recorded", func() bool {
		u := g.last()
		return "http://"+u.Address == g.def.Proxy.TargetURL && u.Status == 200 && u.Duration > 0 && u.Duration < patience && u.Retries == 0
	})
}

func TestFailuresAreLoggedOnceASecond(t *testing.T) {
	var out bytes.Buffer
	l := &failureLog{log: slog.New(slog.NewTextHandler(&out, nil)), api: "shop", address: "127.0.0.1:1"}
	for range 3 {
		l.report(rejectConnect.Reason, io.ErrUnexpectedEOF)
	}
	l.report(ClientGone.Reason, io.EOF)
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "reason=upstream_connect") || !strings.Contains(out.String(), "unexpected EOF") {
		t.Fatalf("logged %q", out.String())
	}
	l.next.Store(0)
	l.report(rejectConnect.Reason, io.EOF)
	if !strings.Contains(out.String(), "unsaid=2") {
		t.Errorf("logged %q", out.String())
	}
}

func TestGuardedAddressesAreNeverCalled(t *testing.T) {
	for address, guarded := range map[string]bool{
		"169.254.169.254:80": true, "[::ffff:169.254.169.254]:80": true, "[fe80::1%eth0]:80": true, "[64:ff9b::169.254.169.254]:80": true, "[fd00:ec2::254]:80": true,
		"100.100.100.200:80": true, "127.0.0.1:80": false, "10.0.0.1:80": false, "[::1]:80": false, "name.test:80": false,
	} {
		if err := reachable.Check(address); (err != nil) != guarded {
			t.Errorf("%s: %v", address, err)
		}
		if err := reachable.Control(t.Context(), "tcp", address, nil); (err != nil) != guarded {
			t.Errorf("dialling %s: %v", address, err)
		}
	}
	pools := NewPools()
	defer pools.Close()
	_, err := Compile(&definition.API{Proxy: definition.Proxy{TargetURL: "http://169.254.169.254/latest"}}, pools, testConfig())
	if err == nil || !strings.Contains(err.Error(), "proxy.target_url") {
		t.Errorf("compiled: %v", err)
	}
	p := newPool(poolKey{address: "169.254.169.254:80"}, nil, time.Now())
	if _, _, err := p.connect(t.Context(), time.Now().Add(time.Second)); err == nil || !strings.Contains(err.Error(), dialguard.ErrNever.Error()) {
		t.Errorf("dialled: %v", err)
	}
}

func TestAllAddressesOfANameAreTried(t *testing.T) {
	addr := testenv.RawOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, hello) })
	_, port, _ := net.SplitHostPort(addr)
	// localhost is ::1 and 127.0.0.1 where both are known; the upstream listens on one.
	g := newGate(t, "http://localhost:"+port, nil)
	if a := g.get("/"); a.StatusCode != 200 {
		t.Errorf("got %v", a)
	}
}

func TestTLSToUpstreams(t *testing.T) {
	ca := authority(t)
	names := make(chan string, 10)
	secure := func(change func(c *tls.Config)) string {
		conf := &tls.Config{Certificates: []tls.Certificate{ca.server}, ClientCAs: ca.roots, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			names <- h.ServerName
			return nil, nil
		}}
		if change != nil {
			change(conf)
		}
		return testenv.RawOrigin(t, func(conn net.Conn, _ int) {
			s := tls.Server(conn, conf)
			who := "nobody"
			if s.Handshake() != nil {
				return
			}
			if certs := s.ConnectionState().PeerCertificates; len(certs) > 0 {
				who = certs[0].Subject.CommonName
			}
			for br := bufio.NewReader(s); readRequest(br) != ""; {
				_, _ = io.WriteString(s, ok+"Content-Length: "+string(rune('0'+len(who)))+"\r\n\r\n"+who)
			}
		})
	}
	any := secure(nil)
	demanding := secure(func(c *tls.Config) { c.ClientAuth = tls.RequireAndVerifyClientCert })
	old := secure(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	for _, c := range []struct {
		name, addr string
		own        definition.Transport
		certs      map[string]string
		body       string // "": it fails
		sni        string
	}{
		{"authority of the API", any, definition.Transport{CAFile: ca.file}, nil, "nobody", ""},
		{"no authority", any, definition.Transport{}, nil, "", ""},
		{"verification off", any, definition.Transport{InsecureSkipVerify: true}, nil, "nobody", ""},
		{"server name", any, definition.Transport{CAFile: ca.file, ServerName: "upstream.test"}, nil, "nobody", "upstream.test"},
		{"server name that is not the server's", any, definition.Transport{CAFile: ca.file, ServerName: "other.test"}, nil, "", "other.test"},
		{"client certificate", demanding, definition.Transport{CAFile: ca.file, CertificateFile: ca.certFile, KeyFile: ca.keyFile}, nil, "test", ""},
		{"client certificate for every host", demanding, definition.Transport{CAFile: ca.file}, map[string]string{"*": ca.clientFile}, "test", ""},
		{"client certificate for the host", demanding, definition.Transport{CAFile: ca.file}, map[string]string{"127.0.0.1": ca.clientFile, "*": "/nowhere"}, "test", ""},
		{"client certificate for host and port", demanding, definition.Transport{CAFile: ca.file}, map[string]string{demanding: ca.clientFile, "127.0.0.1": "/nowhere"}, "test", ""},
		{"client certificate missing", demanding, definition.Transport{CAFile: ca.file}, nil, "", ""},
		{"TLS 1.2", old, definition.Transport{CAFile: ca.file}, nil, "nobody", ""},
		{"TLS 1.2 is too old", old, definition.Transport{CAFile: ca.file, MinVersion: "1.3"}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, "https://"+c.addr, func(g *gate) {
				g.def.Proxy.Transport, g.def.UpstreamCertificates = &c.own, c.certs
			})
			cl := g.dial()
			for range 2 {
				a := cl.get("/")
				if c.body == "" {
					// TLS 1.3 refuses a client's certificate after the handshake.
					if a.StatusCode != 502 || !strings.HasPrefix(a.Header.Get("X-Reason"), "upstream_") {
						t.Errorf("got %v", a)
					}
				} else if a.StatusCode != 200 || a.body != c.body {
					t.Errorf("got %v, want %s", a, c.body)
				}
			}
			if got := <-names; got != c.sni {
				t.Errorf("server name %q, want %q", got, c.sni)
			}
			for len(names) > 0 {
				<-names
			}
		})
	}
}

func TestBadFilesAreNamedWhenCompiled(t *testing.T) {
	ca := authority(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		own   definition.Transport
		certs map[string]string
		root  string
		want  string
	}{
		{"no roots file", definition.Transport{CAFile: "/nowhere.pem"}, nil, "", "proxy.transport.ssl_ca_file: stat /nowhere.pem"},
		{"no roots in it", definition.Transport{CAFile: empty}, nil, "", "proxy.transport.ssl_ca_file: " + empty + " holds no certificate"},
		{"gateway's roots", definition.Transport{}, nil, "/nowhere.pem", "upstream.ca_file: "},
		{"no certificate", definition.Transport{CertificateFile: "/nowhere.crt", KeyFile: ca.keyFile}, nil, "", "proxy.transport.ssl_certificate_file: "},
		{"no key", definition.Transport{CertificateFile: ca.certFile, KeyFile: "/nowhere.key"}, nil, "", "proxy.transport.ssl_key_file: "},
		{"key left out", definition.Transport{CertificateFile: ca.certFile}, nil, "", "proxy.transport.ssl_key_file: is missing"},
		{"certificate left out", definition.Transport{KeyFile: ca.keyFile}, nil, "", "proxy.transport.ssl_certificate_file: is missing"},
		{"not a pair", definition.Transport{CertificateFile: ca.file, KeyFile: ca.keyFile}, nil, "", "proxy.transport.ssl_certificate_file: "},
		{"certificate id", definition.Transport{}, map[string]string{"*": "cert-1"}, "", `upstream_certificates["*"]: open cert-1`},
		{"version", definition.Transport{MinVersion: "1.1"}, nil, "", "proxy.transport.ssl_min_version: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			pools := NewPools()
			defer pools.Close()
			conf := testConfig()
			conf.CAFile = c.root
			def := &definition.API{Proxy: definition.Proxy{TargetURL: "https://127.0.0.1", Transport: &c.own}, UpstreamCertificates: c.certs}
			if _, err := Compile(def, pools, conf); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s…", err, c.want)
			}
		})
	}
}

// TestPoolsAreSharedWhereNothingTellsThemApart compiles pairs of definitions.
func TestPoolsAreSharedWhereNothingTellsThemApart(t *testing.T) {
	ca := authority(t)
	api := func(target string, own definition.Transport) *definition.API {
		return &definition.API{Proxy: definition.Proxy{TargetURL: target, Transport: &own}}
	}
	for _, c := range []struct {
		name string
		a, b *definition.API
		same bool
	}{
		{"paths", api("http://one.test/a", definition.Transport{}), api("http://one.test/b", definition.Transport{}), true},
		{"timeouts", api("http://one.test", definition.Transport{ResponseTimeout: 1}), api("http://one.test", definition.Transport{ResponseTimeout: 2}), true},
		{"ports", api("http://one.test", definition.Transport{}), api("http://one.test:81", definition.Transport{}), false},
		{"schemes", api("http://one.test:443", definition.Transport{}), api("https://one.test", definition.Transport{}), false},
		{"limits", api("http://one.test", definition.Transport{MaxConns: 1}), api("http://one.test", definition.Transport{}), false},
		{"reuse", api("http://one.test", definition.Transport{Reuse: new(bool)}), api("http://one.test", definition.Transport{}), false},
		{"equal TLS", api("https://one.test/a", definition.Transport{CAFile: ca.file}), api("https://one.test/b", definition.Transport{CAFile: ca.file}), true},
		{"roots", api("https://one.test", definition.Transport{CAFile: ca.file}), api("https://one.test", definition.Transport{}), false},
		{"verification", api("https://one.test", definition.Transport{InsecureSkipVerify: true}), api("https://one.test", definition.Transport{}), false},
		{"client certificate", api("https://one.test", definition.Transport{CertificateFile: ca.certFile, KeyFile: ca.keyFile}), api("https://one.test", definition.Transport{}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pools := NewPools()
			defer pools.Close()
			var got [2]*pool
			for i, def := range []*definition.API{c.a, c.b} {
				stage, err := Compile(def, pools, testConfig())
				if err != nil {
					t.Fatal(err)
				}
				got[i] = stage.(*forward).pool
			}
			if (got[0] == got[1]) != c.same {
				t.Errorf("one pool: %t, want %t", got[0] == got[1], c.same)
			}
		})
	}
}
