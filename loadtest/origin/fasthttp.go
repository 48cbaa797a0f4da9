package main

import (
	"bytes"
	"net"

	"github.com/sluicegate/sluice/loadtest/load"
	"github.com/valyala/fasthttp"
)

func serveFasthttp(ln net.Listener) error {
	server := &fasthttp.Server{
		Handler: answer, NoDefaultDate: true, NoDefaultServerHeader: true, NoDefaultContentType: true,
		MaxRequestBodySize: maxBody,
	}
	return server.Serve(ln)
}

// maxBody bounds a request's body.
const maxBody = 1 << 20

// answer sends a body of the size that the path names, whatever stands before
// it: a proxy may or may not have stripped its listen path. A POST gets its own
// body back, unless it is one to a GraphQL server.
func answer(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetContentType("text/plain")
	graphql := bytes.HasSuffix(ctx.Path(), []byte("/graphql"))
	if graphql {
		ctx.Response.Header.SetContentType("application/json")
	}
	if ctx.IsPost() && !graphql {
		ctx.Response.SetBodyRaw(ctx.Request.Body())
		return
	}
	body, ok := load.Body(ctx.Path())
	if !ok {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		return
	}
	ctx.Response.SetBodyRaw(body)
}
