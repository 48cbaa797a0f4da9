// Package wire is HTTP/1.1 on client connections: it accepts them within
// limits, frames requests strictly, hands them to a handler, and writes answers.
//
// It is used for traffic in place of fasthttp's server, which accepts a transfer
// coding beside a length, serves what an early answer left unread of a body as
// further requests, and holds its read buffer on every idle connection once bodies
// are streamed. Handlers written for fasthttp can have the request in its form.
//
// An idle connection holds no buffers. A request takes them from a pool, and its
// head and small body stay where they were received. On plain TCP a connection
// waits, reads and answers within one wait of the poller (see inline.go); requests
// that do not come at once as a whole, and connections with TLS, are read by
// ordinary means, with the same result.
package wire

import (
	"io"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Config sets a server's limits. All of it but Proxies is required.
type Config struct {
	MaxHeader     int           // bytes of one request head, at least 1 KiB; more is 431
	MaxURL        int           // bytes of the request target; more is 414
	MaxHeaders    int           // header lines of one request; more is 431
	MaxBody       int64         // bytes of one request body; more is 413
	ReadTimeout   time.Duration // for a whole head; for a body, plus a second for each KiB received
	WriteTimeout  time.Duration // for the client to take each piece of an answer
	IdleTimeout   time.Duration // between two requests
	MaxConns      int           // open connections; 0: as many as the process may have
	MaxConnsPerIP int           // open connections of one address; 0: as many as MaxConns

	Proxies []netip.Prefix // whose connections begin with a header of the PROXY protocol; nil: none
}

// A Handler answers one call. The call and all it reaches are the server's
// again once the handler has returned.
type Handler interface {
	// Handle fills call.Answer, or the response of call.Ctx when it leaves the
	// answer unused.
	Handle(call *Call)

	// Refuse writes the answer to what could not be read as a request, in one of
	// the two ways. Of the call only Peer, TLS, HTTP10, Started and IsHead are
	// certain. The connection ends after it.
	Refuse(call *Call, fault *Fault)
}

// Call is one request and its answer.
type Call struct {
	Method []byte
	Host   []byte // effective host as the client wrote it, with port
	Path   []byte // path as the client wrote it; starts with "/", or is "*"
	Query  []byte // what follows "?", without it

	// Lines are all header lines as the client wrote them, each ended by CRLF.
	// They were checked: every name is a token, right before its colon, and no
	// value has a control character but tabs. Fields has one entry for each.
	// Both stay as they are until the handler has returned, whatever is read of
	// the body.
	Lines  []byte
	Fields []Field

	Length int64     // of the body as announced; -1: chunked
	Body   []byte    // the body when it is at hand as a whole
	Stream io.Reader // the body when it is not; else nil

	Peer    netip.Addr // address of the other end, unmapped
	TLS     bool
	Cert    *Certificate // that the client showed with TLS; nil: none
	HTTP10  bool         // the client speaks HTTP/1.0
	Started time.Time
	Answer  Answer

	used   bool         // there is something to forget
	names  uint32       // bits of the names in Fields
	ended  time.Time    // zero: End has not been called
	target []byte       // as the client wrote it
	conn   *conn        // nil: it came over none
	left   *atomic.Bool // set when the client of a call that came over no connection has left; nil: it cannot
	ctx    *fasthttp.RequestCtx
}
