package wire

import (
	"bufio"
	"errors"
	"io"
)

// The errors of reading a request body. After either the connection ends.
var (
	ErrBodyTooLarge  = errors.New("request body too large")
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
	chunked   bool
	continues bool // the client waits for "100 Continue"
	done      bool
	err       error
}

func (b *body) reset(c *conn, length int64, expect bool) {
	*b = body{c: c, remaining: length, chunked: length < 0, continues: expect}
	if b.chunked {
		b.remaining = 0
	}
	b.done = length == 0
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
	n, err := b.c.br.Read(p)
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
	if err := expectCRLF(b.c.br); err != nil {
		return n, b.fail(err)
	}
	return n, nil
}

// nextChunk reads a size line, and behind the last chunk the trailers, which
// are dropped: nothing that was decided from the head may change after it.
func (b *body) nextChunk() error {
	size, err := readChunkSize(b.c.br)
	if err != nil {
		return err
	}
	if size > 0 {
		if b.total+size > b.c.srv.conf.MaxBody {
			return ErrBodyTooLarge
		}
		b.remaining = size
		return nil
	}
	b.done, err = true, skipTrailers(b.c.br, b.c.srv.conf.MaxHeader)
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
	if b.err != nil || b.continues || b.chunked || b.remaining > int64(b.c.br.Buffered()) {
		return false
	}
	_, err := b.c.br.Discard(int(b.remaining))
	b.done = true
	return err == nil
}

func readChunkSize(br *bufio.Reader) (int64, error) {
	var size int64
	digits := 0
	for ; ; digits++ {
		c, err := br.ReadByte()
		if err != nil {
			return 0, err
		}
		v := hexValue(c)
		if v < 0 {
			if digits == 0 {
				return 0, ErrBodyMalformed
			}
			return size, endChunkLine(br, c)
		}
		if digits == 15 {
			return 0, ErrBodyMalformed
		}
		size = size<<4 | int64(v)
	}
}

// endChunkLine reads on from c, the first byte behind the size, to the line's
// end. Blanks may stand there, and extensions, which begin with a semicolon.
func endChunkLine(br *bufio.Reader, c byte) error {
	var err error
	extended := false
	for range maxChunkLine {
		switch {
		case c == '\r':
			if c, err = br.ReadByte(); err == nil && c != '\n' {
				err = ErrBodyMalformed
			}
			return err
		case c == ';':
			extended = true
		case c != ' ' && c != '\t' && !extended, c < ' ' && c != '\t', c == 0x7f:
			return ErrBodyMalformed
		}
		if c, err = br.ReadByte(); err != nil {
			return err
		}
	}
	return ErrBodyMalformed
}

// skipTrailers reads trailers, of at most limit bytes, and the empty line that
// ends them. They must be well-formed even though nobody looks at them.
func skipTrailers(br *bufio.Reader, limit int) error {
	for limit > 0 {
		line, err := br.ReadSlice('\n')
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

func expectCRLF(br *bufio.Reader) error {
	for _, want := range [2]byte{'\r', '\n'} {
		c, err := br.ReadByte()
		if err != nil {
			return err
		}
		if c != want {
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
