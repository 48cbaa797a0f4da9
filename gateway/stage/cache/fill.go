package cache

import (
	"bytes"
	"io"
	"slices"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// CompileFill returns the stage that caches responses of the upstream, or nil when the
// API caches none. It runs before the stages that change responses: those run for
// cached responses as well.
func (c *Cache) CompileFill(def *definition.API) pipeline.Stage {
	if !def.CacheOptions.On() || c.opts.MaxBytes == 0 {
		return nil
	}
	return fill{}
}

type fill struct{}

// Handle caches the response if it is cacheable.
func (fill) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	c, ok := ex.Awaited.(*sharedCall)
	if !ok {
		return pipeline.Next
	}
	a := ex.Answer
	now := c.stage.cache.now(ex.Started) // a response is as old as its request (RFC 9111, section 4.2.3)
	var p promise
	p.read(a.Lines[c.lines:], c.stage.ttlHeader)
	lifetime := c.lifetime(ex, &p)
	switch {
	case lifetime <= 0 && a.Status < 500:
		c.decline(now)
	case lifetime > 0:
		c.take(ex, &p, now, lifetime)
	}
	a.Lines = append(a.Lines, "X-Cache: miss\r\n"...)
	return pipeline.Next
}

// take caches the response, at once or while it is forwarded. A client that has it
// already gets 304: its condition was not sent upstream.
func (c *sharedCall) take(ex *pipeline.Exchange, p *promise, now, lifetime time.Duration) {
	a := ex.Answer
	e := &answer{
		status: a.Status, lines: p.kept(a.Lines[c.lines:]), expires: now + lifetime, born: now - p.age,
	}
	e.etag, e.modified = p.within(e.lines)
	key := appendVary([]byte(c.key[:c.base]), ex.Call, p.vary)
	switch most := c.stage.cache.most(len(key) + len(e.lines)); {
	case a.Stream != nil:
		ex.Awaited = nil // it ends with the stream
		e.body = make([]byte, 0, max(0, a.Length))
		a.Stream = &tee{ReadCloser: a.Stream, call: c, entry: e, key: key, vary: p.vary, most: most, now: now}
		return
	case len(a.Body) > most:
		c.decline(now)
	default:
		e.body = bytes.Clone(a.Body)
		c.keep(e, key, p.vary)
	}
	if a.Status == 200 && isCurrent(ex.Call, e.etag, e.modified) {
		notModified(a)
	}
}

// most returns the largest body in bytes that is cached, with beside bytes of key and
// header lines.
func (c *Cache) most(beside int) int {
	return min(c.opts.MaxBody, c.kept.Largest(0)-beside-answerSize)
}

// lifetime returns how long a response may be cached, 0 for not at all.
func (c *sharedCall) lifetime(ex *pipeline.Exchange, p *promise) time.Duration {
	a, s := ex.Answer, c.stage
	switch {
	case a.Status != ex.Upstream.Status || a.Takeover != nil || !slices.Contains(c.rule.codes, a.Status):
		return 0
	case a.NoBody && a.Status != 204, a.Stream != nil && a.Length > int64(s.cache.opts.MaxBody):
		return 0
	case p.forbidden, p.events, len(c.key) > maxKey:
		return 0
	case ex.Child != nil && s.next(ex) == nil: // the cache key does not hold what that API's response depends on
		return 0
	case s.opts.Shared && !p.public && hasCredentials(ex):
		return 0
	}
	said, ok := p.lifetime()
	lifetime := c.rule.lifetime
	switch {
	case ok && s.opts.Upstream:
		lifetime = said
	case s.opts.Upstream && !p.keep:
		return 0
	case ok:
		lifetime = min(lifetime, said)
	}
	return lifetime - p.age
}

// maxKey is the longest cache key without the headers of Vary, in bytes.
const maxKey = 8 << 10

// hasCredentials reports whether the upstream received credentials: its response may
// then be shared only if it says so (RFC 9111, section 3.5).
func hasCredentials(ex *pipeline.Exchange) bool {
	return sent(ex, wire.NameAuthorization, "Authorization") || sent(ex, wire.NameCookie, "Cookie")
}

// sent reports whether a header of the client was forwarded.
func sent(ex *pipeline.Exchange, name wire.Name, canonical string) bool {
	return ex.Call.Find(name) != nil && !slices.Contains(ex.Outgoing.Drop, canonical)
}

// tee copies a body while it is forwarded, and caches it at its end unless it is too
// large.
type tee struct {
	io.ReadCloser
	call  *sharedCall
	entry *answer
	key   []byte
	vary  []string
	most  int
	now   time.Duration // when the head was received
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if t.call == nil {
		return n, err
	}
	if len(t.entry.body)+n > t.most {
		t.call.decline(t.now)
		t.call, t.entry = nil, nil
		return n, err
	}
	t.entry.body = append(t.entry.body, p[:n]...)
	switch err {
	case nil:
	case io.EOF:
		t.entry.body = bytes.Clone(t.entry.body) // without spare capacity
		t.call.keep(t.entry, t.key, t.vary)
		t.call = nil
	default:
		t.giveUp()
	}
	return n, err
}

// Close implements io.Closer.
func (t *tee) Close() error {
	t.giveUp()
	return t.ReadCloser.Close()
}

// giveUp ends the call of a response that was not read to its end.
func (t *tee) giveUp() {
	if t.call != nil {
		t.call.Release()
		t.call = nil
	}
}
