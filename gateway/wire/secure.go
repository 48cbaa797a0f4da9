package wire

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Secure is how the connections of a listener begin with TLS. All of it but
// Failed is required.
type Secure struct {
	Config  func() *tls.Config               // asked at the beginning of every connection
	Timeout time.Duration                    // for a whole handshake
	Pending int                              // handshakes at a time: for one more, the one that takes longest is ended
	Failed  func(peer netip.Addr, err error) // called for each handshake that failed; nil: not called
}

// ServeTLS is Serve for connections that begin with TLS. A handshake is made on
// the connection's own goroutine: a slow one delays no other.
func (s *Server) ServeTLS(ln net.Listener, secure *Secure) error { return s.accept(ln, secure) }

// Certificate is the certificate that a client presented in the handshake. The client
// has proved that it holds the private key; whether the certificate is trusted is for
// the caller to decide. Only the goroutine that serves the connection uses it.
type Certificate struct {
	Leaf  *x509.Certificate
	Chain []*x509.Certificate // as it was shown, the leaf first
	Sum   []byte              // SHA-256 of the leaf's DER, 64 lower-case hexadecimal digits; not to be changed

	memos [memosKept]memo
	next  int // of memos, to be replaced
}

// A memo is a decision about a certificate; by identifies what made it.
type memo struct{ by, verdict any }

// memosKept is how many decisions a connection remembers: one for each API that
// is called on it, of which there are rarely many.
const memosKept = 4

// NewCertificate returns what a client shows by a chain, which begins with its
// own certificate.
func NewCertificate(chain []*x509.Certificate) *Certificate {
	sum := sha256.Sum256(chain[0].Raw)
	return &Certificate{Leaf: chain[0], Chain: chain, Sum: []byte(hex.EncodeToString(sum[:]))}
}

// Recall returns what by decided about the certificate, or nil when nothing is
// remembered. by is compared as it is: a pointer costs no allocation.
func (c *Certificate) Recall(by any) any {
	for i := range c.memos {
		if c.memos[i].by == by {
			return c.memos[i].verdict
		}
	}
	return nil
}

// Remember keeps what by decided for as long as the connection lasts, or until
// many others have decided something.
func (c *Certificate) Remember(by, verdict any) {
	for i := range c.memos {
		if c.memos[i].by == by {
			c.memos[i].verdict = verdict
			return
		}
	}
	c.memos[c.next] = memo{by, verdict}
	c.next = (c.next + 1) % memosKept
}

// shakes are the handshakes that are being made, the oldest first.
type handshakes struct {
	mu          sync.Mutex
	first, last *handshake
	n           int
}

// A shake is one handshake's place among them. It is taken when the connection is
// accepted, so that those that came first are the oldest.
type handshake struct {
	conn       *conn
	prev, next *handshake
	in         bool
}

// join enters a handshake. The oldest gives way when there are too many: who has
// not come to an end by then, while all others did, is not one to wait for.
func (s *handshakes) join(k *handshake, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n >= most && s.first != nil {
		oldest := s.first
		s.remove(oldest)
		oldest.conn.sock.cut()
	}
	k.prev, k.in = s.last, true
	if s.last != nil {
		s.last.next = k
	} else {
		s.first = k
	}
	s.last = k
	s.n++
}

func (s *handshakes) leave(k *handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(k)
}

// remove needs mu.
func (s *handshakes) remove(k *handshake) {
	if !k.in {
		return
	}
	k.in = false
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		s.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		s.last = k.prev
	}
	k.prev, k.next = nil, nil
	s.n--
}

// handshake makes the handshake of a connection, and reports whether it can be
// served.
func (c *conn) handshake(secure *Secure) bool {
	secured, ok := c.sock.Conn.(*tls.Conn)
	if !ok || secure == nil {
		return true
	}
	err := c.negotiate(secured, secure.Timeout)
	c.srv.handshakes.leave(c.handshaking)
	c.handshaking = nil
	if err != nil {
		c.sayTLS(err)
		if c.srv.failedHandshakes.Add(1); secure.Failed != nil && !c.srv.stopping.Load() {
			secure.Failed(c.peer, err)
		}
		return false
	}
	state := secured.ConnectionState()
	if state.NegotiatedProtocol == validation {
		return false
	}
	if chain := state.PeerCertificates; len(chain) > 0 {
		c.cert = NewCertificate(chain)
	}
	c.since = time.Now()
	return true
}

// validation is the protocol of handshakes that validate a name for ACME. No data follows
// them (RFC 8737, section 3).
const validation = "acme-tls/1"

// negotiate makes the handshake within timeout. Shutdown ends it, as no request has
// been sent yet.
func (c *conn) negotiate(secured *tls.Conn, timeout time.Duration) error {
	c.idle.Store(true) // in the order that goIdle has, for its reason
	if err := c.sock.Conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if c.srv.stopping.Load() {
		return ErrStopped
	}
	err := secured.Handshake()
	c.idle.Store(false)
	if c.srv.stopping.Load() {
		c.srv.letInterrupt()
		return ErrStopped
	}
	if err != nil {
		return err
	}
	return c.sock.Conn.SetDeadline(time.Time{})
}

// sayTLS answers a client that speaks HTTP on a TLS listener, if that needs no
// waiting: a connection that just ends would not explain the failure.
func (c *conn) sayTLS(err error) {
	broken, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || broken.Conn == nil || !isMethod(broken.RecordHeader[:]) {
		return
	}
	_ = broken.Conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = broken.Conn.Write(wantsTLS)
}

// isMethod reports whether the first bytes are the method of a request, which no TLS
// record begins with.
func isMethod(begin []byte) bool {
	for i, c := range begin {
		if c == ' ' {
			return i > 0
		}
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

const wantsTLSBody = "{\n    \"error\": \"this port speaks TLS: use https\"\n}"

var wantsTLS = []byte("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n" +
	"Connection: close\r\nContent-Length: " + strconv.Itoa(len(wantsTLSBody)) + "\r\n\r\n" + wantsTLSBody)
