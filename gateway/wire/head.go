package wire

import (
	"bytes"
	"encoding/binary"

	"github.com/sluicegate/sluice/internal/http1"
)

// head is what the framing of a request was read from, beside what its Call
// shows.
type head struct {
	length    int64 // of the body; -1: chunked
	close     bool  // the client wants no further request
	expect    bool  // 100-continue
	keepAlive bool

	lengths, codings, hosts int
}

// inline reports whether the body, if there is one, is read as a whole before the
// request is handled.
func (h *head) inline() bool { return h.length >= 0 && h.length <= inlineBody && !h.expect }

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
// repairing it. What it finds goes to call, and aliases b.
func (h *head) parse(b []byte, call *Call, conf *Config) *Fault {
	*h = head{}
	line, rest, ok := cutLine(b)
	if !ok {
		return faultLineEnd
	}
	if f := h.parseStart(line, call, conf); f != nil {
		return f
	}
	call.Lines, call.Fields, call.names = rest[:len(rest)-2], call.Fields[:0], 0
	for start := 0; start < len(call.Lines); {
		end := start + bytes.IndexByte(call.Lines[start:], '\n') + 1
		if end < start+2 || call.Lines[end-2] != '\r' {
			return faultLineEnd
		}
		if f := h.parseLine(call, start, end); f != nil {
			return f
		}
		if len(call.Fields) > conf.MaxHeaders {
			return faultHeaders
		}
		start = end
	}
	return h.checkWhole(call, conf)
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

func (h *head) parseStart(line []byte, call *Call, conf *Config) *Fault {
	sp := tokenEnd(line)
	if sp == 0 || sp == len(line) || line[sp] != ' ' {
		return faultStart
	}
	method, line := line[:sp:sp], line[sp+1:]
	if !isUpper(method) && isKnown(method) {
		return faultMethod
	}
	call.Method = method
	sp = bytes.IndexByte(line, ' ')
	if sp <= 0 {
		return faultStart
	}
	switch string(line[sp+1:]) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		call.HTTP10 = true
	default:
		if !bytes.HasPrefix(line[sp+1:], []byte("HTTP/")) {
			return faultStart
		}
		return faultVersion
	}
	if sp > conf.MaxURL {
		return faultURL
	}
	target := line[:sp:sp]
	for _, c := range target {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return faultTarget
		}
	}
	if string(method) == "CONNECT" {
		return faultConnect
	}
	if target[0] == '*' && (len(target) != 1 || string(method) != "OPTIONS") {
		return faultTarget
	}
	call.target = target
	return nil
}

// isUpper reports whether a method has no lower-case letter, as all known methods.
func isUpper(method []byte) bool {
	for _, c := range method {
		if c >= 'a' {
			return false
		}
	}
	return true
}

// isKnown reports whether a method is a standard one, ignoring case. Some upstreams
// ignore case too, and would accept it past rules for the method.
func isKnown(method []byte) bool {
	switch len(method) {
	case 3:
		return http1.EqualFold(method, "get") || http1.EqualFold(method, "put")
	case 4:
		return http1.EqualFold(method, "head") || http1.EqualFold(method, "post")
	case 5:
		return http1.EqualFold(method, "patch") || http1.EqualFold(method, "trace")
	case 6:
		return http1.EqualFold(method, "delete")
	case 7:
		return http1.EqualFold(method, "options") || http1.EqualFold(method, "connect")
	}
	return false
}

// parseLine reads the line of call.Lines that begins at start and ends before
// end, and notes it as a field.
func (h *head) parseLine(call *Call, start, end int) *Fault {
	line := call.Lines[start : end-2]
	colon, fault := checkLine(line)
	if fault != nil {
		return fault
	}
	switch call.addField(start, colon, len(line), end) {
	case NameHost:
		h.hosts++
		call.Host = call.last()
	case NameExpect:
		if !http1.EqualFold(call.last(), "100-continue") {
			return faultExpect
		}
		h.expect = true
	case NameConnection:
		h.connection(call.last())
	case NameContentLength:
		h.lengths++
		return h.setLength(call.last())
	case NameTransferEncoding:
		h.codings++
		if !http1.EqualFold(call.last(), "chunked") {
			return faultCoding
		}
	}
	return nil
}

// last returns the value of the field that was noted last.
func (call *Call) last() []byte { return call.ValueOf(&call.Fields[len(call.Fields)-1]) }

// checkLine returns where the colon of a header line is, without the line's
// end.
func checkLine(line []byte) (colon int, fault *Fault) {
	if len(line) > 0 && isBlank(line[0]) {
		return 0, faultFold
	}
	colon = tokenEnd(line)
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return 0, faultName
	}
	if hasControl(line[colon+1:]) {
		return 0, faultValue
	}
	return colon, nil
}

// hasControl reports whether a value has a control character other than a tab.
func hasControl(b []byte) bool {
	const ones = 0x0101010101010101
	for len(b) >= 8 {
		// Eight bytes at once: what is below 0x20 or is 0x7f leaves a borrow in its
		// top bit. Which byte it was, and whether it was a tab, is seen one by one.
		x := binary.LittleEndian.Uint64(b)
		low, del := x-ones*0x20, x^ones*0x7f
		if (low&^x|(del-ones)&^del)&(ones*0x80) != 0 && hasControlAmong(b[:8]) {
			return true
		}
		b = b[8:]
	}
	return hasControlAmong(b)
}

func hasControlAmong(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

func (h *head) connection(value []byte) {
	for len(value) > 0 {
		var token []byte
		token, value = http1.CutElement(value)
		switch {
		case http1.EqualFold(token, "close"):
			h.close = true
		case http1.EqualFold(token, "keep-alive"):
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

// checkWhole checks what only the whole head shows.
func (h *head) checkWhole(call *Call, conf *Config) *Fault {
	if h.lengths+h.codings > 1 {
		return faultTwoLengths
	}
	if h.codings == 1 {
		if call.HTTP10 {
			return faultCoding10
		}
		h.length = -1
	}
	call.Length = h.length
	if h.length > conf.MaxBody {
		return faultBody
	}
	if h.hosts > 1 || len(call.Host) == 0 && !call.HTTP10 {
		return faultNoHost
	}
	if !isHost(call.Host) {
		return faultHost
	}
	h.close = h.close || call.HTTP10 && !h.keepAlive
	h.expect = h.expect && !call.HTTP10 && h.length != 0
	return h.splitTarget(call)
}

// splitTarget finds path and query. The absolute form of a target must name
// the host that Host names, so that the upstream cannot see another host than the
// gateway does.
func (h *head) splitTarget(call *Call) *Fault {
	t := call.target
	if t[0] != '/' && t[0] != '*' {
		scheme, rest, found := bytes.Cut(t, []byte("://"))
		if !found || !http1.EqualFold(scheme, "http") && !http1.EqualFold(scheme, "https") {
			return faultTarget
		}
		end := bytes.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		if h.hosts == 1 && !bytes.EqualFold(rest[:end], call.Host) {
			return faultHostMismatch
		}
		call.Host, t = rest[:end:end], rest[end:]
		if !isHost(call.Host) {
			return faultHost
		}
	}
	path, query, _ := bytes.Cut(t, []byte{'?'})
	call.Path, call.Query = path[:len(path):len(path)], query
	if len(path) == 0 {
		call.Path = slash
	}
	return nil
}

// isHost is http1.IsHost, but accepts none, and a comma as RFC 3986 does.
func isHost(b []byte) bool {
	for _, c := range b {
		if !http1.IsHostByte(c) && c != ',' {
			return false
		}
	}
	return true
}

var slash = []byte{'/'}

// tokenEnd returns the length of the token that b begins with.
func tokenEnd(b []byte) int {
	for i, c := range b {
		if !http1.IsTokenByte(c) {
			return i
		}
	}
	return len(b)
}
