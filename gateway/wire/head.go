package wire

import "bytes"

// head is what the framing of a request was read from. Its slices alias the
// bytes that were parsed.
type head struct {
	length   int64 // of the body; -1: chunked
	close    bool  // the client wants no further request
	http10   bool
	expect   bool // 100-continue
	bodyless bool // HEAD: its answer has no body, a refusal neither
	target   []byte
	host     []byte
	path     []byte
	query    []byte
	lines    []byte // all header lines
	headers  int

	lengths, codings, hosts int
	keepAlive               bool
}

// headEnd returns the length of the head that b begins with, its empty line
// included, or 0 when that has not arrived yet.
func headEnd(b []byte) int {
	if i := bytes.Index(b, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	return 0
}

// parse reads a whole head, up to and with its empty line, by RFC 9112. It
// refuses whatever another reader could frame in another way, rather than
// repairing it.
func (h *head) parse(b []byte, conf *Config) *Fault {
	*h = head{}
	line, rest, ok := cutLine(b)
	if !ok {
		return faultLineEnd
	}
	if f := h.parseStart(line, conf); f != nil {
		return f
	}
	h.lines = rest[:len(rest)-2]
	for rest = h.lines; len(rest) > 0; {
		if line, rest, ok = cutLine(rest); !ok {
			return faultLineEnd
		}
		if f := h.parseLine(line); f != nil {
			return f
		}
		if h.headers++; h.headers > conf.MaxHeaders {
			return faultHeaders
		}
	}
	return h.settle(conf)
}

// cutLine splits off the first line, which must end with CRLF and hold no
// other CR.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return nil, nil, false
	}
	return b[:i-1], b[i+1:], true
}

func (h *head) parseStart(line []byte, conf *Config) *Fault {
	sp := bytes.IndexByte(line, ' ')
	if sp <= 0 || !isToken(line[:sp]) {
		return faultStart
	}
	method, line := line[:sp], line[sp+1:]
	h.bodyless = string(method) == "HEAD"
	sp = bytes.IndexByte(line, ' ')
	if sp <= 0 {
		return faultStart
	}
	switch string(line[sp+1:]) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		h.http10 = true
	default:
		if !bytes.HasPrefix(line[sp+1:], []byte("HTTP/")) {
			return faultStart
		}
		return faultVersion
	}
	if sp > conf.MaxURL {
		return faultURL
	}
	h.target = line[:sp]
	for _, c := range h.target {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return faultTarget
		}
	}
	if string(method) == "CONNECT" {
		return faultConnect
	}
	if h.target[0] == '*' && (len(h.target) != 1 || string(method) != "OPTIONS") {
		return faultTarget
	}
	return nil
}

func (h *head) parseLine(line []byte) *Fault {
	colon := bytes.IndexByte(line, ':')
	if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		return faultFold
	}
	if colon <= 0 || !isToken(line[:colon]) {
		return faultName
	}
	value := bytes.Trim(line[colon+1:], " \t")
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return faultValue
		}
	}
	switch name := line[:colon]; len(name) {
	case 4:
		if equalFold(name, "host") {
			h.host = value
			h.hosts++
		}
	case 6:
		if equalFold(name, "expect") {
			if !equalFold(value, "100-continue") {
				return faultExpect
			}
			h.expect = true
		}
	case 10:
		if equalFold(name, "connection") {
			h.connection(value)
		}
	case 14:
		if equalFold(name, "content-length") {
			h.lengths++
			return h.setLength(value)
		}
	case 17:
		if equalFold(name, "transfer-encoding") {
			h.codings++
			if !equalFold(value, "chunked") {
				return faultCoding
			}
		}
	}
	return nil
}

func (h *head) connection(value []byte) {
	for len(value) > 0 {
		var token []byte
		token, value, _ = bytes.Cut(value, []byte{','})
		token = bytes.Trim(token, " \t")
		switch {
		case equalFold(token, "close"):
			h.close = true
		case equalFold(token, "keep-alive"):
			h.keepAlive = true
		}
	}
}

func (h *head) setLength(value []byte) *Fault {
	if len(value) == 0 || len(value) > 18 {
		return faultLength
	}
	h.length = 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return faultLength
		}
		h.length = h.length*10 + int64(c-'0')
	}
	return nil
}

// settle checks what only the whole head shows.
func (h *head) settle(conf *Config) *Fault {
	if h.lengths+h.codings > 1 {
		return faultTwoLengths
	}
	if h.codings == 1 {
		if h.http10 {
			return faultCoding10
		}
		h.length = -1
	}
	if h.length > conf.MaxBody {
		return faultBody
	}
	if h.hosts > 1 || len(h.host) == 0 && !h.http10 {
		return faultNoHost
	}
	for _, c := range h.host {
		if !hostByte[c] {
			return faultHost
		}
	}
	h.close = h.close || h.http10 && !h.keepAlive
	h.expect = h.expect && !h.http10 && h.length != 0
	return h.splitTarget()
}

// splitTarget finds path and query. The absolute form of a target must name
// the host that Host names, so that nobody downstream can choose another one.
func (h *head) splitTarget() *Fault {
	t := h.target
	if t[0] != '/' && t[0] != '*' {
		scheme, rest, found := bytes.Cut(t, []byte("://"))
		if !found || !equalFold(scheme, "http") && !equalFold(scheme, "https") {
			return faultTarget
		}
		end := bytes.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		if h.hosts == 1 && !bytes.EqualFold(rest[:end], h.host) {
			return faultHostMismatch
		}
		h.host, t = rest[:end], rest[end:]
		for _, c := range h.host {
			if !hostByte[c] {
				return faultHost
			}
		}
	}
	h.path, h.query, _ = bytes.Cut(t, []byte{'?'})
	if len(h.path) == 0 {
		h.path = slash
	}
	return nil
}

var slash = []byte{'/'}

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenByte[c] {
			return false
		}
	}
	return true
}

// equalFold compares b with a lower-case ASCII name.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// tokenByte is RFC 9110 section 5.6.2's tchar.
var tokenByte = byteSet("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

// hostByte holds what a reg-name, an IP literal and a port are written with.
var hostByte = byteSet("-._~%!$&'()*+,;=:[]0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

func byteSet(members string) (set [256]bool) {
	for i := 0; i < len(members); i++ {
		set[members[i]] = true
	}
	return set
}
