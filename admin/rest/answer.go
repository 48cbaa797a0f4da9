// Package rest is what all routes of the admin share: roles and credentials, reading
// parameters and bodies, answers and faults, paging, throttling of guesses, and the
// OpenAPI document.
package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// Envelope is the answer to every change and to every failed call.
type Envelope struct {
	// OK if the call did what it is for, else Error.
	Status string `json:"Status" enum:"OK,Error"`
	// What was done or what is wrong, in English. Calls that create an object may have its id here.
	Message string `json:"Message"`
	// Further result of the call, such as the id of a new object or the number of a revision; null:
	// none.
	Meta any `json:"Meta"`
	// Id of the object that was created; left out by other calls.
	ID string `json:"ID,omitempty"`
	// All problems, each with the place where it is.
	// Example: ["proxy.listen_path: must begin with a slash"]
	Errors []string `json:"Errors,omitempty"`

	// The problems of Errors, with the places apart.
	Problems []Problem `json:"Problems,omitempty"`

	// What was accepted and has no effect, each with the place where it is.
	Warnings []string `json:"Warnings,omitempty"`

	// New access key of a user, shown this once.
	AccessKey string `json:"access_key,omitempty"`
	// Link that signs a new user in once, shown this once.
	Invitation string `json:"invitation,omitempty"`
}

// Done returns the answer to a change that was made.
func Done(message string, meta any) *Envelope {
	return &Envelope{Status: "OK", Message: message, Meta: meta}
}

// Fault is the answer to a failed call.
type Fault struct {
	Status  int
	Message string
	Errors  []string

	Problems []Problem // what Errors says, with places; nil: it is taken from there

	ETag   string            // of the object as it is now; "" without one
	Header map[string]string // further headers
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// Refuse returns a fault with a status, a message and a list of problems.
func Refuse(status int, message string, more ...string) *Fault {
	return &Fault{Status: status, Message: message, Errors: more}
}

// BadRequest returns a fault with status 400.
func BadRequest(message string, more ...string) *Fault {
	return Refuse(fasthttp.StatusBadRequest, message, more...)
}

// NotFound returns a fault with status 404.
func NotFound(message string) *Fault { return Refuse(fasthttp.StatusNotFound, message) }

// Missing replaces store.ErrNotFound by a fault with status 404 and the message, and
// returns other errors as they are.
func Missing(err error, message string) error {
	if errors.Is(err, store.ErrNotFound) {
		return NotFound(message)
	}
	return err
}

// A Refusal is an error of a package that does not import this one and knows how it is
// to be answered.
type Refusal interface {
	error

	// Refused returns the status, the message, and the problems if there are several.
	Refused() (status int, message string, problems []string)
}

// FaultOf turns an error into an answer. Expected reports whether the caller caused it;
// other errors belong into the log.
func FaultOf(err error) (f *Fault, expected bool) {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f, true
	}
	if problems, ok := errors.AsType[*definition.Problems](err); ok {
		return invalid(problems), true
	}
	if refusal, ok := errors.AsType[Refusal](err); ok {
		status, message, problems := refusal.Refused()
		f := Refuse(status, message, problems...)
		if about, ok := refusal.(interface{ About() string }); ok {
			f.Problems = aboutOne(problemsOf(problems), about.About())
		}
		return f, true
	}
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return conflictFault(conflict), true
	}
	if unknown, ok := errors.AsType[*store.UnknownAPIsError](err); ok {
		return unknownAPIs(unknown), true
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return NotFound("Not found"), true
	case errors.Is(err, store.ErrUnstorable):
		return BadRequest("Text must not hold the character U+0000"), true
	case errors.Is(err, store.ErrAuditSpent):
		f := Refuse(fasthttp.StatusTooManyRequests, "Too many changes in a day; try again tomorrow")
		f.Header = map[string]string{fasthttp.HeaderRetryAfter: "3600"}
		return f, true
	case errors.Is(err, store.ErrUnavailable):
		return DatabaseAway("The database is not available; try again"), false
	}
	return Refuse(fasthttp.StatusInternalServerError, "Internal error; the log of the admin has the cause"), false
}

// Unavailable returns a fault with status 503: the call can be tried again in a second.
func Unavailable(message string) *Fault {
	f := Refuse(fasthttp.StatusServiceUnavailable, message)
	f.Header = map[string]string{fasthttp.HeaderRetryAfter: "1"}
	return f
}

// DatabaseAway is Unavailable for want of the database, which the answer names for
// gateways.
func DatabaseAway(message string) *Fault {
	f := Unavailable(message)
	f.Header[definition.AwayHeader] = definition.AwayDatabase
	return f
}

// invalid returns the fault for an object with problems.
func invalid(problems *definition.Problems) *Fault {
	f := BadRequest("Validation failed", problems.Texts()...)
	f.Problems = placed(*problems)
	if len(f.Errors) == 1 {
		f.Message += ": " + f.Errors[0]
	}
	return f
}

func conflictFault(c *store.ConflictError) *Fault {
	f := Refuse(fasthttp.StatusConflict, "")
	with := strings.Join(c.With, ", ")
	switch c.Kind {
	case store.Stale:
		f.Message = "The object was changed in the meantime; it is at version " + strconv.FormatInt(c.Current, 10)
		f.ETag = ETagOf(c.Current)
	case store.TakenID:
		f.Message = "Found an object with the same ID"
	case store.TakenRoute:
		f.Message = "Another API has the same domain and listen path"
		if with != "" {
			f.Message += ": " + with
		}
	case store.TakenName:
		f.Message = "The name is taken"
	case store.InUse:
		f.Message = "Policies name this API; change them or add ?force=true: " + with
		f.Errors = c.With
	case store.Composed:
		f.Message = "Supergraphs are composed of this API; take it out of their graphql.supergraph.subgraphs or add ?force=true: " + with
		f.Errors = c.With
	case store.LastAdmin:
		f.Message = "The last active admin of an organisation can neither be removed nor lose the role"
	case store.NotEmpty:
		f.Message = "The organisation still has " + with + "; delete them or add ?force=true"
		f.Errors = c.With
	case store.FirstOrg:
		f.Message = "The first organisation cannot end: its admins manage all others"
	case store.TooMany:
		f.Message = "The organisation has as many as it may have: " + with
	}
	return f
}

func unknownAPIs(u *store.UnknownAPIsError) *Fault {
	f := BadRequest("Validation failed")
	for _, id := range u.IDs {
		f.Errors = append(f.Errors, fmt.Sprintf("access_rights[%q]: names an API that does not exist", id))
	}
	return f
}

// ETagOf returns the entity tag of an object at a version.
func ETagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// Locate adds where in the body of the call its problems are.
func (f *Fault) Locate(body []byte) {
	if f.Problems == nil && f.Status == fasthttp.StatusBadRequest {
		f.Problems = problemsOf(f.Errors)
	}
	locate(f.Problems, body)
}

// Write answers with the fault.
func (f *Fault) Write(ctx *fasthttp.RequestCtx) {
	for name, value := range f.Header {
		ctx.Response.Header.Set(name, value)
	}
	if f.ETag != "" {
		ctx.Response.Header.Set(fasthttp.HeaderETag, f.ETag)
	}
	body, _ := Encode(&Envelope{Status: "Error", Message: f.Message, Errors: f.Errors, Problems: f.Problems}) // holds nothing but text
	WriteJSON(ctx, f.Status, body)
}

// WriteJSON answers with a body that must not be cached.
func WriteJSON(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType("application/json")
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	ctx.Response.Header.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	ctx.Response.SetBody(body)
}

// Time returns a time as JSON has it, in RFC 3339; nil stays nil.
func Time(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(t.UTC().Format(time.RFC3339))
}

// Encode returns JSON without escapes for HTML.
func Encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
