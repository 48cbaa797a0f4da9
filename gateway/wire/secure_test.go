package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// secured is a server with TLS, and what its clients trust.
type secured struct {
	*Server
	addr   string
	trust  *tls.Config
	failed chan error
}

func startTLS(t testing.TB, pending int, timeout time.Duration, conf *tls.Config, h Handler, change ...func(*Config)) *secured {
	t.Helper()
	authority := testenv.NewAuthority(t, "servers")
	server := authority.Server("127.0.0.1")
	conf.Certificates = []tls.Certificate{server.TLS}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limits := testConfig()
	for _, c := range change {
		c(&limits)
	}
	s := &secured{
		Server: newTestServer(limits, h), addr: ln.Addr().String(),
		trust: &tls.Config{RootCAs: authority.Pool()}, failed: make(chan error, 100),
	}
	done := make(chan error, 1)
	go func() {
		done <- s.ServeTLS(ln, &Secure{
			Config: func() *tls.Config { return conf }, Timeout: timeout, Pending: pending,
			Failed: func(_ netip.Addr, err error) { s.failed <- err },
		})
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-done; !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	})
	return s
}

func (s *secured) dial(t testing.TB, conf *tls.Config) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", s.addr, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return c
}

// ask makes one request and returns the body of the answer.
func ask(t testing.TB, c net.Conn) string {
	t.Helper()
	_, _ = io.WriteString(c, getX)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// whoCalls answers with the sum of the client's certificate, after asking the
// certificate what the connection remembers.
var whoCalls = handle(func(call *Call) {
	call.Answer.Status = 200
	call.Answer.Body = []byte("nobody")
	if call.Cert != nil {
		call.Answer.Body = call.Cert.Sum
	}
	if !call.TLS {
		call.Answer.Status = 500
	}
})

// No data follows a handshake that validates a name (RFC 8737, section 3).
func TestAValidationOfANameServesNoRequests(t *testing.T) {
	s := startTLS(t, 10, time.Minute, &tls.Config{NextProtos: []string{"acme-tls/1"}}, whoCalls)
	conf := s.trust.Clone()
	conf.NextProtos = []string{"acme-tls/1"}
	c := s.dial(t, conf)
	if got := c.ConnectionState().NegotiatedProtocol; got != "acme-tls/1" {
		t.Fatalf("negotiated %q", got)
	}
	_, _ = io.WriteString(c, getX)
	if rest, _ := io.ReadAll(c); len(rest) != 0 {
		t.Errorf("answered %q", rest)
	}
	if got := ask(t, s.dial(t, s.trust)); got != "nobody" {
		t.Errorf("the next client gets %q", got)
	}
}

func TestCallsCarryTheCertificateOfTheirConnectionAlsoWhenResumed(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		s := startTLS(t, 10, time.Second, &tls.Config{ClientAuth: tls.RequestClientCert, MaxVersion: version}, whoCalls)
		client := testenv.NewAuthority(t, "clients").Client("me")
		with := s.trust.Clone()
		with.Certificates, with.ClientSessionCache = []tls.Certificate{client.TLS}, tls.NewLRUClientSessionCache(4)
		want := string(NewCertificate([]*x509.Certificate{client.Leaf}).Sum)
		for i := range 3 {
			c := s.dial(t, with)
			if got := ask(t, c) + ask(t, c); got != want+want {
				t.Errorf("%x, connection %d: certificate %s, want %s twice", version, i, got, want)
			}
			if resumed := c.ConnectionState().DidResume; resumed != (i > 0) {
				t.Errorf("%x, connection %d: resumed %t", version, i, resumed)
			}
			_ = c.Close()
		}
		if got := ask(t, s.dial(t, s.trust)); got != "nobody" {
			t.Errorf("%x: without a certificate: %s", version, got)
		}
	}
}

func TestASlowHandshakeHoldsNobodyUpAndEnds(t *testing.T) {
	s := startTLS(t, 10, 3*time.Second, &tls.Config{}, whoCalls)
	slow := dial(t, s.addr)
	_, _ = io.WriteString(slow, "\x16\x03\x01")
	if got := ask(t, s.dial(t, s.trust)); got != "nobody" {
		t.Errorf("beside a slow handshake: %s", got)
	}
	if n, err := slow.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the slow one: %d bytes, %v, want its end", n, err)
	}
	if err := <-s.failed; !isTimeout(err) {
		t.Errorf("told of %v, want that it took too long", err)
	}
	if st := s.Stats(); st.FailedHandshakes != 1 || st.Handshakes != 0 {
		t.Errorf("stats %+v", st)
	}
}

func TestAFloodOfHandshakesThatNeverEndLocksNobodyOut(t *testing.T) {
	const pending = 4
	s := startTLS(t, pending, time.Minute, &tls.Config{}, whoCalls)
	var stuck []*net.TCPConn
	for range 3 * pending {
		stuck = append(stuck, dial(t, s.addr))
	}
	if got := ask(t, s.dial(t, s.trust)); got != "nobody" {
		t.Errorf("within the flood: %s", got)
	}
	for i, c := range stuck[:2*pending] {
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("handshake %d: %d bytes, %v, want its end", i, n, err)
		}
	}
	if now := s.Stats().Handshakes; now > pending {
		t.Errorf("%d handshakes are being made, want at most %d", now, pending)
	}
}

func TestShutdownEndsHandshakes(t *testing.T) {
	s := startTLS(t, 10, time.Minute, &tls.Config{}, whoCalls)
	c := dial(t, s.addr)
	awaitStats(t, s.Server, func(st Stats) bool { return st.Handshakes == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	select {
	case err := <-s.failed:
		t.Errorf("told of %v, which Shutdown brought about", err)
	default:
	}
}

func awaitStats(t testing.TB, s *Server, ok func(Stats) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !ok(s.Stats()); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("stats stay %+v", s.Stats())
		}
	}
}

func TestWhatIsNoHandshakeIsRefused(t *testing.T) {
	s := startTLS(t, 10, 5*time.Second, &tls.Config{}, whoCalls)
	c := dial(t, s.addr)
	_, _ = io.WriteString(c, getX)
	said, _ := io.ReadAll(c)
	if err := <-s.failed; err == nil || !strings.HasPrefix(string(said), "HTTP/1.1 400 ") || !strings.HasSuffix(string(said), "use https\"\n}") {
		t.Errorf("plain HTTP got %q, told of %v", said, err)
	}
	c = dial(t, s.addr)
	_, _ = io.WriteString(c, "\x00\x01\x02\x03\x04\x05")
	if said, _ := io.ReadAll(c); strings.HasPrefix(string(said), "HTTP") {
		t.Errorf("junk got %q", said)
	}
	<-s.failed
	old := s.trust.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if c, err := tls.Dial("tcp", s.addr, old); err == nil {
		c.Close()
		t.Error("TLS 1.1 was spoken")
	} else if !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: the client learns %v, want of the version", err)
	}
	<-s.failed
}

func TestATLSConnectionAboveTheLimitIsClosedWithoutAWord(t *testing.T) {
	s := startTLS(t, 10, time.Minute, &tls.Config{}, whoCalls, func(c *Config) { c.MaxConns = 1 })
	first := s.dial(t, s.trust)
	ask(t, first)
	c := dial(t, s.addr)
	if said, err := io.ReadAll(c); len(said) > 0 {
		t.Errorf("got %q, %v", said, err)
	}
	if st := s.Stats(); st.Refused != 1 {
		t.Errorf("stats %+v", st)
	}
}

func TestACertificateRemembersWhatWasDecided(t *testing.T) {
	c := NewCertificate([]*x509.Certificate{{Raw: []byte("der")}})
	keys := make([]*int, memosKept+1)
	for i := range keys {
		keys[i] = new(int)
		c.Remember(keys[i], i)
	}
	c.Remember(keys[2], "again")
	if got := c.Recall(keys[2]); got != "again" {
		t.Errorf("decided twice: %v", got)
	}
	if got := c.Recall(keys[0]); got != nil {
		t.Errorf("the oldest of too many is still there: %v", got)
	}
	for i := 3; i < len(keys); i++ {
		if got := c.Recall(keys[i]); got != i {
			t.Errorf("%d: %v", i, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.Recall(keys[3]) }); n != 0 {
		t.Errorf("recalling costs %v allocations", n)
	}
}

func BenchmarkTLSRequest(b *testing.B) {
	s := startTLS(b, 10, time.Second, &tls.Config{ClientAuth: tls.RequestClientCert}, whoCalls)
	for _, with := range []string{"without", "with"} {
		b.Run(with, func(b *testing.B) {
			conf := s.trust.Clone()
			if with == "with" {
				conf.Certificates = []tls.Certificate{testenv.NewAuthority(b, "clients").Client("me").TLS}
			}
			c := s.dial(b, conf)
			answer := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := io.WriteString(c, getX); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(answer); err != nil {
					b.Fatal(fmt.Errorf("reading: %w", err))
				}
			}
		})
	}
}
