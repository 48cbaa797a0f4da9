package upstream

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// forwarded carries a request's header lines over, and what earlier proxies
// said in them of where the request comes from.
type forwarded struct {
	trusted    bool // the peer is a proxy that is believed
	userAgent  bool // the client sent one
	connection connectionLists

	chain             [8][]byte // values of X-Forwarded-For, the last ones, in their order
	links             int
	proto, host, port []byte

	unwanted uint8 // bits of own lines that a stage drops: it wants none, or sends its own
}

// The lines that are made here, as bits of forwarded.unwanted.
const (
	ownFor uint8 = 1 << iota
	ownHost
	ownProto
	ownPort
	ownReal
	ownID
	ownAgent
)

// ownNames are the lines' names in the order of their bits.
var ownNames = [...]string{
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-IP", "X-Request-Id", "User-Agent",
}

// copyLines appends the client's header lines but those that are for one
// connection only, that are made anew, or that drop names. A line that is not
// one name and one value is left out: other readers could split it elsewhere.
func (s *forwarded) copyLines(dst, lines []byte, drop []string) ([]byte, error) {
	if bytes.IndexByte(lines, 0) >= 0 {
		return dst, errHeader
	}
	start := len(dst)
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n')
		line := lines
		if end >= 0 {
			line, lines = lines[:end], lines[end+1:]
		} else {
			lines = nil
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || !isToken(line[:colon]) || bytes.IndexByte(line, '\r') >= 0 {
			continue
		}
		pass, ok := s.look(line[:colon], line[colon+1:])
		if !ok {
			return dst, errHeader
		}
		if pass && !isDropped(line[:colon], drop) {
			dst = append(dst, line...)
			dst = append(dst, "\r\n"...)
		}
	}
	for _, name := range drop {
		for i, own := range ownNames {
			if strings.EqualFold(name, own) {
				s.unwanted |= 1 << i
			}
		}
	}
	return dst[:start+len(s.connection.strip(dst[start:]))], nil
}

// look tells whether a line may pass. It returns !ok when the request must not
// go on.
func (s *forwarded) look(name, value []byte) (pass, ok bool) {
	switch len(name) {
	case len("te"):
		return !equalFold(name, "te"), true
	case len("host"):
		return !equalFold(name, "host"), true
	case len("expect"):
		return !equalFold(name, "expect"), true
	case len("upgrade"):
		return !equalFold(name, "upgrade") && !equalFold(name, "trailer"), true
	case len("forwarded"):
		return !equalFold(name, "x-real-ip") && (s.trusted || !equalFold(name, "forwarded")), true
	case len("connection"):
		switch {
		case equalFold(name, "connection"):
			return false, s.connection.add(value)
		case equalFold(name, "user-agent"):
			s.userAgent = true
		case equalFold(name, "keep-alive"):
			return false, true
		}
	case len("x-request-id"):
		return !equalFold(name, "x-request-id"), true
	case len("content-length"):
		if equalFold(name, "content-length") {
			return false, true
		}
	case len("proxy-connection"):
		if equalFold(name, "proxy-connection") {
			return false, true
		}
	case len("transfer-encoding"):
		if equalFold(name, "transfer-encoding") {
			return false, true
		}
	case len("proxy-authenticate"):
		return !equalFold(name, "proxy-authenticate"), true
	case len("proxy-authorization"):
		if equalFold(name, "proxy-authorization") {
			return false, true
		}
	}
	if hasPrefixFold(name, "x-forwarded-") {
		return s.hear(name[len("x-forwarded-"):], trim(value)), true
	}
	return true, true
}

// hear notes what an X-Forwarded- line says if it comes from somebody who is
// believed, and tells whether the line passes as it is.
func (s *forwarded) hear(what, value []byte) (pass bool) {
	switch {
	case !s.trusted:
		return false
	case equalFold(what, "for"):
		if s.links == len(s.chain) { // the first ones are the least certain
			copy(s.chain[:], s.chain[1:])
			s.links--
		}
		s.chain[s.links] = value
		s.links++
	case equalFold(what, "proto"):
		if equalFold(value, "http") || equalFold(value, "https") {
			s.proto = value
		}
	case equalFold(what, "host"):
		if isHost(value) {
			s.host = value
		}
	case equalFold(what, "port"):
		if n, err := strconv.ParseUint(string(value), 10, 16); err == nil && n > 0 {
			s.port = value
		}
	default:
		return true
	}
	return false
}

func isHost(b []byte) bool {
	for _, c := range b {
		if !hostByte[c] {
			return false
		}
	}
	return len(b) > 0
}

func isDropped(name []byte, drop []string) bool {
	for _, d := range drop {
		if len(d) == len(name) && equalNames(name, d) {
			return true
		}
	}
	return false
}

// equalNames compares two names of one length.
func equalNames(a []byte, b string) bool {
	for i := range len(b) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

var (
	schemeHTTP  = []byte("http")
	schemeHTTPS = []byte("https")
)

func (s *forwarded) wants(line uint8) bool { return s.unwanted&line == 0 }

// appendOwn appends the lines that tell the upstream where the request comes
// from.
func (s *forwarded) appendOwn(dst []byte, ex *pipeline.Exchange) []byte {
	if s.wants(ownFor) {
		dst = s.appendChain(dst, ex.Call.Peer)
	}
	if s.wants(ownReal) && ex.Client.IsValid() {
		dst = append(dst, "X-Real-IP: "...)
		dst = ex.Client.WithZone("").AppendTo(dst)
		dst = append(dst, "\r\n"...)
	}
	proto, host := s.proto, s.host
	switch {
	case len(proto) > 0:
	case ex.Call.TLS:
		proto = schemeHTTPS
	default:
		proto = schemeHTTP
	}
	if len(host) == 0 {
		host = ex.Call.Host
	}
	if s.wants(ownProto) {
		dst = appendLine(dst, "X-Forwarded-Proto: ", proto)
	}
	if s.wants(ownHost) && len(host) > 0 {
		dst = appendLine(dst, "X-Forwarded-Host: ", host)
	}
	if s.wants(ownPort) {
		dst = appendLine(dst, "X-Forwarded-Port: ", s.portOf(host, proto))
	}
	if s.wants(ownID) && ex.ID[0] != 0 {
		dst = appendLine(dst, "X-Request-Id: ", ex.ID[:])
	}
	if !s.userAgent && s.wants(ownAgent) {
		dst = append(dst, "User-Agent: sluice\r\n"...)
	}
	return dst
}

// appendChain appends X-Forwarded-For: what the chain was, and the peer.
func (s *forwarded) appendChain(dst []byte, peer netip.Addr) []byte {
	if s.links == 0 && !peer.IsValid() {
		return dst
	}
	dst = append(dst, "X-Forwarded-For: "...)
	for i, link := range s.chain[:s.links] {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, link...)
	}
	if peer.IsValid() {
		if s.links > 0 {
			dst = append(dst, ", "...)
		}
		dst = peer.WithZone("").AppendTo(dst)
	}
	return append(dst, "\r\n"...)
}

var (
	port80  = []byte("80")
	port443 = []byte("443")
)

// portOf is the port that the client asked for.
func (s *forwarded) portOf(host, proto []byte) []byte {
	if len(s.port) > 0 {
		return s.port
	}
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && i+1 < len(host) && isDigits(host[i+1:]) &&
		(host[0] != '[' || host[i-1] == ']') {
		return host[i+1:]
	}
	if equalFold(proto, "https") {
		return port443
	}
	return port80
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

func appendLine(dst []byte, name string, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}
