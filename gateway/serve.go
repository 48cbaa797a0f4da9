package gateway

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/forwardedfor"
	"github.com/valyala/fasthttp"
)

// Handle answers one call. It implements wire.Handler.
func (g *Gateway) Handle(call *wire.Call) {
	if own := g.ownHandler(call.Path); own != nil {
		own(call.Ctx())
		return
	}
	if g.challenges != nil && bytes.HasPrefix(call.Path, challengePrefix) && g.answerChallenge(call) {
		return
	}
	ex := pipeline.For(call)
	setID(&ex.ID)
	ex.GivenID = g.givenID(call)
	ex.Client = upstream.ClientAddress(call, g.conf.Trusted)
	g.join(ex)
	meter := g.unmatched
	if g.find(ex) {
		if ex.API.Meter != nil {
			meter = ex.API.Meter
		}
		g.run(ex)
	} else if g.health != nil && string(call.Path) == "/health" {
		ex.Release()
		g.health(call.Ctx())
		return
	} else {
		ex.Stopped = routing
		g.reject(ex)
		g.remember(ex)
	}
	if ex.Answer.Stream != nil {
		g.passOn(ex, meter)
		return
	}
	g.finish(ex, meter)
}

// finish measures an exchange, records it if it is a sample, and releases it.
func (g *Gateway) finish(ex *pipeline.Exchange, meter pipeline.Meter) {
	ex.AsAsked()
	meter.Done(ex)
	if g.samples != nil {
		g.samples.Add(ex)
	}
	if ex.Trace.Steps != nil {
		g.tracer.Done(ex)
	}
	ex.Release()
}

// find sets the API of a request, or the rejection when there is none.
func (g *Gateway) find(ex *pipeline.Exchange) bool {
	s := g.current.Load()
	if s == nil {
		return (*snapshot.Snapshot)(nil).Find(ex)
	}
	ex.Internal = s
	return s.Find(ex)
}

// run runs the entry stages of the API, and then those of the version that they
// chose.
func (g *Gateway) run(ex *pipeline.Exchange) {
	verdict := g.pass(ex, ex.API.Entry)
	if verdict == pipeline.Next {
		if verdict = g.pass(ex, requestStages(ex)); verdict == pipeline.Rejected {
			verdict = g.openLate(ex)
		}
	}
	if verdict == pipeline.Next {
		ex.Stopped = forwarding
		if ex.Live != nil && ex.Live.Events && !ex.IsDry() {
			verdict = g.forwardEvents(ex)
		} else {
			verdict = g.forward(ex)
		}
	}
	var opened *socket
	if ex.Opening != nil && verdict == pipeline.Answered && !ex.IsDry() {
		opened, verdict = g.openSocket(ex)
	}
	if verdict != pipeline.Rejected && ex.Answer.Takeover != nil && !g.hold(ex, opened) {
		verdict = pipeline.Rejected
	}
	if verdict == pipeline.Rejected {
		g.reject(ex)
		if !ex.RefusedByChild() {
			g.remember(ex)
		}
		return
	}
	pipeline.Run(ex.Version.Response, ex)
}

// requestStages returns the request stages of an exchange.
func requestStages(ex *pipeline.Exchange) []pipeline.CompiledStage {
	if ex.Open {
		return ex.Version.Open
	}
	return ex.Version.Request
}

// serving is the snapshot in force, with the gateway that runs its internal calls.
type serving struct {
	*snapshot.Snapshot
	gateway *Gateway
}

// Call implements pipeline.InternalCalls.
func (s *serving) Call(ex *pipeline.Exchange, to *pipeline.APIRef, uri []byte) pipeline.Verdict {
	child, refused := s.Child(ex, to, uri)
	if refused != nil {
		return ex.Reject(refused)
	}
	s.gateway.run(child)
	if child.Answer.Stream != nil {
		child.Streams = true
	} else if meter := child.API.Meter; meter != nil {
		meter.Done(child)
	}
	return takeResult(ex, child)
}

// takeResult gives the parent the outcome of an internal call.
func takeResult(parent, child *pipeline.Exchange) pipeline.Verdict {
	parent.Upstream = child.Upstream
	if child.Rejection == nil {
		return pipeline.Answered
	}
	parent.RetryAfter, parent.MediaType = child.RetryAfter, child.MediaType
	return parent.Reject(child.Rejection)
}

// Refuse answers a request that could not be read. It implements wire.Handler.
func (g *Gateway) Refuse(call *wire.Call, fault *wire.Fault) {
	ex := pipeline.For(call)
	setID(&ex.ID)
	ex.Client, ex.Stopped = call.Peer, framing
	ex.Rejection = g.rejectionOf(fault)
	g.reject(ex)
	g.remember(ex)
	g.unmatched.Done(ex)
	ex.Release()
}

// givenID returns the X-Request-Id of a request if it is to be kept, or nil. There must
// be one only.
func (g *Gateway) givenID(call *wire.Call) []byte {
	field := call.Find(wire.NameXRequestID)
	if field == nil || !g.conf.KeepIDs && !forwardedfor.Trust(call.Peer.Unmap(), g.conf.Trusted) {
		return nil
	}
	for i := range call.Fields {
		if other := &call.Fields[i]; other != field && other.Name == field.Name {
			return nil
		}
	}
	if id := call.ValueOf(field); pipeline.IsRequestID(id) {
		return id
	}
	return nil
}

// setID sets a request id. Ids need to be unique, not unpredictable: a fast source
// is enough.
func setID(id *[32]byte) {
	high, low := rand.Uint64(), rand.Uint64()
	binary.LittleEndian.PutUint64(id[0:], hex(uint32(high)))
	binary.LittleEndian.PutUint64(id[8:], hex(uint32(high>>32)))
	binary.LittleEndian.PutUint64(id[16:], hex(uint32(low)))
	binary.LittleEndian.PutUint64(id[24:], hex(uint32(low>>32)))
}

// hex returns the eight hex digits of bits, one in each byte, the lowest first.
func hex(bits uint32) uint64 {
	const ones = 0x0101010101010101
	w := uint64(bits)
	w = (w | w<<16) & 0x0000ffff0000ffff
	w = (w | w<<8) & 0x00ff00ff00ff00ff
	w = (w | w<<4) & (ones * 0xf)
	letters := (w + ones*6) >> 4 & ones // 1 where the digit is above 9
	return w + ones*'0' + letters*('a'-'0'-10)
}

// ownHandler returns what answers a path that belongs to the gateway itself, or nil.
// /health is not among these paths: an API that has it keeps it.
func (g *Gateway) ownHandler(path []byte) fasthttp.RequestHandler {
	switch {
	case g.control != nil && (bytes.HasPrefix(path, controlPrefix) || string(path) == "/svc"):
		return g.control
	case string(path) == "/hello" || string(path) == "/ready" || string(path) == "/live":
		return g.health
	}
	return nil
}

var controlPrefix = []byte("/svc/")

// challengePrefix is where authorities look for answers by HTTP (RFC 8555, section 8.3).
var challengePrefix = []byte("/.well-known/acme-challenge/")

// answerChallenge answers a challenge of ACME, and reports whether the request was one.
func (g *Gateway) answerChallenge(call *wire.Call) bool {
	answer := g.challenges.Answer(call.Host, call.Path[len(challengePrefix):])
	if answer == nil {
		return false
	}
	ctx := call.Ctx()
	ctx.SetContentType("application/octet-stream")
	ctx.SetBody(answer)
	return true
}
