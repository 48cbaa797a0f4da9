package wire

import (
	"bytes"
	"errors"
	"io"
)

// The errors of reading a request body. After any of them the connection ends.
var (
	ErrBodyTooLarge  = errors.New("request body too large")
	ErrBodyOverLimit = errors.New("request body above the limit of its path")
	ErrBodyMalformed = errors.New("malformed chunked request body")
	errBodyClosed    = errors.New("request body read after its call ended")
)

// maxChunkLine bounds a chunk's size line with its extensions, in bytes.
const maxChunkLine = 256

// body reads one request's body from its connection, strictly: it stops at the
// body's end and never reads a byte of the next request.
type body struct {
	c         *conn
	remaining int64 // bytes left of the body, or of the chunk at hand
	total     int64 // received
	most      int64 // that a body in chunks may have; 0: as many as the server takes
	chunked   bool
	continues bool // the client waits for "100 Continue"
	done      bool
	err       error
}

func (b *body) reset(c *conn, h *head) {
	*b = body{c: c, remaining: h.length, chunked: h.length < 0, continues: h.expect}
	if b.chunked {
		b.remaining = 0
	}
	b.done = h.length == 0
}

// Read fills p with the next bytes of the body. It returns io.EOF at its end.
func (b *body) Read(p []byte) (int, error) {
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
	if b.remaining == 0 && b.chunked {
		if err := b.nextChunk(); err != nil {
			return 0, b.fail(err)
		}
		if b.done {
			return 0, io.EOF
		}
	}
	return b.readPart(p)
}

func (b *body) readPart(p []byte) (int, error) {
	if int64(len(p)) > b.remaining {
		p = p[:b.remaining]
	}
	n, err := b.c.readSome(p)
	b.remaining -= int64(n)
	b.total += int64(n)
	if err != nil {
		return n, b.fail(err)
	}
	if b.remaining > 0 {
		return n, nil
	}
	if !b.chunked {
		b.done = true
		return n, nil
	}
	if err := b.c.expectCRLF(); err != nil {
		return n, b.fail(err)
	}
	return n, nil
}

// nextChunk reads a size line, and behind the last chunk the trailers, which
// are dropped: nothing that was decided from the head may change after it.
func (b *body) nextChunk() error {
	size, err := b.c.readChunkSize()
	if err != nil {
		return err
	}
	if size > 0 {
		if b.total+size > b.c.srv.conf.MaxBody {
			return ErrBodyTooLarge
		}
		if b.most > 0 && b.total+size > b.most {
			return ErrBodyOverLimit
		}
		b.remaining = size
		return nil
	}
	b.done, err = true, b.c.skipTrailers()
	return err
}

func (b *body) fail(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.err = err
	return err
}

// settle makes the connection ready for its next request, and reports false
// when that cannot be had cheaply: then the connection must end.
func (b *body) settle() bool {
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

func (c *conn) readChunkSize() (int64, error) {
	var size int64
	digits := 0
	for ; ; digits++ {
		digit, err := c.readByte()
		if err != nil {
			return 0, err
		}
		v := hexValue(digit)
		if v < 0 {
			if digits == 0 {
				return 0, ErrBodyMalformed
			}
			return size, c.endChunkLine(digit)
		}
		if digits == 15 {
			return 0, ErrBodyMalformed
		}
		size = size<<4 | int64(v)
	}
}

// endChunkLine reads on from at, the first byte behind the size, to the line's
// end. Blanks may stand there, and extensions, which begin with a semicolon.
func (c *conn) endChunkLine(at byte) error {
	var err error
	extended := false
	for range maxChunkLine {
		switch {
		case at == '\r':
			if at, err = c.readByte(); err == nil && at != '\n' {
				err = ErrBodyMalformed
			}
			return err
		case at == ';':
			extended = true
		case at != ' ' && at != '\t' && !extended, at < ' ' && at != '\t', at == 0x7f:
			return ErrBodyMalformed
		}
		if at, err = c.readByte(); err != nil {
			return err
		}
	}
	return ErrBodyMalformed
}

// skipTrailers reads trailers, of at most as many bytes as a head, and the empty
// line that ends them. They must be well-formed even though nobody looks at
// them.
func (c *conn) skipTrailers() error {
	for limit := c.srv.conf.MaxHeader; limit > 0; {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		limit -= len(line)
		line, _, ok := cutLine(line)
		switch {
		case !ok:
			return ErrBodyMalformed
		case len(line) == 0:
			return nil
		}
		if _, fault := checkLine(line); fault != nil {
			return ErrBodyMalformed
		}
	}
	return ErrBodyMalformed
}

// readLine returns the next line with its end, which must fit the buffer behind
// the head. It is gone with the next read.
func (c *conn) readLine() ([]byte, error) {
	for searched := 0; ; {
		b := c.buffered()
		if i := bytes.IndexByte(b[searched:], '\n'); i >= 0 {
			c.r += searched + i + 1
			return b[:searched+i+1], nil
		}
		searched = len(b)
		if c.w == len(c.room.buf) {
			if c.r == c.base {
				return nil, ErrBodyMalformed
			}
			c.w = c.base + copy(c.room.buf[c.base:], b)
			c.r = c.base
		}
		if err := c.more(); err != nil {
			return nil, err
		}
	}
}

func (c *conn) expectCRLF() error {
	for _, want := range [2]byte{'\r', '\n'} {
		got, err := c.readByte()
		if err != nil {
			return err
		}
		if got != want {
			return ErrBodyMalformed
		}
	}
	return nil
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
