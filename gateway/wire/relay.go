package wire

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
)

// A Relay is the call that another one goes on as within the gateway: of the same
// client, over the same connection and with the same body, to another path and
// perhaps with other header lines. Its Answer is not that call's. It is pooled.
type Relay struct {
	Call
	uri    []byte
	lines  []byte
	fields []Field
}

var relays = sync.Pool{New: func() any { return new(Relay) }}

// Relay returns what the call goes on as, to a path and, behind a question mark, a
// query, which are copied. The caller gives it back with Free, at the latest when the
// answer's stream is closed.
func (call *Call) Relay(uri []byte) *Relay {
	r := relays.Get().(*Relay)
	r.uri = append(r.uri[:0], uri...)
	path, query, _ := bytes.Cut(r.uri, []byte{'?'})
	r.Method, r.Host, r.Path, r.Query, r.target = call.Method, call.Host, path, query, r.uri
	r.Lines, r.Fields, r.names = call.Lines, slices.Clip(call.Fields), call.names
	r.Length, r.Body, r.Stream = call.Length, call.Body, call.Stream
	r.Peer, r.TLS, r.Cert, r.HTTP10, r.Started, r.conn = call.Peer, call.TLS, call.Cert, call.HTTP10, call.Started, call.conn
	r.left = call.left
	return r
}

// Again returns a call that was kept, to be made once more: one over no connection, whose
// client has left once left is set. The kept call stays as it is.
func (call *Call) Again(left *atomic.Bool) *Relay {
	r := call.Relay(nil)
	r.Path, r.Query, r.target = call.Path, call.Query, call.target
	r.Fields = r.fields[:0]
	r.SetLines(call.Lines)
	r.fields = r.Fields
	r.conn, r.left = nil, left
	return r
}

// UntilLeft makes the call one over no connection, whose client has left once left is set.
func (call *Call) UntilLeft(left *atomic.Bool) { call.conn, call.left = nil, left }

// ClientUntil returns a client over no connection, who has left once left is set. Any
// goroutine may use it.
func ClientUntil(left *atomic.Bool) Client { return Client{nil, left} }

// OwnLines returns room for header lines that are passed to UseLines.
func (r *Relay) OwnLines() []byte { return r.lines[:0] }

// UseLines makes lines, which OwnLines began, those of the call.
func (r *Relay) UseLines(lines []byte) {
	r.lines, r.Fields = lines, r.fields[:0]
	r.SetLines(lines)
	r.fields = r.Fields
}

// Free returns the relay to its pool. Nothing that aliases it is used afterwards.
func (r *Relay) Free() {
	if r.ctx != nil {
		r.putCtx()
	}
	uri, lines, fields := r.uri[:0], r.lines[:0], r.fields[:0]
	if cap(uri)+cap(lines) > maxKept {
		uri, lines, fields = nil, nil, nil
	}
	*r = Relay{uri: uri, lines: lines, fields: fields}
	relays.Put(r)
}
