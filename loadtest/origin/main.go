// Command origin is the upstream of the load tests: it answers with bodies of
// fixed sizes that the load generator knows, at little cost of its own.
package main

import (
	"flag"
	"log"
	"net"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9000", "`address` to listen on")
	lean := flag.Bool("lean", false, "serve with epoll on one thread, which costs the machine less than fasthttp (Linux)")
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatalf("listening: %v", err)
	}
	serve := serveFasthttp
	if *lean {
		serve = serveLean
	}
	log.Fatalf("serving: %v", serve(ln))
}
