package app

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	countries "github.com/sluicegate/sluice/internal/sample"
)

// sample is the upstream of the demo: a GraphQL server on samplePath, and elsewhere an
// echo of the request, which shows what the gateway sends.
type sample struct {
	server *fasthttp.Server
	ln     net.Listener
	done   chan struct{}
}

// sampleAddress is the address of the sample unless the port is in use.
const sampleAddress = "127.0.0.1:8083"

// samplePath is the path of the GraphQL server.
const samplePath = "/graphql"

// startSample serves on sampleAddress, or on a free loopback port.
func startSample() (*sample, error) {
	graph, err := countries.New()
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", sampleAddress)
	if err != nil {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	s := &sample{
		server: &fasthttp.Server{Handler: sampleHandler(graph), NoDefaultServerHeader: true, DisablePreParseMultipartForm: true},
		ln:     ln,
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(ln) // a demo without its upstream answers 502
	}()
	return s, nil
}

// url returns the address of the sample.
func (s *sample) url() string { return "http://" + s.ln.Addr().String() }

// stop ends the sample. Clients that keep it busy get a second.
func (s *sample) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.server.ShutdownWithContext(ctx) // nothing depends on it
	<-s.done
}

// sampleAnswer is the body of every response.
type sampleAnswer struct {
	Message string            `json:"message"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
}

// sampleHandler passes GraphQL operations to the GraphQL server.
func sampleHandler(graph *countries.Server) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if path := strings.TrimSuffix(string(ctx.Path()), "/"); path != samplePath || !ctx.IsPost() {
			answerSample(ctx)
			return
		}
		status, answer := graph.Answer(ctx.PostBody())
		ctx.SetStatusCode(status)
		ctx.SetContentType("application/json")
		ctx.SetBody(answer)
	}
}

func answerSample(ctx *fasthttp.RequestCtx) {
	answer := sampleAnswer{
		Message: "hello from the sample upstream",
		Method:  string(ctx.Method()),
		Path:    string(ctx.RequestURI()),
		Headers: make(map[string]string),
	}
	for name, value := range ctx.Request.Header.All() {
		answer.Headers[string(name)] = string(value)
	}
	body, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(append(body, '\n'))
}
