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

// CompileFill returns the stage by which answers of the upstream are kept that calls
// went up for, or nil when none are. It stands before all that changes answers,
// which is done to kept ones too.
func (c *Cache) CompileFill(def *definition.API) (pipeline.Stage, error) {
	opts, err := def.Caching()
	if opts == nil || err != nil || c.opts.MaxBytes == 0 {
		return nil, err
	}
	return fill{}, nil
}

type fill struct{}

// Handle keeps an answer if it may be kept.
func (fill) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	f, ok := ex.Awaited.(*flight)
	if !ok {
		return pipeline.Next
	}
	c, a := f.stage.cache, ex.Answer
	now := c.now(ex.Started) // an answer is as old as the question (RFC 9111, section 4.2.3)
	var p promise
	p.read(a.Lines[f.lines:], f.stage.opts.TTLHeader)
	lifetime := f.lifetime(ex, &p)
	switch {
	case lifetime <= 0 && a.Status < 500:
		f.decline(now)
	case lifetime > 0:
		f.take(ex, &p, now, lifetime)
	}
	a.Lines = append(a.Lines, "X-Cache: miss\r\n"...)
	return pipeline.Next
}

// take keeps the answer, at once or as it is passed on. A client that has it
// already is told so, as the upstream was not asked.
func (f *flight) take(ex *pipeline.Exchange, p *promise, now, lifetime time.Duration) {
	a := ex.Answer
	e := &answer{
		status: a.Status, lines: p.kept(a.Lines[f.lines:]), expires: now + lifetime, born: now - p.age,
	}
	e.etag, e.modified = p.within(e.lines)
	key := appendVary([]byte(f.key[:f.base]), ex.Call, p.vary)
	switch most := f.stage.cache.most(len(key) + len(e.lines)); {
	case a.Stream != nil:
		ex.Awaited = nil // it ends with the stream
		e.body = make([]byte, 0, max(0, a.Length))
		a.Stream = &tee{ReadCloser: a.Stream, flight: f, entry: e, key: key, vary: p.vary, most: most, now: now}
		return
	case len(a.Body) > most:
		f.decline(now)
	default:
		e.body = bytes.Clone(a.Body)
		f.keep(e, key, p.vary)
	}
	if a.Status == 200 && isCurrent(ex.Call, e.etag, e.modified) {
		notModified(a)
	}
}

// most returns how many bytes a body may have that is kept with so many bytes
// beside it.
func (c *Cache) most(beside int) int {
	return min(c.opts.MaxBody, c.kept.Largest(0)-beside-answerSize)
}

// lifetime is how long an answer may be kept, 0 for not at all.
func (f *flight) lifetime(ex *pipeline.Exchange, p *promise) time.Duration {
	a, s := ex.Answer, f.stage
	switch {
	case a.Status != ex.Upstream.Status || a.Takeover != nil || !slices.Contains(f.rule.codes, a.Status):
		return 0
	case a.NoBody && a.Status != 204, a.Stream != nil && a.Length > int64(s.cache.opts.MaxBody):
		return 0
	case p.forbidden, p.events, len(f.key) > maxKey:
		return 0
	case ex.Behind != nil && s.next(ex) == nil: // whom the other API lets in, and by what it answers, is not in the key
		return 0
	case s.opts.Shared && !p.public && hasCredentials(ex):
		return 0
	}
	said, ok := p.lifetime()
	lifetime := f.rule.lifetime
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

// maxKey is the longest key that is kept without what comes from headers, in bytes.
const maxKey = 8 << 10

// hasCredentials tells whether the upstream saw who calls, so that a cache that
// tells all callers the same needs its leave (RFC 9111, section 3.5).
func hasCredentials(ex *pipeline.Exchange) bool {
	return sent(ex, wire.NameAuthorization, "Authorization") || sent(ex, wire.NameCookie, "Cookie")
}

// sent tells whether a header of the client's went up.
func sent(ex *pipeline.Exchange, name wire.Name, canonical string) bool {
	return ex.Call.Find(name) != nil && !slices.Contains(ex.Outgoing.Drop, canonical)
}

// tee keeps a body while it is passed on, if it is not too long and comes to its
// end.
type tee struct {
	io.ReadCloser
	flight *flight
	entry  *answer
	key    []byte
	vary   []string
	most   int
	now    time.Duration // when the head had come
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if t.flight == nil {
		return n, err
	}
	if len(t.entry.body)+n > t.most {
		t.flight.decline(t.now)
		t.flight, t.entry = nil, nil
		return n, err
	}
	t.entry.body = append(t.entry.body, p[:n]...)
	switch err {
	case nil:
	case io.EOF:
		t.entry.body = bytes.Clone(t.entry.body) // which takes what it needs, and no more
		t.flight.keep(t.entry, t.key, t.vary)
		t.flight = nil
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

// giveUp ends the flight of an answer that was not read to its end.
func (t *tee) giveUp() {
	if t.flight != nil {
		t.flight.Release()
		t.flight = nil
	}
}
