package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/valyala/fasthttp"
)

// An Error is a response other than success. Backends return it where they know more
// than the API does.
type Error struct {
	Status     int
	Message    string
	Problems   []definition.Problem // of the request body
	RetryAfter int                  // seconds; 0: no header
	Cause      error                // for the log; nil if Message is complete
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func refuse(status int, message string) *Error { return &Error{Status: status, Message: message} }

// unavailable returns the error for something that is away.
func unavailable(message string, cause error) *Error {
	return &Error{Status: fasthttp.StatusServiceUnavailable, Message: message, RetryAfter: 1, Cause: cause}
}

// broken returns the error for an internal failure.
func broken(message string, cause error) *Error {
	return &Error{Status: fasthttp.StatusInternalServerError, Message: message, Cause: cause}
}

// outcome is the response of calls that return no object.
type outcome struct {
	Status  string               `json:"status"` // ok or error
	Message string               `json:"message"`
	Errors  []definition.Problem `json:"errors,omitempty"`
	Meta    any                  `json:"Meta,omitempty"`
}

// change is the response to a change.
type change struct {
	Key     string `json:"key"`
	Status  string `json:"status"`
	Action  string `json:"action"`
	KeyHash string `json:"key_hash,omitempty"`

	Warnings []definition.Problem `json:"warnings,omitempty"` // what was accepted and has no effect
}

// The actions of a change.
const (
	added    = "added"
	modified = "modified"
	rotated  = "rotated"
	deleted  = "deleted"
	updated  = "updated"
)

func changed(key, action string) *change { return &change{Key: key, Status: "ok", Action: action} }

// warn adds warnings about the body of the call.
func (c *change) warn(warnings []definition.Problem) *change {
	c.Warnings = warnings
	return c
}

// fail answers with an error, and logs it unless the caller caused it.
func (a *API) fail(rc *fasthttp.RequestCtx, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = broken("Internal error; the gateway's log has the cause", err)
	}
	switch {
	case e.Cause == nil:
	case e.Status == fasthttp.StatusServiceUnavailable:
		a.log.Warn("gateway API: a call could not be answered", "method", string(rc.Method()), "status", e.Status, "err", err)
	default:
		a.log.Error("gateway API: a call failed", "method", string(rc.Method()), "status", e.Status, "err", err)
	}
	if e.RetryAfter > 0 {
		rc.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(e.RetryAfter))
	}
	if rc.Request.IsBodyStream() {
		// The rest of the body must not be parsed as the next request.
		rc.SetConnectionClose()
	}
	a.answer(rc, e.Status, &outcome{Status: "error", Message: e.Message, Errors: e.Problems})
}

// answer writes value as JSON.
func (a *API) answer(rc *fasthttp.RequestCtx, status int, value any) {
	body, err := encode(value)
	if err != nil {
		a.log.Error("gateway API: encoding an answer", "err", err)
		status, body = fasthttp.StatusInternalServerError, []byte(`{"status":"error","message":"Internal error"}`)
	}
	rc.Response.SetStatusCode(status)
	rc.Response.Header.SetContentType("application/json")
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	rc.Response.SetBody(body)
}

// encode is JSON as people write it, without escapes for HTML.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
