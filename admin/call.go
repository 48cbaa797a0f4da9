package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

// answerWithin bounds the work on one call; the wait of a long-poll is not included.
const answerWithin = 10 * time.Second

// router returns what answers the calls of some routes, and with scrape GET /metrics.
func (s *Server) router(routes []rest.Route, scrape fasthttp.RequestHandler) fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = func(ctx *fasthttp.RequestCtx) { rest.NotFound("Not found").Write(ctx) }
	r.MethodNotAllowed = func(ctx *fasthttp.RequestCtx) {
		// The router adds OPTIONS, which nothing here answers.
		allowed := strings.TrimSuffix(strings.ReplaceAll(string(ctx.Response.Header.Peek(fasthttp.HeaderAllow)), "OPTIONS, ", ""), ", OPTIONS")
		ctx.Response.Header.Set(fasthttp.HeaderAllow, allowed)
		rest.Refuse(fasthttp.StatusMethodNotAllowed, "Method not allowed; see the header Allow").Write(ctx)
	}
	for _, route := range routes {
		serve := func(ctx *fasthttp.RequestCtx) { s.serve(ctx, &route) }
		r.Handle(route.Method, route.Path, serve)
		if route.Method == fasthttp.MethodGet {
			r.Handle(fasthttp.MethodHead, route.Path, serve)
		}
	}
	for _, missed := range missedPaths(routes) {
		r.Handle(missed.route.Method, missed.path, s.serveMissed(&missed))
		if missed.route.Method == fasthttp.MethodGet {
			r.Handle(fasthttp.MethodHead, missed.path, s.serveMissed(&missed))
		}
	}
	if scrape != nil {
		r.GET("/metrics", scrape)
	}
	return func(ctx *fasthttp.RequestCtx) {
		defer s.recover(ctx)
		dropFinalSlash(ctx.URI())
		r.Handler(ctx)
	}
}

// handler answers all requests to the admin.
func (s *Server) handler() fasthttp.RequestHandler {
	return s.received(s.deps.HSTS, func(ctx *fasthttp.RequestCtx) {
		if s.deps.UI != nil {
			if s.deps.UI.Strip(ctx); s.deps.UI.Answer(ctx) {
				return
			}
		}
		if isPage(string(ctx.Path())) {
			s.servePortal(ctx)
			return
		}
		s.inside(ctx)
	})
}

// received answers requests from connections: what they say is checked before handle
// sees it. hsts is the time of Strict-Transport-Security.
func (s *Server) received(hsts time.Duration, handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	strict := hstsValue(hsts)
	return func(ctx *fasthttp.RequestCtx) {
		rest.Identify(ctx)
		defer rest.ShowRequestID(ctx)
		defer s.setHSTS(ctx, strict)
		defer s.recover(ctx)
		s.setCaller(ctx)
		if fault := headFault(ctx); fault != "" {
			ctx.SetConnectionClose()
			rest.BadRequest(fault).Write(ctx)
			return
		}
		handle(ctx)
		rest.SendStream(ctx)
	}
}

// scrape serves metrics. Its refusals have the shape of all others on this port.
func (s *Server) scrape(ctx *fasthttp.RequestCtx) {
	s.deps.Scrape(ctx)
	status := ctx.Response.StatusCode()
	if status < 400 {
		return
	}
	var said struct {
		Status string `json:"status"`
	}
	_ = json.Unmarshal(ctx.Response.Body(), &said) // without a text it has that of its status
	rest.Refuse(status, cmp.Or(said.Status, fasthttp.StatusMessage(status))).Write(ctx)
}

// dropFinalSlash removes a final slash from the path, so that both spellings reach the
// same route. The router cannot hold both: it takes one for a redirect to the other.
func dropFinalSlash(uri *fasthttp.URI) {
	if path := uri.PathOriginal(); len(path) > 1 && path[len(path)-1] == '/' {
		uri.SetPathBytes(bytes.Clone(path[:len(path)-1]))
	}
}

// recover answers a call whose handler panicked, so that the process goes on.
func (s *Server) recover(ctx *fasthttp.RequestCtx) {
	cause := recover()
	if cause == nil {
		return
	}
	// The path is not logged: it may hold a key. The stack names the handler.
	s.log.Error("a handler panicked", "request_id", rest.RequestID(ctx), "method", string(ctx.Method()), "err", fmt.Sprint(cause), "stack", string(debug.Stack()))
	ctx.Response.Reset()
	rest.Refuse(fasthttp.StatusInternalServerError, "Internal error; the log of the admin has the cause").Write(ctx)
}

// refuseUnreadable answers requests that could not be read.
func (s *Server) refuseUnreadable(ctx *fasthttp.RequestCtx, err error) {
	f := rest.BadRequest("The request could not be read")
	small, tooSmall := errors.AsType[*fasthttp.ErrSmallBuffer](err)
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		f = rest.Refuse(fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes (POST /api/config/apply takes %d from editors)", rest.MaxBody, maxBatch))
	case tooSmall && small != nil:
		f = rest.Refuse(fasthttp.StatusRequestHeaderFieldsTooLarge, "The head of the request is larger than 16 KiB")
	case isNetwork && network.Timeout():
		f = rest.Refuse(fasthttp.StatusRequestTimeout, "The request did not arrive in time")
	}
	ctx.SetConnectionClose()
	lingerAfter(ctx)
	f.Write(ctx)
	rest.Identify(ctx)
	rest.ShowRequestID(ctx)
}

// serve answers one call of a known route.
func (s *Server) serve(http *fasthttp.RequestCtx, route *rest.Route) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(s.lifetime, cmp.Or(route.Within, answerWithin))
	defer cancel()
	c := &rest.Call{HTTP: http, Route: route, PageSize: s.deps.PageSize}
	if err := s.answer(ctx, c); err != nil {
		s.fail(c, err)
	}
	s.metrics.observe(route.Name(), route.Waits, http.Response.StatusCode(), time.Since(started))
}

func (s *Server) answer(ctx context.Context, c *rest.Call) error {
	if err := c.CheckSizes(); err != nil {
		return err
	}
	var err error
	if c.Who, err = s.authorise(ctx, c); err != nil {
		return err
	}
	if err := c.CheckType(); err != nil {
		return err
	}
	call, err := idempotentCall(c)
	if err != nil {
		return err
	}
	if call != nil {
		return s.answerIdempotent(ctx, c, call)
	}
	return handle(ctx, c)
}

// handle runs the handler of the route and writes its answer.
func handle(ctx context.Context, c *rest.Call) error {
	answer, err := c.Route.Handle(ctx, c)
	if err == nil && answer != nil {
		err = c.Write(answer)
	}
	return err
}

// fail answers with an error, and logs those that the caller did not cause.
func (s *Server) fail(c *rest.Call, err error) {
	f, expected := rest.FaultOf(err)
	switch {
	case expected:
	case f.Status == fasthttp.StatusServiceUnavailable:
		s.log.Warn("a call could not be answered", "request_id", rest.RequestID(c.HTTP), "route", c.Route.Name(), "err", err)
	default:
		s.log.Error("a call failed", "request_id", rest.RequestID(c.HTTP), "route", c.Route.Name(), "err", err)
	}
	c.HTTP.Response.Reset()
	f.Locate(c.HTTP.Request.Body())
	f.Write(c.HTTP)
}
