package upstream

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
)

// forwarded carries a request's header lines over, and what earlier proxies
// said in them of where the request comes from.
type forwarded struct {
	trusted    bool // the peer is a proxy that is believed
	many       bool // the request is for several clients
	userAgent  bool // the client sent one
	connection http1.Connection

	upgrade      []byte // protocols that the client would rather speak
	upgradeTwice bool   // more than one line names such

	chain             [8][]byte // values of X-Forwarded-For, the last ones, in their order
	links             int
	proto, host, port []byte

	trace    *pipeline.Trace // that the request is part of
	unwanted uint8           // bits of own lines that a stage drops: it wants none, or sends its own
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
	ownTrace
)

// ownNames are the lines' names in the order of their bits.
var ownNames = [...]string{
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-IP", "X-Request-Id", "User-Agent", "Traceparent",
}

// ofMany leaves out what differs between clients: the connection to the upstream may serve
// many of them.
func (s *forwarded) ofMany() {
	s.trusted, s.many = false, true
	s.unwanted |= ownFor | ownReal | ownID | ownTrace
}

// copyLines appends the client's header lines but those that are for one
// connection only, that are made anew, or that drop names. The server has made
// sure that each is one name and one value: runs of those that pass are copied as
// they are.
func (s *forwarded) copyLines(dst []byte, call *wire.Call, drop []string) ([]byte, error) {
	start, kept := len(dst), int32(0)
	for i := range call.Fields {
		f := &call.Fields[i]
		pass := f.Name == wire.NameOther && !isDisguised(call.NameOf(f)) || f.Name != wire.NameOther && s.passes(call, f)
		if pass && (len(drop) == 0 || !http1.AnySameVariable(call.NameOf(f), drop)) {
			continue
		}
		dst = append(dst, call.Lines[kept:f.Start]...)
		kept = f.End
	}
	dst = append(dst, call.Lines[kept:]...)
	if s.connection.TooMany {
		return dst, errHeader
	}
	for _, name := range drop {
		for i, own := range ownNames {
			if len(name) == len(own) && strings.EqualFold(name, own) {
				s.unwanted |= 1 << i
			}
		}
	}
	return dst[:start+len(s.connection.Strip(dst[start:]))], nil
}

// passes reports whether a line with a known name is forwarded.
func (s *forwarded) passes(call *wire.Call, f *wire.Field) (pass bool) {
	switch f.Name {
	case wire.NameHost, wire.NameTE, wire.NameTrailer, wire.NameExpect, wire.NameKeepAlive, wire.NameXRealIP, wire.NameXRequestID,
		wire.NameContentLength, wire.NameTransferEncoding,
		wire.NameProxyConnection, wire.NameProxyAuthenticate, wire.NameProxyAuthorization:
		return false
	case wire.NameForwarded:
		return s.trusted
	case wire.NameConnection:
		s.connection.Add(call.ValueOf(f))
		return false
	case wire.NameUpgrade:
		s.upgradeTwice = s.upgrade != nil
		s.upgrade = call.ValueOf(f)
		return false
	case wire.NameUserAgent:
		s.userAgent = true
	case wire.NameTraceparent:
		return !s.trace.Own && !s.many
	case wire.NameTracestate:
		return !s.trace.Stateless && !s.many
	case wire.NameXForwarded, wire.NameXForwardedFor, wire.NameXForwardedHost, wire.NameXForwardedPort, wire.NameXForwardedProto:
		return s.trusted && s.record(f.Name, call.ValueOf(f))
	}
	return true
}

// record keeps the value of an X-Forwarded- line from a trusted peer, and reports
// whether the line is forwarded unchanged.
func (s *forwarded) record(name wire.Name, value []byte) (pass bool) {
	switch name {
	case wire.NameXForwardedFor:
		if s.links == len(s.chain) { // the first ones are the least certain
			copy(s.chain[:], s.chain[1:])
			s.links--
		}
		s.chain[s.links] = value
		s.links++
	case wire.NameXForwardedProto:
		if http1.EqualFold(value, "http") || http1.EqualFold(value, "https") {
			s.proto = value
		}
	case wire.NameXForwardedHost:
		if http1.IsHost(value) {
			s.host = value
		}
	case wire.NameXForwardedPort:
		if n, err := strconv.ParseUint(string(value), 10, 16); err == nil && n > 0 {
			s.port = value
		}
	default:
		return true
	}
	return false
}

// isDisguised reports whether an unknown name would look like one that the gateway sets
// to an upstream that turns headers into variables, as CGI does.
func isDisguised(name []byte) bool {
	if len(name) < len("X-Real-IP") || name[0]|0x20 != 'x' {
		return false
	}
	const prefix = "X-Forwarded-"
	return http1.SameVariable(name, "X-Real-IP") ||
		len(name) >= len(prefix) && http1.SameVariable(name[:len(prefix)], prefix) ||
		http1.SameVariable(name, "X-Request-Id")
}

var (
	schemeHTTP  = []byte("http")
	schemeHTTPS = []byte("https")
)

func (s *forwarded) wants(line uint8) bool { return s.unwanted&line == 0 }

// appendOwn appends the lines that say where the request comes from.
func (s *forwarded) appendOwn(dst []byte, ex *pipeline.Exchange) []byte {
	dst = s.appendAddresses(dst, ex)
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
		dst = appendLine(dst, "X-Request-Id: ", ex.RequestID())
	}
	if !s.userAgent && s.wants(ownAgent) {
		dst = append(dst, "User-Agent: sluice\r\n"...)
	}
	if s.trace.Own && s.wants(ownTrace) {
		dst = append(s.trace.AppendParent(append(dst, "Traceparent: "...)), "\r\n"...)
	}
	return dst
}

// appendAddresses appends X-Forwarded-For, which is what the chain was and the
// peer, and X-Real-IP.
func (s *forwarded) appendAddresses(dst []byte, ex *pipeline.Exchange) []byte {
	peer := ex.Call.Peer
	var text []byte // of peer
	if s.wants(ownFor) && (s.links > 0 || peer.IsValid()) {
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
			at := len(dst)
			dst = appendAddress(dst, peer)
			text = dst[at:]
		}
		dst = append(dst, "\r\n"...)
	}
	if !s.wants(ownReal) || !ex.Client.IsValid() {
		return dst
	}
	dst = append(dst, "X-Real-IP: "...)
	if len(text) > 0 && ex.Client == peer {
		dst = append(dst, text...)
	} else {
		dst = appendAddress(dst, ex.Client)
	}
	return append(dst, "\r\n"...)
}

func appendAddress(dst []byte, a netip.Addr) []byte {
	if a.Is4() {
		return a.AppendTo(dst)
	}
	return a.WithZone("").AppendTo(dst)
}

var (
	port80  = []byte("80")
	port443 = []byte("443")
)

// portOf returns the port that the client called.
func (s *forwarded) portOf(host, proto []byte) []byte {
	if len(s.port) > 0 {
		return s.port
	}
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && i+1 < len(host) && isDigits(host[i+1:]) &&
		(host[0] != '[' || host[i-1] == ']') {
		return host[i+1:]
	}
	if http1.EqualFold(proto, "https") {
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
