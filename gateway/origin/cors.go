// Package origin decides on calls by where they come from: by the web origin of
// the page that makes them, and by the address of the caller.
package origin

import (
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/origin"
)

// CORS tells browsers which pages may call an API, by the Fetch standard. It
// keeps nobody else out: that is for keys to do.
type CORS struct {
	origins originSet
	headers map[string]bool // that pages may send, in lower case
	methods map[string]bool
	every   bool // headers are allowed whatever their names
	pass    bool // preflights are the upstream's to answer
	keys    bool // the API asks for keys

	allow     string // the line that names the origin, up to the value
	behind    string // the lines behind it on every answer to an allowed origin
	preflight string // the lines behind it on answers to preflights, but that of the headers
	names     string // value of Access-Control-Allow-Headers, unless every
}

// Compile compiles what an API says about web pages, nil when it says nothing.
func Compile(def *definition.API) (*CORS, error) {
	said, err := def.CrossOrigin()
	if said == nil || err != nil {
		return nil, err
	}
	c := &CORS{
		origins: newOriginSet(said.AllowedOrigins), pass: said.OptionsPassthrough, keys: !def.UseKeyless,
		headers: make(map[string]bool), methods: make(map[string]bool),
		allow: "Access-Control-Allow-Origin: ", names: strings.Join(said.AllowedHeaders, ", "),
	}
	for _, name := range said.AllowedHeaders {
		c.headers[strings.ToLower(name)] = true
		c.every = c.every || name == "*"
	}
	for _, name := range said.AllowedMethods {
		c.methods[name] = true
	}
	c.behind, c.preflight = lines(said)
	return c, nil
}

// Passes tells whether the preflights of an API are its upstream's to answer.
func Passes(def *definition.API) bool {
	said, err := def.CrossOrigin()
	return err == nil && said != nil && said.OptionsPassthrough
}

// lines writes what does not depend on the call.
func lines(said *origin.CORS) (behind, preflight string) {
	if said.AllowCredentials {
		behind = "Access-Control-Allow-Credentials: true\r\n"
	}
	preflight = behind + "Access-Control-Allow-Methods: " + strings.Join(said.AllowedMethods, ", ") + "\r\n"
	if said.MaxAge > 0 {
		preflight += "Access-Control-Max-Age: " + strconv.Itoa(said.MaxAge) + "\r\n"
	}
	if len(said.ExposedHeaders) > 0 {
		behind += "Access-Control-Expose-Headers: " + strings.Join(said.ExposedHeaders, ", ") + "\r\n"
	}
	return behind, preflight
}

// Preflight returns the stage that answers preflights. They come without a key,
// and so go before authentication.
func (c *CORS) Preflight() pipeline.Stage { return preflights{c} }

// Answer returns the stage for answers and refusals, which tells browsers whether
// the page may read them. What an upstream says about that is taken out: there
// must not be two of it.
func (c *CORS) Answer() pipeline.Stage { return answers{c} }

const (
	askedMethod  = "Access-Control-Request-Method"
	askedHeaders = "Access-Control-Request-Headers"
)

// isPreflight tells whether a browser asks whether a page may make a call.
func isPreflight(call *wire.Call) bool {
	return string(call.Method) == "OPTIONS" && len(call.Get(wire.NameOrigin)) > 0 && len(call.Header(askedMethod)) > 0
}

type preflights struct{ *CORS }

// Handle answers a preflight. One that asks for what is not allowed gets an answer
// that allows nothing, which is how browsers are told.
func (c preflights) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if !isPreflight(ex.Call) {
		return pipeline.Next
	}
	if c.pass {
		ex.Open = c.keys
		return pipeline.Next
	}
	a := ex.Answer
	a.Status, a.NoBody, a.Length = 204, true, -1
	a.Lines = append(a.Lines, "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers\r\n"...)
	sender := ex.Call.Get(wire.NameOrigin)
	if c.fault(ex.Call) != "" {
		return pipeline.Answered
	}
	a.Lines = c.appendAllowed(a.Lines, sender)
	a.Lines = append(a.Lines, c.preflight...)
	asked := ex.Call.Header(askedHeaders)
	if !c.every {
		a.Lines = append(a.Lines, "Access-Control-Allow-Headers: "...)
		a.Lines = append(append(a.Lines, c.names...), "\r\n"...)
	} else if len(asked) > 0 {
		// A * would leave Authorization out, and means nothing beside credentials.
		a.Lines = append(a.Lines, "Access-Control-Allow-Headers: "...)
		a.Lines = append(append(a.Lines, asked...), "\r\n"...)
	}
	return pipeline.Answered
}

// fault says which part of a preflight is not allowed, "" for none.
func (c *CORS) fault(call *wire.Call) string {
	switch {
	case !c.origins.has(call.Get(wire.NameOrigin)):
		return "allowed_origins"
	case !c.methods[string(call.Header(askedMethod))]:
		return "allowed_methods"
	case !c.allowsHeaders(call.Header(askedHeaders)):
		return "allowed_headers"
	}
	return ""
}

// Explain tells what a preflight is answered and why.
func (c preflights) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	call := ex.Call
	if !isPreflight(call) {
		f.Said = "the call is no preflight of a browser"
		if from := call.Get(wire.NameOrigin); from != nil {
			f.Fact("CORS.allowed_origins", strings.Join(c.origins.written, ", "), string(from), "definition")
			if f.Said = "pages of " + string(from) + " may read the answer"; !c.origins.has(from) {
				f.Said = "pages of " + string(from) + " may not read the answer; the call itself goes on"
			}
		}
		return
	}
	f.Fact("CORS.allowed_origins", strings.Join(c.origins.written, ", "), string(call.Get(wire.NameOrigin)), "definition")
	switch fault := c.fault(call); {
	case c.pass:
		f.Fact("CORS.options_passthrough", "true", "", "definition")
		f.Said = "the upstream answers preflights"
	case fault != "":
		f.Said, f.Fix = "the preflight is answered with no permission, for "+fault, "add what it asks for to CORS."+fault+" of the definition"
	default:
		f.Said = "the preflight is answered here, and permits the call"
	}
}

type answers struct{ *CORS }

// Handle writes what browsers are to know about an answer.
func (c answers) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if isPreflight(ex.Call) {
		return pipeline.Next // answered as a whole, here or by the upstream
	}
	a := ex.Answer
	a.Lines = withoutCORS(a.Lines)
	if !c.origins.all {
		a.Lines = append(a.Lines, "Vary: Origin\r\n"...)
	}
	if sender := ex.Call.Get(wire.NameOrigin); c.origins.all || c.origins.has(sender) {
		a.Lines = c.appendAllowed(a.Lines, sender)
		a.Lines = append(a.Lines, c.behind...)
	}
	return pipeline.Next
}

// appendAllowed appends the line that names the origin.
func (c *CORS) appendAllowed(dst, sender []byte) []byte {
	dst = append(dst, c.allow...)
	if c.origins.all {
		return append(dst, "*\r\n"...)
	}
	return append(append(dst, sender...), "\r\n"...)
}
