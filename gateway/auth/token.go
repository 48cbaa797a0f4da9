package auth

import (
	"bytes"
	"net/textproto"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// token is a credential in a header, with or without "Bearer" before it.
type token struct {
	header string
	usual  bool // header is Authorization, which is found without looking at the others
}

func newToken(conf *definition.Auth) *token {
	header := headerOf(conf)
	return &token{header: header, usual: header == "Authorization"}
}

// headerOf returns the canonical name of the header that holds the credential.
func headerOf(conf *definition.Auth) string { return textproto.CanonicalMIMEHeaderKey(conf.Header()) }

func (t *token) credential(ex *pipeline.Exchange) []byte {
	if t.usual {
		return withoutScheme(ex.Call.Get(wire.NameAuthorization))
	}
	return withoutScheme(ex.Call.Header(t.header))
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
