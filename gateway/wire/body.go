package wire

import (
	"errors"
	"io"

	"github.com/sluicegate/sluice/internal/http1"
)

// The errors of reading a request body. After any of them the connection ends.
var (
	ErrBodyTooLarge  = errors.New("request body too large")
	ErrBodyOverLimit = errors.New("request body above the limit of its path")
	ErrBodyMalformed = errors.New("malformed chunked request body")
	errBodyClosed    = errors.New("request body read after its call ended")
)

// body reads one request's body from its connection. It never reads a byte of the
// next request.
type body struct {
	c         *conn
	remaining int64 // bytes left of a body of known length
	total     int64 // bytes received
	most      int64 // bytes that a chunked body may have; 0: as many as the server accepts
	chunks    http1.Chunks
	chunked   bool
	continues bool // the client waits for "100 Continue"
	done      bool
	err       error
	turn      turn
}

func (b *body) reset(c *conn, h *head) {
	*b = body{c: c, remaining: h.length, chunked: h.length < 0, continues: h.expect, done: h.length == 0}
	b.chunks.MaxTrailer = c.srv.conf.MaxHeader
}

// Read fills p with the next bytes of the body. It returns io.EOF at its end.
func (b *body) Read(p []byte) (n int, err error) {
	switch {
	case b.c == nil:
		return 0, errBodyClosed
	case b.err != nil:
		return 0, b.err
	case b.done:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	b.c.allowBody(b.total)
	if b.continues {
		b.continues = false
		if err := b.c.sendContinue(); err != nil {
			return 0, b.fail(err)
		}
	}
	if b.chunked {
		n, err = b.readChunks(p)
	} else {
		n, err = b.c.readSome(p[:min(int64(len(p)), b.remaining)])
		b.remaining -= int64(n)
		b.done = b.remaining == 0
	}
	b.total += int64(n)
	b.turn.add(n)
	if err != nil {
		return n, b.fail(err)
	}
	if n == 0 && b.done {
		return 0, io.EOF
	}
	return n, nil
}

// readChunks returns data of one chunk, or none at the end of the body. Trailers
// are dropped: nothing that was decided by the head may change after it.
func (b *body) readChunks(p []byte) (int, error) {
	c := b.c
	for !b.chunks.Done() {
		if left := b.chunks.Left(); c.r == c.w && left > 0 { // past the buffer
			if err := b.checkSize(left); err != nil {
				return 0, err
			}
			n, err := c.sock.Read(p[:min(int64(len(p)), left)])
			b.chunks.Skip(int64(n))
			return n, err
		}
		if c.r == c.w {
			if err := c.more(); err != nil {
				return 0, err
			}
		}
		data, used, err := b.chunks.Next(c.buffered(), len(p))
		c.r += used
		if err != nil {
			return 0, ErrBodyMalformed
		}
		if len(data) > 0 {
			if err := b.checkSize(int64(len(data)) + b.chunks.Left()); err != nil {
				return 0, err
			}
			return copy(p, data), nil
		}
	}
	b.done = true
	return 0, nil
}

// limit is how many bytes a chunked body may have.
func (b *body) limit() int64 {
	if b.most > 0 {
		return min(b.most, b.c.srv.conf.MaxBody)
	}
	return b.c.srv.conf.MaxBody
}

// checkSize refuses a body as soon as what is left of a chunk shows that it is too
// large.
func (b *body) checkSize(chunk int64) error {
	switch {
	case b.total+chunk > b.c.srv.conf.MaxBody:
		return ErrBodyTooLarge
	case b.most > 0 && b.total+chunk > b.most:
		return ErrBodyOverLimit
	}
	return nil
}

func (b *body) fail(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.err = err
	return err
}

// skipRest makes the connection ready for its next request, and reports false
// when that cannot be had cheaply: then the connection must end.
func (b *body) skipRest() bool {
	if b.done && b.err == nil {
		return true
	}
	if b.err != nil || b.continues || b.chunked || b.remaining > int64(b.c.w-b.c.r) {
		return false
	}
	b.c.r += int(b.remaining)
	b.done = true
	return true
}

// readSome returns what is buffered of a body, or reads once, past the buffer.
func (c *conn) readSome(p []byte) (int, error) {
	if c.r == c.w {
		return c.sock.Read(p)
	}
	n := copy(p, c.buffered())
	c.r += n
	return n, nil
}
