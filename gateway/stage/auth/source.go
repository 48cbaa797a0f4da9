package auth

import (
	"bytes"
	"net/textproto"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// source is where a credential may be in a request.
type source struct {
	header string // canonical name; "": not in a header
	usual  bool   // header is Authorization, which the server has indexed
	param  string // query parameter; "": not in the query
	cookie string // "": not in a cookie
	late   bool   // header may also come in connection_init
}

func newSource(conf *definition.Auth) source {
	s := source{late: conf.UseConnectionInit}
	if !conf.DisableHeader {
		s.header = headerOf(conf)
		s.usual = s.header == "Authorization"
	}
	if conf.UseParam {
		s.param = orHeader(conf.ParamName, conf)
	}
	if conf.UseCookie {
		s.cookie = orHeader(conf.CookieName, conf)
	}
	return s
}

// headerOf returns the canonical name of the header that holds the credential.
func headerOf(conf *definition.Auth) string { return textproto.CanonicalMIMEHeaderKey(conf.Header()) }

// orHeader returns the name of a parameter or a cookie, which is that of the header
// by default.
func orHeader(name string, conf *definition.Auth) string {
	if name == "" {
		return conf.Header()
	}
	return name
}

// find returns the first value that is not empty of the cookie, the parameter and the
// header, or nil. It aliases the request or ex.TokenBuf, and does not allocate once
// that has grown.
func (s *source) find(ex *pipeline.Exchange) []byte {
	if s.cookie != "" {
		if value := cookieOf(ex.Call, s.cookie); len(value) > 0 {
			return value
		}
	}
	if s.param != "" {
		if value := parameterOf(ex, s.param); len(value) > 0 {
			return value
		}
	}
	if s.usual {
		return ex.Call.Get(wire.NameAuthorization)
	}
	if s.header != "" {
		return ex.Call.Header(s.header)
	}
	return nil
}

var bearer = []byte("bearer")

// withoutScheme returns a header's value without surrounding blanks and without
// a leading "Bearer" in any case. A scheme alone is no credential.
func withoutScheme(value []byte) []byte {
	value = trim(value)
	if len(value) < len(bearer) || !bytes.EqualFold(value[:len(bearer)], bearer) {
		return value
	}
	rest := value[len(bearer):]
	if len(rest) > 0 && !isBlank(rest[0]) {
		return value // the key itself begins that way
	}
	return trim(rest)
}

// trim removes blanks from both ends; bytes.Trim takes four times as long.
func trim(value []byte) []byte {
	for len(value) > 0 && isBlank(value[0]) {
		value = value[1:]
	}
	for len(value) > 0 && isBlank(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	return value
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// parameterOf returns the value of the first parameter of a name, or nil if there is
// none or it cannot be decoded. It aliases the query or ex.TokenBuf.
func parameterOf(ex *pipeline.Exchange, name string) []byte {
	for rest := ex.Call.Query; len(rest) > 0; {
		var written, value []byte
		if _, written, value, rest = vars.CutPair(rest); !vars.EqualsDecoded(written, name) {
			continue
		}
		if vars.IsPlain(value) {
			return value
		}
		decoded, whole := vars.AppendDecoded(ex.TokenBuf[:0], value)
		ex.TokenBuf = decoded
		if !whole {
			return nil
		}
		return decoded
	}
	return nil
}

// stripParameter removes every parameter of a name from the query that is sent
// upstream, as the upstream may read another than the first.
func stripParameter(ex *pipeline.Exchange, name string) {
	if asked := ex.Query(); vars.HasParameter(asked, name) {
		// Perhaps in place: less is written than was read.
		ex.Outgoing.Query, ex.Outgoing.HasQuery = vars.WithoutParameter(ex.Outgoing.Query[:0], asked, name), true
	}
}
