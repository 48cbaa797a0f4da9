package observe

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// HandlerOptions are the options of Handler.
type HandlerOptions struct {
	Metrics bool   // serve /metrics
	Token   string // bearer token for /metrics; "": none is needed

	// Ready reports whether traffic can be served, and why not, or what is degraded.
	Ready func() (ready bool, detail string)
}

// Handler serves GET and HEAD of /metrics; /live and /livez, which answer as
// long as the process does; and /ready, /readyz, /health and /healthz, which answer
// 503 while traffic cannot be served.
func (o *Observer) Handler(opts HandlerOptions) fasthttp.RequestHandler {
	metrics := o.metricsHandler(opts.Token)
	return func(ctx *fasthttp.RequestCtx) {
		path := string(ctx.Path())
		switch {
		case path == "/metrics" && !opts.Metrics:
			answer(ctx, fasthttp.StatusNotFound, "metrics are off: see telemetry.metrics")
		case !ctx.IsGet() && !ctx.IsHead():
			ctx.Response.Header.Set("Allow", "GET, HEAD")
			answer(ctx, fasthttp.StatusMethodNotAllowed, "use GET")
		case path == "/metrics":
			metrics(ctx)
		case path == "/live" || path == "/livez":
			answer(ctx, fasthttp.StatusOK, "live")
		case path == "/ready" || path == "/readyz" || path == "/health" || path == "/healthz":
			ready(ctx, opts.Ready)
		default:
			answer(ctx, fasthttp.StatusNotFound, "here are /metrics, /live and /ready")
		}
	}
}

func (o *Observer) metricsHandler(token string) fasthttp.RequestHandler {
	serve := fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // one bad series must not hide the others
		MaxRequestsInFlight: 4,
	}))
	if token == "" {
		return serve
	}
	want := sha256.Sum256([]byte(token))
	return func(ctx *fasthttp.RequestCtx) {
		kind, shown, _ := strings.Cut(string(ctx.Request.Header.Peek("Authorization")), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(shown)))
		if !strings.EqualFold(kind, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
			answer(ctx, fasthttp.StatusUnauthorized, "show telemetry.token as a bearer token")
			return
		}
		serve(ctx)
	}
}

func ready(ctx *fasthttp.RequestCtx, state func() (bool, string)) {
	ok, detail := true, ""
	if state != nil {
		ok, detail = state()
	}
	switch {
	case !ok:
		answer(ctx, fasthttp.StatusServiceUnavailable, "not ready: "+detail)
	case detail != "":
		answer(ctx, fasthttp.StatusOK, "ready, degraded: "+detail)
	default:
		answer(ctx, fasthttp.StatusOK, "ready")
	}
}

func answer(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	body := append(appendText([]byte(`{"status":"`), text), "}\n"...)
	ctx.SetBody(body)
}
