package upstream

import (
	"bytes"
	"net"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
)

// upgrades reports whether an Upgrade is forwarded: the client's, or that of a
// subscription on a GraphQL connection. It must be one line on a
// GET without a body, and not name a version of HTTP: requests in that would bypass
// every rule.
func (f *forward) upgrades(s *forwarded, ex *pipeline.Exchange) bool {
	if s.upgrade == nil || !f.upgrade && (ex.Live == nil || !ex.Live.Streamed.Upgrade) {
		return false
	}
	call, out := ex.Call, &ex.Outgoing
	if s.upgradeTwice || call.HTTP10 || call.HasBody() || out.HasBody || out.Post || string(call.Method) != "GET" {
		return false
	}
	return s.connection.Holds(nameUpgrade) && http1.IsUpgradable(s.upgrade)
}

// joins reports whether a connection to the upstream that serves already takes the
// subscription of an exchange, whose request is in ex.Buf.
func (f *forward) joins(ex *pipeline.Exchange) bool {
	live := ex.Live
	if live == nil || live.Upstreams == nil || !live.Streamed.Many() {
		return false
	}
	if body, streamed := bodyOf(ex); streamed || len(body) > maxGather {
		return false // it is not in ex.Buf
	}
	key := append([]byte(f.target.Address), 0)
	if f.target.TLS {
		key = append(key, f.identity[:]...)
	}
	key = append(key, bytes.Replace(ex.Buf, live.Streamed.Nonce, nil, 1)...)
	if live.Joined = live.Upstreams.Join(key); live.Joined {
		a := ex.Answer
		a.Status, a.NoBody, a.Length = 200, true, -1
		if live.Streamed.Upgrade {
			a.Status = 101
		}
	}
	return live.Joined
}

// clientOf returns whose leaving ends the wait for the head of an answer. Others may wait for
// the connection of a subscription.
func clientOf(ex *pipeline.Exchange) wire.Client {
	if live := ex.Live; live != nil && live.Events && live.Streamed.Upgrade {
		return wire.Client{}
	}
	return ex.Call.Client()
}

var nameUpgrade = []byte("upgrade")

// appendUpgrade appends the Connection and Upgrade lines of a request or an answer.
func appendUpgrade(dst, protocols []byte) []byte {
	return appendLine(append(dst, "Connection: Upgrade\r\n"...), "Upgrade: ", protocols)
}

// switchProtocols makes the answer by which client and upstream leave HTTP, and
// has what follows passed on between them.
func (t *try) switchProtocols(c *conn) error {
	if len(t.head.upgrade) == 0 || !http1.Lists(t.upgrade, t.head.upgrade) {
		return malformed("101 Switching Protocols, to one that was not asked for")
	}
	a, idle := t.ex.Answer, t.f.tunnelIdle
	a.Status, a.NoBody, a.Length = t.head.status, true, -1
	a.Lines = appendUpgrade(a.Lines, t.head.upgrade)
	first := bytes.Clone(c.buf[c.r:c.w])
	c.releaseBuffer()
	if live := t.ex.Live; live != nil {
		live.Upstream = &taken{Conn: c.sock, conn: c, first: first}
		return c.sock.SetDeadline(time.Time{})
	}
	a.Takeover = func(client net.Conn, received []byte) {
		defer c.drop()
		if client != nil {
			http1.Tunnel(client, c.sock, [2][]byte{first, received}, idle)
		}
	}
	return nil
}

// taken is a connection that speaks another protocol than HTTP.
type taken struct {
	net.Conn
	conn  *conn
	first []byte // read already
	once  sync.Once
}

// Read implements net.Conn.
func (t *taken) Read(p []byte) (int, error) {
	if len(t.first) == 0 {
		return t.Conn.Read(p)
	}
	n := copy(p, t.first)
	t.first = t.first[n:]
	return n, nil
}

// Close implements net.Conn.
func (t *taken) Close() error {
	t.once.Do(t.conn.drop)
	return nil
}
