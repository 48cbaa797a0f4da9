package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/redact"
)

// Limits on what a caller can send.
const (
	MaxBody = 4 << 20 // bytes of a body
	MaxText = 512     // bytes of a query parameter or a part of the path
)

// A Call is one request during its handler. It and what its methods return must not be
// used after the handler returned, unless they say otherwise.
type Call struct {
	HTTP     *fasthttp.RequestCtx
	Route    *Route
	Who      Principal
	OrgNamed bool // the call names the organisation that it is about, Who.Org
	PageSize int  // default number of objects on a page
}

// A Handler answers a call. Its result is sent as JSON, json.RawMessage as it is; nil
// means that the handler wrote the answer itself.
type Handler func(ctx context.Context, c *Call) (any, error)

// Write answers with a value as JSON.
func (c *Call) Write(answer any) error {
	body, ready := answer.(json.RawMessage)
	if !ready {
		var err error
		if body, err = Encode(answer); err != nil {
			return err
		}
	}
	if c.masks() {
		body = redact.JSON(body)
	}
	WriteJSON(c.HTTP, cmp.Or(c.Route.Status, fasthttp.StatusOK), body)
	return nil
}

// masks reports whether secrets in the answer are masked: for users below editor, unless
// the answer is there to show a credential.
func (c *Call) masks() bool {
	return c.Who.Role.BelowEditor() && !c.Route.Secret && !c.Route.Open
}

// SetVersion sets the ETag of the answer to the version of an object.
func (c *Call) SetVersion(version int64) {
	c.HTTP.Response.Header.Set(fasthttp.HeaderETag, ETagOf(version))
}

// CheckSizes bounds every segment of the path and every query parameter.
func (c *Call) CheckSizes() error {
	if c.HTTP.QueryArgs().Len() > 50 {
		return BadRequest("The query has more than 50 parameters")
	}
	for name, value := range c.HTTP.QueryArgs().All() {
		if len(name)+len(value) > 4*MaxText || !utf8.Valid(value) {
			return BadRequest(fmt.Sprintf("Query parameter %.40q must be UTF-8 of at most %d bytes", name, 4*MaxText))
		}
	}
	for part := range strings.SplitSeq(string(c.HTTP.Path()), "/") {
		if len(part) > MaxText || !utf8.ValidString(part) || strings.ContainsRune(part, 0) {
			return NotFound("Not found")
		}
	}
	return nil
}

// CheckType refuses bodies of another content type than that of the route. By default they
// are JSON. A body without a content type, or with
// the one that curl -d sends, counts as JSON.
func (c *Call) CheckType() error {
	if c.Route.Body == nil || len(c.HTTP.Request.Body()) == 0 {
		return nil
	}
	kind, _, _ := strings.Cut(string(c.HTTP.Request.Header.ContentType()), ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case c.Route.Media != "" && kind == c.Route.Media:
		return nil
	case c.Route.Media != "":
		return BadRequest(fmt.Sprintf("The header Content-Type must be %s, not %q", c.Route.Media, kind))
	case kind == "", kind == "application/json", kind == "application/x-www-form-urlencoded", strings.HasSuffix(kind, "+json"):
		return nil
	}
	return Refuse(fasthttp.StatusUnsupportedMediaType, "The body must be application/json, not "+kind)
}

// Param returns a parameter of the path, decoded; "" if it cannot be decoded.
func (c *Call) Param(name string) string {
	sent, _ := c.HTTP.UserValue(name).(string)
	value, err := url.PathUnescape(sent)
	if err != nil {
		return ""
	}
	return strings.Clone(value)
}

// Query returns a query parameter, or "".
func (c *Call) Query(name string) string { return string(c.HTTP.QueryArgs().Peek(name)) }

// Flag reports whether a query parameter is 1, true or yes.
func (c *Call) Flag(name string) bool {
	return slices.Contains([]string{"1", "true", "yes"}, strings.ToLower(c.Query(name)))
}

// Body returns a copy of the body, which must not be empty.
func (c *Call) Body() ([]byte, error) {
	body := bytes.TrimSpace(c.HTTP.Request.Body())
	if len(body) == 0 {
		return nil, BadRequest("Request body malformed: it is empty; JSON is expected")
	}
	return bytes.Clone(body), nil
}

// Decode decodes the body and refuses unknown members.
func (c *Call) Decode(into any) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err = dec.Decode(into)
	if err == nil {
		_, err = dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		return BadRequest("Request body malformed: something follows the JSON object")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return BadRequest(fmt.Sprintf("Request body malformed: %s must not be a JSON %s", wrong.Field, wrong.Value))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return BadRequest("Request body malformed: unknown member " + name)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return BadRequest("Request body malformed: at byte " + strconv.FormatInt(syntax.Offset, 10) + ": " + syntax.Error())
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return BadRequest("Request body malformed: it ends early")
	}
	return BadRequest("Request body malformed: " + err.Error()) // such as of a time, or of base64
}

// IfMatch returns the version in If-Match, or 0 without one.
func (c *Call) IfMatch() (int64, error) {
	text := strings.TrimSpace(string(c.HTTP.Request.Header.Peek(fasthttp.HeaderIfMatch)))
	if text == "" || text == "*" {
		return 0, nil
	}
	version, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), 10, 64)
	if err != nil || version < 1 {
		return 0, BadRequest(`If-Match must be the ETag of the object, such as "3"`)
	}
	return version, nil
}

// Author returns the author of the change that the call makes.
func (c *Call) Author(source string) store.Author {
	return store.Author{
		Org: c.Who.Org, Name: c.Who.Name, Kind: c.Who.Kind, IP: c.Address(), Source: source,
		Reason: Truncate(c.Query("reason"), MaxText),
	}
}

// AnswerWith sets the status of an answer that differs from that of the route.
func (c *Call) AnswerWith(status int) {
	route := *c.Route
	route.Status = status
	c.Route = &route
}

// NoSecret marks an answer without a credential on a route whose other answers have
// one: it may be stored for repetitions of the call.
func (c *Call) NoSecret() {
	route := *c.Route
	route.Secret = false
	c.Route = &route
}

// Source returns how a change came in: api or gateway.
func (c *Call) Source() string {
	if c.Who.Role == Gateway {
		return "gateway"
	}
	return "api"
}

// Address returns the address of the caller without a port.
func (c *Call) Address() string { return c.HTTP.RemoteIP().String() }

// Truncate cuts a text to at most n bytes, between characters.
func Truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
