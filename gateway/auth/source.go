package auth

import (
	"bytes"
	"net/textproto"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// source is where one kind of credential may stand in a request.
type source struct {
	header string // canonical name; "": in no header
	usual  bool   // header is Authorization, which is found without looking at the others
	param  string // of the query; "": in none
	cookie string // "": in none
}

func newSource(conf *definition.Auth) source {
	s := source{}
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

// orHeader returns the name that a definition gives to a parameter or a cookie:
// without one it is that of the header.
func orHeader(name string, conf *definition.Auth) string {
	if name == "" {
		return conf.Header()
	}
	return name
}

// find returns the value that counts, nil when there is none: that of a cookie
// before that of a parameter before that of the header, where an empty one does
// not count. It aliases the request or ex.TokenBuf, and does not allocate once
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

// trim takes blanks off both ends; bytes.Trim takes four times as long.
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
