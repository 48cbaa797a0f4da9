package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
)

// Limits on what a caller can send.
const (
	maxBody = 4 << 20 // bytes of a body
	maxText = 512     // bytes of a query parameter or a part of the path
)

// answerWithin bounds the work on one call; a long-poll waits beside it.
const answerWithin = 10 * time.Second

// A call is one request on its way through its handler. It and what it returns
// are dead once the handler has returned.
type call struct {
	http  *fasthttp.RequestCtx
	route *route
	who   principal
}

// A handler answers a call. What it returns is sent as JSON, raw JSON as it is;
// nil means that it has written the answer itself.
type handler func(ctx context.Context, c *call) (any, error)

// handler routes all requests.
func (s *Server) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = func(ctx *fasthttp.RequestCtx) { notFound("Not found").write(ctx) }
	r.MethodNotAllowed = func(ctx *fasthttp.RequestCtx) {
		refuse(fasthttp.StatusMethodNotAllowed, "Method not allowed; see the header Allow").write(ctx)
	}
	for _, route := range s.routes() {
		serve := func(ctx *fasthttp.RequestCtx) { s.serve(ctx, &route) }
		r.Handle(route.method, route.path, serve)
		if route.method == fasthttp.MethodGet {
			r.Handle(fasthttp.MethodHead, route.path, serve)
		}
	}
	if s.deps.Scrape != nil {
		r.GET("/metrics", s.deps.Scrape)
	}
	return func(ctx *fasthttp.RequestCtx) {
		defer s.recover(ctx)
		if ambiguous(ctx) {
			ctx.SetConnectionClose()
			badRequest("The request has both a length and a transfer encoding").write(ctx)
			return
		}
		dropFinalSlash(ctx.URI())
		r.Handler(ctx)
	}
}

// dropFinalSlash makes both spellings of a path the same. The router could not
// hold them both: it takes the second for the first one's redirection.
func dropFinalSlash(uri *fasthttp.URI) {
	if path := uri.PathOriginal(); len(path) > 1 && path[len(path)-1] == '/' {
		uri.SetPathBytes(bytes.Clone(path[:len(path)-1]))
	}
}

// ambiguous tells whether a request's end could be read in two ways (RFC 9112,
// section 6.1). The library settles for one of them and forgets the other, but
// for what was sent.
func ambiguous(ctx *fasthttp.RequestCtx) bool {
	length, encoding := false, false
	for line := range bytes.SplitSeq(ctx.Request.Header.RawHeaders(), []byte{'\n'}) {
		name, _, _ := bytes.Cut(line, []byte{':'})
		switch name = bytes.TrimSpace(name); {
		case strings.EqualFold(string(name), fasthttp.HeaderContentLength):
			length = true
		case strings.EqualFold(string(name), fasthttp.HeaderTransferEncoding):
			encoding = true
		}
	}
	return length && encoding
}

// recover answers a call whose handler panicked: it must not take the process
// with it.
func (s *Server) recover(ctx *fasthttp.RequestCtx) {
	cause := recover()
	if cause == nil {
		return
	}
	// Not the path: it may hold a key. The stack names the handler.
	s.log.Error("a handler panicked", "method", string(ctx.Method()), "err", fmt.Sprint(cause), "stack", string(debug.Stack()))
	ctx.Response.Reset()
	refuse(fasthttp.StatusInternalServerError, "Internal error; the log of the admin has the cause").write(ctx)
}

// refuseUnreadable answers requests that could not be read.
func (s *Server) refuseUnreadable(ctx *fasthttp.RequestCtx, err error) {
	f := badRequest("The request could not be read")
	small, tooSmall := errors.AsType[*fasthttp.ErrSmallBuffer](err)
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		f = refuse(fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes", maxBody))
	case tooSmall && small != nil:
		f = refuse(fasthttp.StatusRequestHeaderFieldsTooLarge, "The head of the request is larger than 16 KiB")
	case isNetwork && network.Timeout():
		f = refuse(fasthttp.StatusRequestTimeout, "The request did not arrive in time")
	}
	ctx.SetConnectionClose()
	f.write(ctx)
}

// serve answers one call of a known route.
func (s *Server) serve(http *fasthttp.RequestCtx, route *route) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(s.lifetime, answerWithin)
	defer cancel()
	c := &call{http: http, route: route}
	answer, err := s.answer(ctx, c)
	if err == nil && answer != nil {
		err = c.write(answer)
	}
	if err != nil {
		s.fail(c, err)
	}
	s.meters.Observe(route.name(), route.waits, http.Response.StatusCode(), time.Since(started))
}

func (s *Server) answer(ctx context.Context, c *call) (any, error) {
	if err := c.checkSizes(); err != nil {
		return nil, err
	}
	var err error
	if c.who, err = s.authorise(ctx, c); err != nil {
		return nil, err
	}
	if err := c.checkType(); err != nil {
		return nil, err
	}
	return c.route.handle(ctx, c)
}

// fail answers with an error, and logs it when it is not the caller's doing.
func (s *Server) fail(c *call, err error) {
	f, expected := faultOf(err)
	switch {
	case expected:
	case f.status == fasthttp.StatusServiceUnavailable:
		s.log.Warn("a call could not be answered", "route", c.route.name(), "err", err)
	default:
		s.log.Error("a call failed", "route", c.route.name(), "err", err)
	}
	c.http.Response.Reset()
	f.write(c.http)
}

func (c *call) write(answer any) error {
	body, ready := answer.(json.RawMessage)
	if !ready {
		var err error
		if body, err = encode(answer); err != nil {
			return err
		}
	}
	writeJSON(c.http, fasthttp.StatusOK, body)
	return nil
}

// setVersion tells the caller which version of an object the answer is about.
func (c *call) setVersion(version int64) {
	c.http.Response.Header.Set(fasthttp.HeaderETag, etagOf(version))
}

// checkSizes bounds every part of the path and every query parameter.
func (c *call) checkSizes() error {
	if c.http.QueryArgs().Len() > 50 {
		return badRequest("The query has more than 50 parameters")
	}
	for name, value := range c.http.QueryArgs().All() {
		if len(name)+len(value) > 4*maxText || !utf8.Valid(value) {
			return badRequest(fmt.Sprintf("Query parameter %.40q must be UTF-8 of at most %d bytes", name, 4*maxText))
		}
	}
	for part := range strings.SplitSeq(string(c.http.Path()), "/") {
		if len(part) > maxText || !utf8.ValidString(part) || strings.ContainsRune(part, 0) {
			return notFound("Not found")
		}
	}
	return nil
}

// checkType refuses bodies that are not JSON. A body without a type is taken
// for JSON, as is what curl -d sends.
func (c *call) checkType() error {
	if c.route.body == nil || len(c.http.Request.Body()) == 0 {
		return nil
	}
	kind, _, _ := strings.Cut(string(c.http.Request.Header.ContentType()), ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case kind == "", kind == "application/json", kind == "application/x-www-form-urlencoded", strings.HasSuffix(kind, "+json"):
		return nil
	}
	return refuse(fasthttp.StatusUnsupportedMediaType, "The body must be application/json, not "+kind)
}

// param returns a part of the path that the route names, decoded: the router
// leaves it as it was sent. What cannot be decoded names nothing.
func (c *call) param(name string) string {
	sent, _ := c.http.UserValue(name).(string)
	value, err := url.PathUnescape(sent)
	if err != nil {
		return ""
	}
	return strings.Clone(value)
}

// query returns a query parameter, or "".
func (c *call) query(name string) string { return string(c.http.QueryArgs().Peek(name)) }

// flag tells whether a query parameter says yes.
func (c *call) flag(name string) bool {
	return slices.Contains([]string{"1", "true", "yes"}, strings.ToLower(c.query(name)))
}

// body returns the body, which must not be empty. It stays valid beyond the
// call.
func (c *call) body() ([]byte, error) {
	body := bytes.TrimSpace(c.http.Request.Body())
	if len(body) == 0 {
		return nil, badRequest("Request body malformed: it is empty; JSON is expected")
	}
	return bytes.Clone(body), nil
}

// decode reads the body into a struct, strictly.
func (c *call) decode(into any) error {
	body, err := c.body()
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
		return badRequest("Request body malformed: something follows the JSON object")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return badRequest(fmt.Sprintf("Request body malformed: %s must not be a JSON %s", wrong.Field, wrong.Value))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return badRequest("Request body malformed: unknown member " + name)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return badRequest("Request body malformed: at byte " + strconv.FormatInt(syntax.Offset, 10) + ": " + syntax.Error())
	}
	return badRequest("Request body malformed: it ends early")
}

// ifMatch returns the version that a caller says it saw, or 0 when it does not
// say.
func (c *call) ifMatch() (int64, error) {
	text := strings.TrimSpace(string(c.http.Request.Header.Peek(fasthttp.HeaderIfMatch)))
	if text == "" || text == "*" {
		return 0, nil
	}
	version, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), 10, 64)
	if err != nil || version < 1 {
		return 0, badRequest(`If-Match must be the ETag of the object, such as "3"`)
	}
	return version, nil
}

// author is who makes the change that the call asks for.
func (c *call) author(source string) store.Author {
	return store.Author{
		Org: c.who.org, Name: c.who.name, Kind: c.who.kind, IP: c.address(), Source: source,
		Reason: truncate(c.query("reason"), maxText),
	}
}

// source names the way a change came in.
func (c *call) source() string {
	if c.who.role == roleGateway {
		return "gateway"
	}
	return "api"
}

func (c *call) address() string { return c.http.RemoteIP().String() }

// truncate cuts a text to at most n bytes, between characters.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
