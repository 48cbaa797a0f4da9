// Package answer holds the responses of the test upstream and checks received
// responses against them: status, length and every byte of the body. Benchmarks
// and load tests share it.
package answer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Want is what every response must be.
type Want struct {
	Status int    // 0: any
	Line   []byte // a header line that must be present, without its end; nil: none
	Body   []byte // nil: any
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("content-length:")
)

// A Reader reads responses from one connection. Its buffer grows to the longest.
type Reader struct {
	from io.Reader
	buf  []byte
	have int // bytes of buf that are filled
	head int // length of the last response's head
}

// NewReader returns a reader of responses from a connection.
func NewReader(from io.Reader) *Reader { return &Reader{from: from, buf: make([]byte, 4096)} }

// Reset makes r read from another connection.
func (r *Reader) Reset(from io.Reader) { r.from = from }

// Next reads one response and checks it. Bytes after it are an error, because no
// further request was sent.
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
			return fmt.Errorf("reading a response after %d bytes: %w", r.have, err)
		}
		if body < 0 {
			body, length, err = want.CheckHead(r.buf[:r.have])
			if err != nil {
				return err
			}
		}
	}
	r.head = body
	return want.CheckBody(r.buf[body:r.have], length)
}

// Head returns the head of the response that Next read last, including the empty
// line at its end. It is valid until the next call of Next.
func (r *Reader) Head() []byte { return r.buf[:r.head] }

// CheckHead checks the head in b. body is the offset of the body, -1 while the
// head is incomplete.
func (w *Want) CheckHead(b []byte) (body, length int, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return -1, 0, nil
	}
	if got := Status(b); got != w.Status && (w.Status != 0 || got < 200) {
		return 0, 0, fmt.Errorf("status %d, want %d", got, w.Status)
	}
	if w.Line != nil && !bytes.Contains(b[:end+2], w.Line) {
		return 0, 0, fmt.Errorf("response without the line %q", w.Line)
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
		return 0, 0, errors.New("response without a Content-Length")
	}
	return end + len(headEnd), length, nil
}

// Status returns the status code of a response that begins with b, -1 if it is
// not HTTP/1.1.
func Status(b []byte) int {
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

// CheckBody checks a body; length is the one that the head announced.
func (w *Want) CheckBody(body []byte, length int) error {
	switch {
	case len(body) > length:
		return fmt.Errorf("%d bytes after the response", len(body)-length)
	case w.Body != nil && length != len(w.Body):
		return fmt.Errorf("body of %d bytes, want %d", length, len(w.Body))
	case w.Body != nil && !bytes.Equal(body, w.Body):
		return errors.New("body differs from the one that the upstream sent")
	}
	return nil
}

// bodies are the responses of the upstream, by the last segment of the path.
var bodies = map[string][]byte{
	"1k":  pattern(1 << 10),
	"16k": pattern(16 << 10),
	"64k": pattern(64 << 10),

	"graphql": []byte(countries),
}

// pattern returns n bytes in which no two neighbouring kilobytes are equal, so that
// a body assembled in the wrong order is detected.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte((i*7+i>>10)%26)
	}
	return b
}

// Body returns the body for a path such as "/any/1k". It must not be changed.
func Body(path []byte) ([]byte, bool) {
	b, ok := bodies[string(path[bytes.LastIndexByte(path, '/')+1:])]
	return b, ok
}

// operation is the GraphQL operation of the load tests, and countries the response
// of the upstream to it. Its JSON is compact, so that servers in between return the
// same bytes.
const (
	operation = `query Countries($continent: ID!) { countries(continent: $continent, first: 5) { code name capital population languages { code name } continent { code name } } }`
	countries = `{"data":{"countries":[` +
		`{"code":"AT","name":"Austria","capital":"Vienna","population":9200000,"languages":[{"code":"de","name":"German"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"BE","name":"Belgium","capital":"Brussels","population":11700000,"languages":[{"code":"nl","name":"Dutch"},{"code":"fr","name":"French"},{"code":"de","name":"German"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"CH","name":"Switzerland","capital":"Bern","population":8800000,"languages":[{"code":"de","name":"German"},{"code":"fr","name":"French"},{"code":"it","name":"Italian"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"DK","name":"Denmark","capital":"Copenhagen","population":5900000,"languages":[{"code":"da","name":"Danish"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"EE","name":"Estonia","capital":"Tallinn","population":1300000,"languages":[{"code":"et","name":"Estonian"}],"continent":{"code":"EU","name":"Europe"}}]}}`

	variables = `,"variables":{"continent":"EU"}}`
)

// AppendOperation appends the request body of the operation. With unseen, every n
// gives a different operation of the same length.
func AppendOperation(dst []byte, n uint64, unseen bool) []byte {
	dst = append(dst, `{"query":"`...)
	if unseen {
		const name = len("query Countries")
		dst = append(dst, operation[:name]...)
		dst = strconv.AppendUint(dst, n+1e9, 10)
		dst = append(dst, operation[name:]...)
	} else {
		dst = append(dst, operation...)
	}
	return append(append(dst, '"'), variables...)
}
