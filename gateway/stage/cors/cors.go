// Package cors answers browsers that ask whether web pages may call an API (Fetch
// standard, CORS protocol).
package cors

import (
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/http1"
)

// Rules are the CORS settings of an API, compiled. They bind browsers only: other
// clients are kept out by keys.
type Rules struct {
	origins match.Origins
	headers map[string]bool // that pages may send, in lower case
	methods map[string]bool
	every   bool // headers are allowed whatever their names
	pass    bool // preflights are the upstream's to answer
	keys    bool // the API requires keys

	allow     string // the line that names the origin, up to the value
	behind    string // the lines behind it on every answer to an allowed origin
	preflight string // the lines behind it on answers to preflights, but that of the headers
	names     string // value of Access-Control-Allow-Headers, unless every
}

// Compile compiles what an API says about web pages, nil when it says nothing.
func Compile(def *definition.API) *Rules {
	conf := def.CORS
	if !conf.On() {
		return nil
	}
	c := &Rules{
		origins: match.CompileOrigins(conf.Origins()), pass: conf.OptionsPassthrough, keys: !def.UseKeyless,
		headers: make(map[string]bool), methods: make(map[string]bool),
		allow: "Access-Control-Allow-Origin: ", names: strings.Join(conf.Headers(), ", "),
	}
	for _, name := range conf.Headers() {
		c.headers[strings.ToLower(name)] = true
		c.every = c.every || name == "*"
	}
	for _, name := range conf.Methods() {
		c.methods[name] = true
	}
	c.behind, c.preflight = lines(conf)
	return c
}

// Passes reports whether the upstream of an API answers its preflights.
func Passes(def *definition.API) bool {
	return def.CORS.On() && def.CORS.OptionsPassthrough
}

// lines writes what does not depend on the call.
func lines(conf *definition.CORS) (behind, preflight string) {
	if conf.AllowCredentials {
		behind = "Access-Control-Allow-Credentials: true\r\n"
	}
	preflight = behind + "Access-Control-Allow-Methods: " + strings.Join(conf.Methods(), ", ") + "\r\n"
	if conf.MaxAge > 0 {
		preflight += "Access-Control-Max-Age: " + strconv.Itoa(conf.MaxAge) + "\r\n"
	}
	if len(conf.ExposedHeaders) > 0 {
		behind += "Access-Control-Expose-Headers: " + strings.Join(conf.ExposedHeaders, ", ") + "\r\n"
	}
	return behind, preflight
}

// Preflight returns the stage that answers preflights. It runs before authentication,
// as preflights carry no key.
func (c *Rules) Preflight() pipeline.Stage { return preflights{c} }

// Answer returns the stage for answers and refusals, which sets the headers that let a
// page read them. It removes those of the upstream, as each may occur only once.
func (c *Rules) Answer() pipeline.Stage { return answers{c} }

const (
	askedMethod  = "Access-Control-Request-Method"
	askedHeaders = "Access-Control-Request-Headers"
)

// isPreflight reports whether a call is a CORS preflight request.
func isPreflight(call *wire.Call) bool {
	return string(call.Method) == "OPTIONS" && len(call.Get(wire.NameOrigin)) > 0 && len(call.Header(askedMethod)) > 0
}

type preflights struct{ *Rules }

// Handle answers a preflight. One for a call that is not allowed gets an answer that
// grants nothing, by which browsers refuse the call.
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
func (c *Rules) fault(call *wire.Call) string {
	switch {
	case !c.origins.Has(call.Get(wire.NameOrigin)):
		return "allowed_origins"
	case !c.methods[string(call.Header(askedMethod))]:
		return "allowed_methods"
	case !c.allowsHeaders(call.Header(askedHeaders)):
		return "allowed_headers"
	}
	return ""
}

// Explain reports how a preflight is answered, and why.
func (c preflights) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	call := ex.Call
	if !isPreflight(call) {
		f.Said = "the call is no preflight of a browser"
		if from := call.Get(wire.NameOrigin); from != nil {
			f.Fact("CORS.allowed_origins", strings.Join(c.origins.Written, ", "), string(from), "definition")
			if f.Said = "pages of " + string(from) + " may read the answer"; !c.origins.Has(from) {
				f.Said = "pages of " + string(from) + " may not read the answer; the call itself goes on"
			}
		}
		return
	}
	f.Fact("CORS.allowed_origins", strings.Join(c.origins.Written, ", "), string(call.Get(wire.NameOrigin)), "definition")
	switch fault := c.fault(call); {
	case c.pass:
		f.Fact("CORS.options_passthrough", "true", "", "definition")
		f.Said = "the upstream answers preflights"
	case fault != "":
		f.Said, f.Fix = "the preflight is answered with no permission, for "+fault, "add what it requests to CORS."+fault+" of the definition"
	default:
		f.Said = "the preflight is answered here, and permits the call"
	}
}

type answers struct{ *Rules }

// Handle writes what browsers are to know about an answer.
func (c answers) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if isPreflight(ex.Call) {
		return pipeline.Next // answered as a whole, here or by the upstream
	}
	a := ex.Answer
	a.Lines = http1.RemoveLinesFunc(a.Lines, isCORS)
	if !c.origins.All {
		a.Lines = append(a.Lines, "Vary: Origin\r\n"...)
	}
	if sender := ex.Call.Get(wire.NameOrigin); c.origins.All || c.origins.Has(sender) {
		a.Lines = c.appendAllowed(a.Lines, sender)
		a.Lines = append(a.Lines, c.behind...)
	}
	return pipeline.Next
}

// appendAllowed appends the line that names the origin.
func (c *Rules) appendAllowed(dst, sender []byte) []byte {
	dst = append(dst, c.allow...)
	if c.origins.All {
		return append(dst, "*\r\n"...)
	}
	return append(append(dst, sender...), "\r\n"...)
}
