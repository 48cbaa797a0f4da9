// Command nethttp is a reverse proxy of Go's standard library alone, set up for
// one busy upstream: what most proxies in Go begin with.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9002", "`address` to listen on")
	origin := flag.String("origin", "127.0.0.1:9000", "`address` of the upstream")
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatalf("listening: %v", err)
	}
	target := &url.URL{Scheme: "http", Host: *origin}
	server := &http.Server{
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       10 * time.Minute,
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.SetXForwarded()
			},
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
				MaxIdleConnsPerHost: 4096,
				IdleConnTimeout:     10 * time.Minute,
				DisableCompression:  true,
			},
			BufferPool: new(buffers),
		},
	}
	log.Fatalf("serving: %v", server.Serve(ln))
}

// buffers are what bodies are copied with.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of 32 KiB.
func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, 32<<10)
}

// Put takes a buffer back.
func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
