package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("content-length:")
)

// A Reader takes answers off one connection. Its buffer grows with the longest.
type Reader struct {
	from io.Reader
	buf  []byte
	have int // bytes of buf that are filled
	head int // bytes of the last answer's head
}

// NewReader returns what reads answers from a connection.
func NewReader(from io.Reader) *Reader { return &Reader{from: from, buf: make([]byte, 4096)} }

// Next reads one answer and checks it. Bytes behind it are an error: nothing
// else was asked for.
func (r *Reader) Next(want *Want) error {
	r.have = 0
	body, length := -1, 0
	for body < 0 || r.have < body+length {
		if r.have == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		n, err := r.from.Read(r.buf[r.have:])
		r.have += n
		if n == 0 {
			return fmt.Errorf("reading an answer after %d bytes: %w", r.have, err)
		}
		if body < 0 {
			body, length, err = want.head(r.buf[:r.have])
			if err != nil {
				return err
			}
		}
	}
	r.head = body
	return want.check(r.buf[body:r.have], length)
}

// Head returns the head of the answer that Next read last, with the empty line at
// its end. It is good until the next call of Next.
func (r *Reader) Head() []byte { return r.buf[:r.head] }

// head checks the head in b. body is where the body begins, -1 as long as the
// head is not complete.
func (w *Want) head(b []byte) (body, length int, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return -1, 0, nil
	}
	if got := statusOf(b); got != w.Status && (w.Status != 0 || got < 200) {
		return 0, 0, fmt.Errorf("status %d, want %d", got, w.Status)
	}
	if w.Line != nil && !bytes.Contains(b[:end+2], w.Line) {
		return 0, 0, fmt.Errorf("answer without the line %q", w.Line)
	}
	length = -1
	for rest := b[:end]; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, headEnd[:2])
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			length = number(bytes.TrimSpace(line[len(contentLength):]))
		}
	}
	if length < 0 {
		return 0, 0, errors.New("answer without a Content-Length")
	}
	return end + len(headEnd), length, nil
}

func statusOf(b []byte) int {
	const version = "HTTP/1.1 "
	if len(b) < len(version)+3 || string(b[:len(version)]) != version {
		return -1
	}
	return number(b[len(version) : len(version)+3])
}

// number reads decimal digits; it returns -1 for anything else.
func number(b []byte) int {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<30 {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	if len(b) == 0 {
		return -1
	}
	return n
}

// check holds a body against what is wanted.
func (w *Want) check(body []byte, length int) error {
	switch {
	case len(body) > length:
		return fmt.Errorf("%d bytes behind the answer", len(body)-length)
	case w.Body != nil && length != len(w.Body):
		return fmt.Errorf("body of %d bytes, want %d", length, len(w.Body))
	case w.Body != nil && !bytes.Equal(body, w.Body):
		return errors.New("body differs from the one that the origin sent")
	}
	return nil
}
