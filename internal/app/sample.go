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

// sample is the upstream of the demo: GraphQL servers, a REST service, and elsewhere an echo
// of the request, which shows what the gateway sends.
type sample struct {
	server *fasthttp.Server
	ln     net.Listener
	done   chan struct{}
}

// sampleAddress is the address of the sample unless the port is in use.
const sampleAddress = "127.0.0.1:8083"

// Paths of the servers.
const (
	samplePath       = "/graphql"
	countriesPath    = "/subgraphs/countries"
	currenciesPath   = "/subgraphs/currencies"
	diallingCodePath = "/dialling-codes/" // before the code of a country
)

// startSample serves on sampleAddress, or on a free loopback port.
func startSample() (*sample, error) {
	handler, err := sampleHandler()
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
		server: &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, DisablePreParseMultipartForm: true},
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

// sampleHandler passes requests to the server of their path.
func sampleHandler() (fasthttp.RequestHandler, error) {
	whole, err := countries.New()
	if err != nil {
		return nil, err
	}
	ofCountries, ofCurrencies, err := countries.NewSubgraphs()
	if err != nil {
		return nil, err
	}
	graphs := map[string]*countries.Server{samplePath: whole, countriesPath: ofCountries, currenciesPath: ofCurrencies}
	return func(ctx *fasthttp.RequestCtx) {
		path := strings.TrimSuffix(string(ctx.Path()), "/")
		country, isDialling := strings.CutPrefix(path, diallingCodePath)
		switch graph := graphs[path]; {
		case graph != nil && ctx.IsPost():
			status, answer := graph.Answer(ctx.PostBody())
			ctx.SetStatusCode(status)
			ctx.SetContentType("application/json")
			ctx.SetBody(answer)
		case isDialling:
			answerDiallingCode(ctx, country)
		default:
			answerSample(ctx)
		}
	}, nil
}

func answerDiallingCode(ctx *fasthttp.RequestCtx, country string) {
	answer := countries.DiallingCode(country)
	if answer == nil {
		ctx.Error("no such country", fasthttp.StatusNotFound)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(answer)
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
