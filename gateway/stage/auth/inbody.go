package auth

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

var (
	noName       = pipeline.NewRejection(pipeline.ReasonAuthMissing, 400, "Body does not contain a user name")
	noPassword   = pipeline.NewRejection(pipeline.ReasonAuthMissing, 400, "Body does not contain a password")
	bodyTooLarge = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 413, "The request body is too large to be looked through for a user name and a password")
	bodyOverSize = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 400, "Request is too large")
	bodyUnframed = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "The request body is not framed as HTTP has it")
	bodyTooSlow  = pipeline.NewRejection(pipeline.ReasonRequestTimeout, 408, "The request body took too long")
	bodyLost     = pipeline.NewRejection(pipeline.ReasonClientGone, 499, "Client closed request")
)

// inBody finds user names and passwords in the bodies of requests.
type inBody struct {
	user, password *match.Expression
	most           int // bytes of a body that are searched
}

// newInBody returns nil if a definition does not search bodies.
func newInBody(conf *definition.BasicAuthSettings, most int) (*inBody, error) {
	if !conf.InBody() {
		return nil, nil
	}
	user, err := match.CompileGroups(conf.BodyUser)
	if err != nil {
		return nil, fmt.Errorf("basic_auth.body_user_regexp: %w", err)
	}
	password, err := match.CompileGroups(conf.BodyPassword)
	if err != nil {
		return nil, fmt.Errorf("basic_auth.body_password_regexp: %w", err)
	}
	return &inBody{user: user, password: password, most: most}, nil
}

// find appends the user name, a colon and the password to dst, and returns the index of
// the colon. It reads a streamed body into memory; the body is sent upstream unchanged.
func (b *inBody) find(dst []byte, call *wire.Call) (all []byte, colon int, refused *pipeline.Rejection) {
	body, refused := b.read(call)
	if refused != nil {
		return dst, 0, refused
	}
	var g match.Groups
	name := groupOf(b.user, &g, body)
	if len(name) == 0 {
		return dst, 0, noName
	}
	dst = append(dst, name...)
	colon = len(dst)
	password := groupOf(b.password, &g, body)
	switch {
	case len(password) == 0:
		return dst, 0, noPassword
	case len(name)+len(password) > maxToken:
		return dst, 0, notPair
	}
	return append(append(dst, ':'), password...), colon, nil
}

// groupOf returns the first match of the expression's only group.
func groupOf(e *match.Expression, g *match.Groups, body []byte) []byte {
	if !e.Find(g, body) {
		return nil
	}
	from, to, ok := g.Span(1)
	if !ok {
		return nil
	}
	return body[from:to]
}

// firstRead is the initial buffer for a streamed body, in bytes. It grows with the body,
// as the length that the client declares is not trusted.
const firstRead = 8 << 10

// read returns the whole body, which it makes one in memory.
func (b *inBody) read(call *wire.Call) ([]byte, *pipeline.Rejection) {
	switch {
	case call.Stream == nil && len(call.Body) <= b.most:
		return call.Body, nil
	case call.Stream == nil || call.Length > int64(b.most):
		return nil, bodyTooLarge
	}
	body := make([]byte, 0, firstRead)
	for {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := call.Stream.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > b.most:
			return nil, bodyTooLarge
		case err == io.EOF:
			call.SetBody(body)
			return body, nil
		case err != nil:
			return nil, unread(err)
		}
	}
}

// unread returns the rejection for a body that cannot be read.
func unread(err error) *pipeline.Rejection {
	switch {
	case errors.Is(err, wire.ErrBodyTooLarge):
		return bodyTooLarge
	case errors.Is(err, wire.ErrBodyOverLimit):
		return bodyOverSize
	case errors.Is(err, wire.ErrBodyMalformed):
		return bodyUnframed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return bodyTooSlow
	}
	return bodyLost
}
