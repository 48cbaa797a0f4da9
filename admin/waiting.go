package admin

import (
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

// Waiting answers calls while the admin waits for its database at the start: liveness
// checks pass, all others get 503 with what is missing. scrape answers GET /metrics; nil:
// it gets 503 as well.
func Waiting(version string, scrape fasthttp.RequestHandler) fasthttp.RequestHandler {
	alive := health{Status: "pass", Version: version}
	ready := health{Status: "fail", Version: version, Checks: map[string]string{
		"database": "unavailable; the admin waits for it", "bundle": "no configuration was read yet",
	}}
	return func(ctx *fasthttp.RequestCtx) {
		rest.Identify(ctx)
		defer rest.ShowRequestID(ctx)
		ctx.SetConnectionClose() // the next call may be answered by the admin itself
		switch path := string(ctx.Path()); {
		case path == "/metrics" && scrape != nil:
			scrape(ctx)
		case path == "/healthz" || path == "/live":
			writeHealth(ctx, fasthttp.StatusOK, alive)
		case path == "/readyz" || path == "/ready" || path == "/health":
			writeHealth(ctx, fasthttp.StatusServiceUnavailable, ready)
		default:
			rest.DatabaseAway("The admin waits for its database, which does not answer; try again").Write(ctx)
		}
	}
}

// writeHealth answers a health check.
func writeHealth(ctx *fasthttp.RequestCtx, status int, h health) {
	body, err := rest.Encode(h)
	if err != nil { // strings can always be encoded
		status = fasthttp.StatusInternalServerError
	}
	rest.WriteJSON(ctx, status, body)
	if status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	}
}
