// Command bare is the least of a reverse proxy on fasthttp: its server, its
// client, and nothing else. The other contenders are measured against it.
package main

import (
	"flag"
	"log"
	"net"

	"github.com/valyala/fasthttp"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9001", "`address` to listen on")
	origin := flag.String("origin", "127.0.0.1:9000", "`address` of the upstream")
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatalf("listening: %v", err)
	}
	client := &fasthttp.HostClient{Addr: *origin, MaxConns: 4096}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
		}
	}}
	log.Fatalf("serving: %v", server.Serve(ln))
}
