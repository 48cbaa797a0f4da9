package upstream

import (
	"bytes"
	"strconv"

	"github.com/sluicegate/sluice/internal/http1"
)

const (
	maxHead    = 64 << 10 // bytes of an answer's head
	maxInterim = 16       // answers of the kind 1xx before the one that counts
)

// head is what the head of an answer says about the message. phrase aliases
// what was parsed.
type head struct {
	status     int
	phrase     []byte
	length     int64 // -1: not given
	chunked    bool
	http10     bool
	events     bool // the body is an event stream
	connection http1.Connection
	upgrade    []byte // protocol that is spoken from here on; aliases what was parsed
}

// readHead reads the head of the answer that counts and appends the lines that
// go to the client to dst. 101 counts only where an upgrade was asked for.
func (c *conn) readHead(h *head, dst []byte, upgrade bool) ([]byte, error) {
	for range maxInterim + 1 {
		block, err := c.headBlock()
		if err != nil {
			return dst, err
		}
		lines, err := h.parseStatus(block)
		if err != nil {
			return dst, err
		}
		if h.status >= 200 || h.status == 101 && upgrade {
			return h.parseLines(dst, lines)
		}
		if h.status == 101 {
			return dst, malformed("101 Switching Protocols, which was not asked for")
		}
		// Its lines go nowhere, but where it ends must not be a matter of opinion.
		if _, err := h.parseLines(dst, lines); err != nil {
			return dst, err
		}
	}
	return dst, malformed("too many interim answers")
}

// headBlock takes one whole head off the buffer, its empty line included.
func (c *conn) headBlock() ([]byte, error) {
	for searched := 0; ; {
		b := c.buf[c.r:c.w]
		from := max(0, searched-3)
		if i := bytes.Index(b[from:], crlf2); i >= 0 {
			end := from + i + len(crlf2)
			c.r += end
			return b[:end], nil
		}
		if err := checkPart(b, from); err != nil {
			return nil, err
		}
		searched = len(b)
		if err := c.makeRoom(); err != nil {
			return nil, err
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

var (
	crlf2   = []byte("\r\n\r\n")
	version = []byte("HTTP/1.")
)

// checkPart finds early what no further bytes can make a head of, rather than
// wait for them until time is up.
func checkPart(b []byte, from int) error {
	n := min(len(b), len(version))
	if !bytes.Equal(b[:n], version[:n]) {
		return malformed("not HTTP/1")
	}
	for b = b[from:]; ; {
		i := bytes.IndexByte(b, '\n')
		switch {
		case i < 0:
			return nil
		case i == 0 && from == 0, i > 0 && b[i-1] != '\r':
			return errLineEnd
		}
		b, from = b[i+1:], 1
	}
}

const errLineEnd = malformed("a line ends without CRLF")

// makeRoom makes sure that fill has room, up to the size of the largest head.
func (c *conn) makeRoom() error {
	switch {
	case c.w < len(c.buf):
		return nil
	case c.r > 0:
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
		return nil
	case len(c.buf) >= maxHead:
		return malformed("head above 64 KiB")
	}
	grown := make([]byte, 2*len(c.buf))
	copy(grown, c.buf[:c.w])
	if c.spare != nil {
		buffers.Put(c.spare)
		c.spare = nil
	}
	c.buf = grown
	return nil
}

// parseStatus reads the status line and returns the lines behind it, without
// the empty one.
func (h *head) parseStatus(block []byte) ([]byte, error) {
	*h = head{length: -1}
	end := bytes.IndexByte(block, '\n')
	line := block[:end]
	if len(line) == 0 || line[len(line)-1] != '\r' {
		return nil, errLineEnd
	}
	line = line[:len(line)-1]
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, version) || line[8] != ' ' {
		return nil, malformed("status line")
	}
	switch line[7] {
	case '0':
		h.http10 = true
	case '1':
	default:
		return nil, malformed("version of HTTP")
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return nil, malformed("status code")
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 {
		return nil, malformed("status code")
	}
	if h.phrase = line[12:]; len(h.phrase) > 0 {
		if h.phrase[0] != ' ' {
			return nil, malformed("status code")
		}
		h.phrase = h.phrase[1:]
	}
	if bytes.IndexByte(h.phrase, '\r') >= 0 || bytes.IndexByte(h.phrase, 0) >= 0 {
		return nil, malformed("status line")
	}
	return block[end+1 : len(block)-2], nil
}

// parseLines checks all header lines and appends to dst those that are not for
// this connection alone.
func (h *head) parseLines(dst, lines []byte) ([]byte, error) {
	if bytes.IndexByte(lines, 0) >= 0 {
		return dst, malformed("NUL in a header line")
	}
	start, kept := len(dst), 0 // lines[kept:at] are to be copied
	for at := 0; at < len(lines); {
		next := at + bytes.IndexByte(lines[at:], '\n') + 1
		if next-at < 2 || lines[next-2] != '\r' {
			return dst, errLineEnd
		}
		line := lines[at : next-2]
		if bytes.IndexByte(line, '\r') >= 0 {
			return dst, malformed("a header line holds CR")
		}
		pass, err := h.parseLine(line)
		if err != nil {
			return dst, err
		}
		if !pass {
			dst = append(dst, lines[kept:at]...)
			kept = next
		}
		at = next
	}
	dst = append(dst, lines[kept:]...)
	if h.chunked && h.http10 {
		return dst, malformed("Transfer-Encoding in an HTTP/1.0 answer")
	}
	return dst[:start+len(h.connection.Strip(dst[start:]))], nil
}

// parseLine parses one line and reports whether it goes to the client. Folded lines
// fail, as they do not begin with a name.
func (h *head) parseLine(line []byte) (pass bool, err error) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 || !http1.IsToken(line[:colon]) {
		return false, malformed("header name")
	}
	name := line[:colon]
	switch len(name) {
	case len("te"):
		return !http1.EqualFold(name, "te"), nil
	case len("trailer"):
		if http1.EqualFold(name, "upgrade") {
			h.upgrade = http1.Trim(line[colon+1:])
			return false, nil
		}
		return !http1.EqualFold(name, "trailer"), nil
	case len("connection"):
		if http1.EqualFold(name, "connection") {
			if h.connection.Add(line[colon+1:]); h.connection.TooMany {
				return false, malformed("too many Connection lines")
			}
			return false, nil
		}
		return !http1.EqualFold(name, "keep-alive"), nil
	case len("content-type"):
		if http1.EqualFold(name, "content-type") && http1.HasPrefix(http1.Trim(line[colon+1:]), "text/event-stream") {
			h.events = true
		}
	case len("content-length"):
		if http1.EqualFold(name, "content-length") {
			return false, h.setLength(http1.Trim(line[colon+1:]))
		}
	case len("proxy-connection"):
		return !http1.EqualFold(name, "proxy-connection"), nil
	case len("transfer-encoding"):
		if http1.EqualFold(name, "transfer-encoding") {
			return false, h.setCoding(http1.Trim(line[colon+1:]))
		}
	case len("proxy-authenticate"):
		return !http1.EqualFold(name, "proxy-authenticate"), nil
	case len("proxy-authorization"):
		return !http1.EqualFold(name, "proxy-authorization"), nil
	}
	return true, nil
}

// setLength accepts a length that is given twice, but not two lengths, nor a
// list: another reader could take either.
func (h *head) setLength(value []byte) error {
	if len(value) == 0 || len(value) > 18 {
		return malformed("Content-Length")
	}
	length := int64(0)
	for _, c := range value {
		if c < '0' || c > '9' {
			return malformed("Content-Length")
		}
		length = length*10 + int64(c-'0')
	}
	if h.length >= 0 && h.length != length {
		return malformed("two lengths: " + strconv.FormatInt(h.length, 10) + " and " + strconv.FormatInt(length, 10))
	}
	h.length = length
	return nil
}

// setCoding accepts chunked, once, and nothing else.
func (h *head) setCoding(value []byte) error {
	if h.chunked || !http1.EqualFold(value, "chunked") {
		return malformed("transfer coding other than chunked")
	}
	h.chunked = true
	return nil
}

// bodyless reports whether no body follows, even if the head announces one.
func (h *head) bodyless(method []byte) bool {
	return h.status == 204 || h.status == 304 || string(method) == "HEAD"
}

// reusable reports whether the connection can take another request once the body has
// been read. An answer with both a length and chunks is read as chunks, but a proxy
// on the way may have used the length.
func (h *head) reusable() bool {
	return !h.http10 && !h.connection.Close && !(h.chunked && h.length >= 0)
}
