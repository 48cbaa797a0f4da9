// Command origin is the upstream of the load tests: it answers with bodies of
// fixed sizes that the load generator knows, at little cost of its own.
package main

import (
	"bytes"
	"flag"
	"log"
	"net"

	"github.com/sluicegate/sluice/loadtest/load"
	"github.com/valyala/fasthttp"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9000", "`address` to listen on")
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatalf("listening: %v", err)
	}
	server := &fasthttp.Server{
		Handler: answer, NoDefaultDate: true, NoDefaultServerHeader: true, NoDefaultContentType: true,
		MaxRequestBodySize: 1 << 20,
	}
	log.Fatalf("serving: %v", server.Serve(ln))
}

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
