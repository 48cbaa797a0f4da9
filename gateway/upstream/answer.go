package upstream

import (
	"io"
	"slices"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/valyala/fasthttp"
)

// maxWhole is the largest body that is read before the answer goes out, with
// its head in one piece. Larger ones, and those of unknown length, are passed
// on as they arrive. In bytes.
const maxWhole = 64 << 10

// eventPatience is the longest silence on an event stream. Those keep silent
// for as long as nothing happens, though most send comments meanwhile.
const eventPatience = 15 * time.Minute

// try is one request and the attempts to have it answered.
type try struct {
	f      *forward
	ex     *pipeline.Exchange
	before time.Duration // of other targets that were called
	start  time.Duration // when the call began, by the pool's clock
	sent   time.Duration // when the request is sent
	until  time.Duration // when the head must be there
	now    time.Duration // when the head, or what was waited for behind it, had come
	lines  int           // bytes of the answer's lines that are not the upstream's
	upload *upload       // nil: the body went with the head
	head   head

	upgrade []byte // protocols that the request wants to upgrade to; nil: none
}

// begin starts the time for the head of the answer.
func (t *try) begin(now time.Duration) {
	t.sent = now
	t.until = now + t.f.timeout
}

// took notes how long the upstream took until now: to connect, to answer, and to send all
// of what was waited for.
func (t *try) took(now time.Duration) { t.ex.Upstream.Duration = t.before + now - t.start }

// run sends the request and takes the answer. Without an error the connection
// is no longer the caller's.
func (t *try) run(c *conn) error {
	if err := c.begin(t.sent, t.until, clientOf(t.ex)); err != nil {
		return err
	}
	body, streamed := bodyOf(t.ex)
	apart := len(body) > maxGather
	if err := c.send(t.ex.Buf, !streamed && !apart); err != nil {
		return err
	}
	if apart {
		if _, err := c.write(body); err != nil {
			return err
		}
	}
	if streamed {
		t.upload = startUpload(c, t.ex.Call, t.f.timeout)
	}
	a := t.ex.Answer
	lines, err := c.readHead(&t.head, a.Lines[:t.lines], t.upgrade != nil)
	if t.upload != nil {
		err = t.upload.result(err, t.head.status, t.streams())
		if !t.upload.beside && t.upload.fault != nil {
			c.drop()
			panic(t.upload.fault)
		}
	}
	if err != nil {
		return err
	}
	a.Lines = lines
	t.ex.Upstream.Status = t.head.status
	t.now = t.clock(c)
	t.until = t.now + t.f.timeout
	t.phrase()
	if err := t.deliver(c); err != nil {
		a.Status, a.Body, a.Phrase, a.Lines = 0, nil, a.Phrase[:0], lines[:t.lines]
		return err
	}
	t.took(t.now)
	t.hideBody()
	return nil
}

// clock returns the time, by the pool's clock. When the answer is complete, that is
// also the end of the call, so that the clock is read only once.
func (t *try) clock(c *conn) time.Duration {
	h, left := &t.head, int64(c.w-c.r)
	if left == h.length && !h.chunked || left == 0 && h.bodyless(methodOf(t.ex)) {
		return t.end()
	}
	return t.f.pool.now()
}

// end returns the time when the answer is complete, by the pool's clock.
func (t *try) end() time.Duration {
	if t.upload != nil {
		return t.f.pool.now()
	}
	return t.ex.Call.End().Sub(t.f.pool.epoch)
}

// hideBody omits the body when the client sent HEAD and the upstream got another
// method.
func (t *try) hideBody() {
	if t.ex.Outgoing.Post && t.ex.Call.IsHead() {
		t.ex.Answer.NoBody, t.ex.Answer.Length = true, -1
	}
}

// phrase keeps a reason phrase that is not the usual one.
func (t *try) phrase() {
	phrase := t.head.phrase
	if len(phrase) == 0 || string(phrase) == fasthttp.StatusMessage(t.head.status) {
		return
	}
	a := t.ex.Answer // the phrase must outlive the connection's buffer
	a.Phrase = append(a.Phrase[:0], phrase...)
}

// streams reports whether the answer is passed on as it arrives.
func (t *try) streams() bool {
	h := &t.head
	return !h.bodyless(methodOf(t.ex)) && (h.chunked || h.length < 0 || h.length > maxWhole || h.events)
}

// deliver makes the answer of head and body.
func (t *try) deliver(c *conn) error {
	h, a := &t.head, t.ex.Answer
	keep := h.reusable() && (t.upload == nil || t.upload.beside || t.upload.complete())
	bodyless := h.bodyless(methodOf(t.ex))
	switch {
	case h.status == 101:
		return t.switchProtocols(c)
	case bodyless:
		a.NoBody, a.Length = true, -1
		if h.status == 204 {
			keep = keep && h.length <= 0 && !h.chunked // something may still come that is no answer
		} else if !h.chunked {
			a.Length = h.length
		}
		c.finish(keep, t.now)
	case h.chunked && (t.upload == nil || !t.upload.beside):
		return t.deliverChunks(c, keep)
	case h.length >= 0 && h.length <= maxWhole && !h.events:
		return t.deliverWhole(c, keep)
	default:
		if h.chunked {
			h.length = -1
		}
		t.stream(c, keep && (h.chunked || h.length >= 0))
	}
	a.Status = h.status
	return nil
}

// deliverWhole reads a body of known, small length.
func (t *try) deliverWhole(c *conn, keep bool) error {
	length := int(t.head.length)
	body := slices.Grow(t.ex.Answer.Spare[:0], length)[:length]
	n := copy(body, c.buf[c.r:c.w])
	c.r += n
	if n < length {
		if err := c.waitUntil(t.now, t.until, pollAnswer); err != nil {
			return err
		}
	}
	for n < length {
		m, err := c.read(body[n:])
		if n += m; m == 0 {
			t.ex.Answer.Spare = body[:0]
			return endedEarly(err)
		}
		if n == length {
			t.now = t.end()
		}
	}
	t.body(body)
	c.finish(keep, t.now)
	return nil
}

// deliverChunks joins chunks that have arrived already, and streams others.
func (t *try) deliverChunks(c *conn, keep bool) error {
	var k http1.Chunks
	body := t.ex.Answer.Spare[:0]
	at := c.r
	for at < c.w && !k.Done() {
		data, used, err := k.Next(c.buf[at:c.w], maxHead)
		if err != nil {
			return malformed(err.Error())
		}
		body = append(body, data...)
		at += used
	}
	if !k.Done() {
		t.ex.Answer.Spare = body[:0]
		t.head.length = -1
		t.stream(c, keep)
		t.ex.Answer.Status = t.head.status
		return nil
	}
	c.r = at
	t.body(body)
	c.finish(keep, t.now)
	return nil
}

// body keeps body where it lives until the answer is sent.
func (t *try) body(body []byte) {
	a := t.ex.Answer
	a.Body, a.Spare = body, body[:0]
	a.Status = t.head.status
}

// stream makes the rest of the answer a stream, which the writer of the answer reads.
func (t *try) stream(c *conn, keep bool) {
	s := &stream{c: c, keep: keep, chunked: t.head.chunked, left: t.head.length, patience: t.f.timeout}
	if t.head.events {
		s.patience = eventPatience
	}
	if live := t.ex.LiveEvents(); live != nil && t.head.events {
		c.client = wire.ClientUntil(live.Left) // another goroutine than the one of the call reads it
	}
	if t.upload != nil && t.upload.beside {
		s.upload, t.ex.Answer.Beside = t.upload, true
	}
	t.ex.Answer.Stream, t.ex.Answer.Length = s, t.head.length
}

// endedEarly returns io.ErrUnexpectedEOF for io.EOF.
func endedEarly(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// stream is the body of an answer, read as it arrives. It holds the connection,
// which goes back to its pool only once the body has been read to its end.
type stream struct {
	c        *conn // nil: done with
	keep     bool
	chunked  bool
	chunks   http1.Chunks
	left     int64 // of the body; -1: until the connection ends, or chunked
	patience time.Duration
	err      error   // what Read returns when c is nil
	upload   *upload // that goes on beside it; nil: none
}

// Read returns what has arrived, and waits only when nothing has.
func (s *stream) Read(p []byte) (int, error) {
	switch {
	case s.c == nil:
		return 0, s.err
	case len(p) == 0:
		return 0, nil
	case s.chunked:
		return s.readChunks(p)
	case s.left == 0:
		return 0, s.end(io.EOF)
	case s.left > 0 && int64(len(p)) > s.left:
		p = p[:s.left]
	}
	n, err := s.readSome(p)
	if err == io.EOF && s.left < 0 {
		return n, s.end(io.EOF)
	}
	if err != nil {
		return n, s.fail(err)
	}
	if s.left > 0 {
		if s.left -= int64(n); s.left == 0 {
			return n, s.end(io.EOF)
		}
	}
	return n, nil
}

// readSome takes what is buffered, or reads.
func (s *stream) readSome(p []byte) (int, error) {
	c := s.c
	if c.r < c.w {
		n := copy(p, c.buf[c.r:c.w])
		c.r += n
		return n, nil
	}
	if c.buf != nil && !s.chunked {
		c.releaseBuffer() // from here on everything goes straight to the reader
	}
	if err := s.arm(); err != nil {
		return 0, err
	}
	return c.read(p)
}

func (s *stream) arm() error {
	now := s.c.pool.now()
	err := s.c.waitUntil(now, now+s.patience, pollStream)
	if err == nil && s.upload != nil && s.upload.failed.Load() {
		err = errUpload
	}
	return err
}

// readChunks returns the data of as many chunks as have arrived.
func (s *stream) readChunks(p []byte) (n int, err error) {
	c := s.c
	for n == 0 {
		for c.r < c.w && n < len(p) && !s.chunks.Done() {
			data, used, err := s.chunks.Next(c.buf[c.r:c.w], len(p)-n)
			if err != nil {
				return n, s.fail(malformed(err.Error()))
			}
			n += copy(p[n:], data)
			c.r += used
		}
		switch {
		case s.chunks.Done():
			return n, s.end(io.EOF)
		case n > 0:
		case s.chunks.Left() >= bufferSize:
			n, err = s.readData(p)
		default:
			c.r, c.w = 0, 0
			if err = s.arm(); err == nil {
				err = c.fill()
			}
		}
		if err != nil {
			return n, s.fail(err)
		}
	}
	return n, nil
}

// readData reads from within a large chunk, past the buffer.
func (s *stream) readData(p []byte) (int, error) {
	n, err := s.readSome(p[:min(int64(len(p)), s.chunks.Left())])
	s.chunks.Skip(int64(n))
	return n, err
}

// end finishes with the connection. Read returns err from then on.
func (s *stream) end(err error) error {
	c := s.c
	s.c, s.err = nil, err
	if u := s.upload; u != nil {
		s.keep = u.wait(err == io.EOF) && s.keep
		if u.fault != nil {
			c.drop()
			panic(u.fault)
		}
	}
	c.finish(s.keep, c.pool.now())
	return err
}

// fail closes the connection; the answer remains a part.
func (s *stream) fail(err error) error {
	s.keep = false
	return s.end(endedEarly(err))
}

// Close gives up an answer that has not been read to its end.
func (s *stream) Close() error {
	if s.c != nil {
		_ = s.fail(io.ErrClosedPipe)
	}
	return nil
}
