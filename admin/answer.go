package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// envelope is the answer to every change, and to every call that went wrong.
type envelope struct {
	Status  string   `json:"Status" enum:"OK,Error"`
	Message string   `json:"Message"`
	Meta    any      `json:"Meta"`
	ID      string   `json:"ID,omitempty"`
	Errors  []string `json:"Errors,omitempty" doc:"every problem, each with the place where it is"`

	AccessKey string `json:"access_key,omitempty" doc:"shown this once"`
}

// done is the answer to a change that was made.
func done(message string, meta any) *envelope {
	return &envelope{Status: "OK", Message: message, Meta: meta}
}

// fault is an answer that says what is wrong with a call.
type fault struct {
	status  int
	message string
	errors  []string
	etag    string            // of the object as it is now; "" without one
	header  map[string]string // further headers
}

// Error returns the message.
func (f *fault) Error() string { return f.message }

func refuse(status int, message string, more ...string) *fault {
	return &fault{status: status, message: message, errors: more}
}

func badRequest(message string, more ...string) *fault {
	return refuse(fasthttp.StatusBadRequest, message, more...)
}

// notFound says of what nothing was found; it is used as an error's
// replacement, see missing.
func notFound(message string) *fault { return refuse(fasthttp.StatusNotFound, message) }

// missing replaces "not found" by what the resource says in that case.
func missing(err error, message string) error {
	if errors.Is(err, store.ErrNotFound) {
		return notFound(message)
	}
	return err
}

// faultOf turns an error into an answer, and tells whether it is one that a
// caller can bring about; any other is ours and belongs into the log.
func faultOf(err error) (f *fault, expected bool) {
	if f, ok := errors.AsType[*fault](err); ok {
		return f, true
	}
	if problems, ok := errors.AsType[*definition.Problems](err); ok {
		return invalid(problems), true
	}
	if refused, ok := errors.AsType[*schemas.Refusal](err); ok {
		return refuse(refused.Status, refused.Message, refused.Errors...), true
	}
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return conflictFault(conflict), true
	}
	if unknown, ok := errors.AsType[*store.UnknownAPIsError](err); ok {
		return unknownAPIs(unknown), true
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return notFound("Not found"), true
	case errors.Is(err, store.ErrUnstorable):
		return badRequest("Text must not hold the character U+0000"), true
	case errors.Is(err, store.ErrUnavailable):
		return unavailable("The database is not available; try again"), false
	}
	return refuse(fasthttp.StatusInternalServerError, "Internal error; the log of the admin has the cause"), false
}

func unavailable(message string) *fault {
	f := refuse(fasthttp.StatusServiceUnavailable, message)
	f.header = map[string]string{fasthttp.HeaderRetryAfter: "1"}
	return f
}

// invalid lists all problems of an object.
func invalid(problems *definition.Problems) *fault {
	f := badRequest("Validation failed")
	for _, p := range *problems {
		f.errors = append(f.errors, p.String())
	}
	if len(f.errors) == 1 {
		f.message += ": " + f.errors[0]
	}
	return f
}

func conflictFault(c *store.ConflictError) *fault {
	f := refuse(fasthttp.StatusConflict, "")
	with := strings.Join(c.With, ", ")
	switch c.Kind {
	case store.Stale:
		f.message = "The object was changed in the meantime; it is at version " + strconv.FormatInt(c.Current, 10)
		f.etag = etagOf(c.Current)
	case store.TakenID:
		f.message = "Found an object with the same ID"
	case store.TakenRoute:
		f.message = "Another API has the same domain and listen path"
		if with != "" {
			f.message += ": " + with
		}
	case store.TakenName:
		f.message = "The name is taken"
	case store.InUse:
		f.message = "Policies name this API; change them or add ?force=true: " + with
		f.errors = c.With
	case store.LastAdmin:
		f.message = "The last active admin of an organisation can neither be removed nor lose the role"
	}
	return f
}

func unknownAPIs(u *store.UnknownAPIsError) *fault {
	f := badRequest("Validation failed")
	for _, id := range u.IDs {
		f.errors = append(f.errors, fmt.Sprintf("access_rights[%q]: names an API that does not exist", id))
	}
	return f
}

// etagOf is the entity tag of an object at a version.
func etagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// write answers with a fault.
func (f *fault) write(ctx *fasthttp.RequestCtx) {
	for name, value := range f.header {
		ctx.Response.Header.Set(name, value)
	}
	if f.etag != "" {
		ctx.Response.Header.Set(fasthttp.HeaderETag, f.etag)
	}
	body, _ := encode(&envelope{Status: "Error", Message: f.message, Errors: f.errors}) // holds nothing but text
	writeJSON(ctx, f.status, body)
}

func writeJSON(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType("application/json")
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	ctx.Response.Header.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	ctx.Response.SetBody(body)
}

// encode is JSON as people wrote it, without escapes for HTML.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
