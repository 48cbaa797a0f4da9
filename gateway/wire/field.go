package wire

import (
	"bytes"

	"github.com/sluicegate/sluice/internal/http1"
)

// A Field is one header line, by offsets into Call.Lines.
type Field struct {
	Start, Colon int32 // the name
	From, To     int32 // the value, without the blanks around it
	End          int32 // behind the line's CRLF, where the next line starts
	Name         Name
}

// Name identifies a header name that the gateway looks for in every request.
type Name uint8

// The names, in the order of their length.
const (
	NameOther Name = iota
	NameTE
	NameHost
	NameAccept
	NameCookie
	NameExpect
	NameOrigin
	NameTrailer
	NameUpgrade
	NameForwarded
	NameXRealIP
	NameConnection
	NameKeepAlive
	NameTracestate
	NameUserAgent
	NameTraceparent
	NameContentType
	NameXRequestID
	NameAuthorization
	NameContentLength
	NameXForwardedFor
	NameAcceptEncoding
	NameContentEncoding
	NameProxyConnection
	NameXForwardedHost
	NameXForwardedPort
	NameTransferEncoding
	NameXForwardedProto
	NameProxyAuthenticate
	NameProxyAuthorization
	NameXForwarded // any other that begins with X-Forwarded-
)

// nameOf returns which of the names a header name is, in whatever case.
func nameOf(b []byte) Name {
	switch len(b) {
	case 2:
		return either(b, "te", NameTE)
	case 4:
		return either(b, "host", NameHost)
	case 6:
		return nameOf6(b)
	case 7:
		if b[0]|0x20 == 't' {
			return either(b, "trailer", NameTrailer)
		}
		return either(b, "upgrade", NameUpgrade)
	case 9:
		if b[0]|0x20 == 'x' {
			return either(b, "x-real-ip", NameXRealIP)
		}
		return either(b, "forwarded", NameForwarded)
	case 10:
		return nameOf10(b)
	case 11:
		return either(b, "traceparent", NameTraceparent)
	case 12:
		if b[0]|0x20 == 'x' {
			return orForwarded(b, either(b, "x-request-id", NameXRequestID))
		}
		return either(b, "content-type", NameContentType)
	case 13:
		return orForwarded(b, either(b, "authorization", NameAuthorization))
	case 14:
		return orForwarded(b, either(b, "content-length", NameContentLength))
	}
	return nameOfLong(b)
}

func either(b []byte, lower string, name Name) Name {
	if http1.EqualFold(b, lower) {
		return name
	}
	return NameOther
}

func nameOf6(b []byte) Name {
	switch b[0] | 0x20 {
	case 'a':
		return either(b, "accept", NameAccept)
	case 'c':
		return either(b, "cookie", NameCookie)
	case 'e':
		return either(b, "expect", NameExpect)
	case 'o':
		return either(b, "origin", NameOrigin)
	}
	return NameOther
}

func nameOf10(b []byte) Name {
	switch b[0] | 0x20 {
	case 'c':
		return either(b, "connection", NameConnection)
	case 'k':
		return either(b, "keep-alive", NameKeepAlive)
	case 't':
		return either(b, "tracestate", NameTracestate)
	case 'u':
		return either(b, "user-agent", NameUserAgent)
	}
	return NameOther
}

// nameOfLong is nameOf for 15 bytes and more.
func nameOfLong(b []byte) Name {
	if len(b) < 15 {
		return NameOther
	}
	name := NameOther
	switch b[0] | 0x20 {
	case 'a':
		name = either(b, "accept-encoding", NameAcceptEncoding)
	case 'c':
		name = either(b, "content-encoding", NameContentEncoding)
	case 't':
		name = either(b, "transfer-encoding", NameTransferEncoding)
	case 'p':
		switch len(b) {
		case len("proxy-connection"):
			name = either(b, "proxy-connection", NameProxyConnection)
		case len("proxy-authenticate"):
			name = either(b, "proxy-authenticate", NameProxyAuthenticate)
		case len("proxy-authorization"):
			name = either(b, "proxy-authorization", NameProxyAuthorization)
		}
	case 'x':
		name = orForwarded(b, NameOther)
	}
	return name
}

const forwardedPrefix = "x-forwarded-"

// orForwarded returns name, or which of the X-Forwarded- names b is.
func orForwarded(b []byte, name Name) Name {
	if name != NameOther || b[0]|0x20 != 'x' || !http1.EqualFold(b[:len(forwardedPrefix)], forwardedPrefix) {
		return name
	}
	switch what := b[len(forwardedPrefix):]; {
	case http1.EqualFold(what, "for"):
		return NameXForwardedFor
	case http1.EqualFold(what, "host"):
		return NameXForwardedHost
	case http1.EqualFold(what, "port"):
		return NameXForwardedPort
	case http1.EqualFold(what, "proto"):
		return NameXForwardedProto
	}
	return NameXForwarded
}

// NameOf returns the name of a field as the client wrote it.
func (call *Call) NameOf(f *Field) []byte { return call.Lines[f.Start:f.Colon:f.Colon] }

// ValueOf returns the value of a field, without the blanks around it.
func (call *Call) ValueOf(f *Field) []byte { return call.Lines[f.From:f.To:f.To] }

// Find returns the first field of a name, or nil. NameOther and NameXForwarded
// stand for many names, and are found by walking Fields.
func (call *Call) Find(name Name) *Field {
	if call.names>>name&1 == 0 {
		return nil
	}
	for i := range call.Fields {
		if call.Fields[i].Name == name {
			return &call.Fields[i]
		}
	}
	return nil
}

// Get returns the value of the first field of a name, as Find finds it; nil
// when there is none.
func (call *Call) Get(name Name) []byte {
	if f := call.Find(name); f != nil {
		return call.ValueOf(f)
	}
	return nil
}

// Is reports whether a field has a name, in upper or lower case.
func (call *Call) Is(f *Field, name string) bool {
	return http1.EqualFold(call.Lines[f.Start:f.Colon], name)
}

// Header returns the value of the first header line of a name, in whatever
// case; nil when there is none. For the names that have a Name, Get is quicker.
func (call *Call) Header(name string) []byte {
	for i := range call.Fields {
		f := &call.Fields[i]
		if call.Is(f, name) {
			return call.ValueOf(f)
		}
	}
	return nil
}

// SetLines makes lines the call's header lines. It finds the fields in them but
// checks nothing: lines without a colon are left out of Fields. Servers do not
// need it, as the requests they read have their fields already.
func (call *Call) SetLines(lines []byte) {
	call.Lines, call.Fields, call.names = lines, call.Fields[:0], 0
	for start := 0; start < len(lines); {
		end := len(lines)
		if i := bytes.IndexByte(lines[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		line := bytes.TrimRight(lines[start:end], "\r\n")
		if colon := bytes.IndexByte(line, ':'); colon >= 0 {
			call.addField(start, colon, len(line), end)
		}
		start = end
	}
}

// addField notes the line that begins at start. colon and size are relative to
// that, end is not.
func (call *Call) addField(start, colon, size, end int) Name {
	line := call.Lines[start : start+size]
	from, to := colon+1, size
	for from < to && isBlank(line[from]) {
		from++
	}
	for to > from && isBlank(line[to-1]) {
		to--
	}
	name := nameOf(line[:colon])
	call.names |= 1 << name
	call.Fields = append(call.Fields, Field{
		Start: int32(start), Colon: int32(start + colon), From: int32(start + from), To: int32(start + to), End: int32(end), Name: name,
	})
	return name
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
