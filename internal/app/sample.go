package app

import (
	"context"
	"encoding/json"
	"net"

	"github.com/valyala/fasthttp"
)

// sample is the upstream of the demo: it answers every request with what it
// received, so that a newcomer sees what the gateway sends on.
type sample struct {
	server *fasthttp.Server
	ln     net.Listener
	done   chan struct{}
}

// sampleAddress is where the sample answers unless somebody else already does.
const sampleAddress = "127.0.0.1:8083"

// startSample serves on sampleAddress, or else on a free loopback port.
func startSample() (*sample, error) {
	ln, err := net.Listen("tcp", sampleAddress)
	if err != nil {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	s := &sample{
		server: &fasthttp.Server{Handler: answerSample, NoDefaultServerHeader: true, DisablePreParseMultipartForm: true},
		ln:     ln,
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(ln) // a demo without its upstream answers 502
	}()
	return s, nil
}

// url is where the sample answers.
func (s *sample) url() string { return "http://" + s.ln.Addr().String() }

// stop ends the sample and waits for it.
func (s *sample) stop(ctx context.Context) {
	_ = s.server.ShutdownWithContext(ctx) // nothing depends on it
	<-s.done
}

// sampleAnswer is the body of every answer.
type sampleAnswer struct {
	Message string            `json:"message"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
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
