package rest

import "github.com/valyala/fasthttp"

// requestIDHeader has the id of a request, in answers.
const requestIDHeader = "X-Request-Id"

// requestIDKey is where the context of a request keeps its id.
type requestIDKey struct{}

// Identify gives a request an id. What clients send is not taken over: they could make
// lines of the log look like those of another request.
func Identify(ctx *fasthttp.RequestCtx) { ctx.SetUserValue(requestIDKey{}, NewID()) }

// RequestID returns the id of a request; "" before Identify.
func RequestID(ctx *fasthttp.RequestCtx) string {
	id, _ := ctx.UserValue(requestIDKey{}).(string)
	return id
}

// ShowRequestID adds the id of a request to its answer.
func ShowRequestID(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set(requestIDHeader, RequestID(ctx))
}
