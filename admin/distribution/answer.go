package distribution

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/definition"
)

// Answer answers a gateway that has the bundle with the entity tag have: with 304, a
// delta, or the whole bundle.
func (b *Bundle) Answer(rc *fasthttp.RequestCtx, have string) {
	switch {
	case b.ETag == have:
		rc.Response.Header.Set(fasthttp.HeaderETag, b.ETag)
		rc.Response.SetStatusCode(fasthttp.StatusNotModified)
	case b.answerDelta(rc, have):
	default:
		b.answerWhole(rc)
	}
}

// answerDelta answers with the delta from have, and reports whether it did: the gateway
// must accept deltas, and the delta must be known (RFC 3229).
func (b *Bundle) answerDelta(rc *fasthttp.RequestCtx, have string) bool {
	if string(rc.Request.Header.Peek("A-IM")) != definition.DeltaEncoding {
		return false
	}
	delta := b.Delta(have)
	if delta == nil {
		return false
	}
	h := &rc.Response.Header
	h.Set("IM", definition.DeltaEncoding)
	h.Set("Delta-Base", have)
	h.Set(fasthttp.HeaderETag, b.ETag)
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	h.SetContentType("application/json")
	rc.Response.SetStatusCode(fasthttp.StatusIMUsed)
	rc.Response.SetBodyRaw(delta) // shared, and only read from here on
	return true
}

// answerWhole answers with the bundle in the best encoding that the gateway accepts.
// The entity tag is the same in all encodings.
func (b *Bundle) answerWhole(rc *fasthttp.RequestCtx) {
	body, encoding := b.JSON(), ""
	accepted := string(rc.Request.Header.Peek(fasthttp.HeaderAcceptEncoding))
	switch {
	case accepts(accepted, "zstd"):
		body, encoding = b.Zstd(), "zstd"
	case accepts(accepted, "gzip"):
		body, encoding = b.Gzip(), "gzip"
	}
	h := &rc.Response.Header
	h.Set(fasthttp.HeaderETag, b.ETag)
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	h.SetContentType("application/json")
	if encoding != "" {
		h.Set(fasthttp.HeaderContentEncoding, encoding)
	}
	rc.Response.SetBodyRaw(body) // shared, and only read from here on
}

// accepts reports whether an Accept-Encoding names an encoding without refusing
// it.
func accepts(accepted, encoding string) bool {
	for part := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) {
			weight = strings.TrimSpace(weight)
			return !strings.HasPrefix(weight, "q=0") || strings.ContainsAny(strings.TrimPrefix(weight, "q=0"), "123456789")
		}
	}
	return false
}
