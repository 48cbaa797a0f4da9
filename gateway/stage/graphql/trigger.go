package graphql

import (
	"bytes"
	"context"
	"io"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/wsconn"
)

// A subscriber is a data graph or a supergraph: the stage in the place of an upstream, whose
// subscriptions go to the sources of their root fields.
type subscriber interface {
	pipeline.Stage
	// Trigger returns what a subscription is for its source, or nil and the response to it.
	Trigger(*pipeline.Exchange, *request.Request) (*pipeline.Trigger, []byte)
}

// maxFirst bounds the response of a source that answers a subscription at once; in bytes.
const maxFirst = 1 << 20

// trigger has the source of a subscription's root field stream its events. What the client
// sent does not reach the source but by the operation.
func (f forward) trigger(ex *pipeline.Exchange, graph subscriber, r *request.Request) pipeline.Verdict {
	t, response := graph.Trigger(ex, r)
	if t == nil {
		return f.atOnce(ex, response)
	}
	ex.Live.Joins = t.Joins
	ex.Live.Rewrites(ex.Call)
	was := ex.Outgoing
	f.streams.sendTo(ex, t)
	verdict := t.Upstream.Handle(ex)
	ex.Outgoing = was
	a := ex.Answer
	if verdict != pipeline.Answered || ex.Live.Joined || ex.Live.Upstream != nil {
		return verdict
	}
	if a.Status/100 == 2 && http1.HasPrefix(typeOf(a.Lines), "text/event-stream") {
		if a.Stream == nil {
			a.Stream, a.Body, a.Length = io.NopCloser(bytes.NewReader(bytes.Clone(a.Body))), nil, -1
		}
		a.Lines = append(a.Lines[:0], "Content-Type: text/event-stream\r\n"...)
		return verdict
	}
	body := a.Body
	if a.Stream != nil {
		body, _ = io.ReadAll(io.LimitReader(a.Stream, maxFirst)) // what is cut off is no JSON
		_ = a.Stream.Close()                                     // what it could say was said by Read
		a.Stream, a.Beside = nil, false
	}
	return f.atOnce(ex, t.Joins.Result(context.Background(), ex.Internal, a.Status, body))
}

// atOnce answers a subscription with one response.
func (f forward) atOnce(ex *pipeline.Exchange, response []byte) pipeline.Verdict {
	a := ex.Answer
	a.Status, a.NoBody, a.Length, a.Body = 200, false, 0, response
	a.Lines = append(a.Lines[:0], "Content-Type: application/json\r\n"...)
	return pipeline.Answered
}

func typeOf(lines []byte) []byte {
	for line := range bytes.Lines(lines) {
		if name, value, _ := bytes.Cut(line, []byte{':'}); http1.EqualFold(name, "Content-Type") {
			return http1.Trim(bytes.TrimRight(value, "\r\n"))
		}
	}
	return nil
}

// ofClients are headers of requests to upstreams that those to sources do not have.
var ofClients = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip", "X-Request-Id", "User-Agent"}

// sendTo makes the call of an exchange that of a subscription at its source.
func (s *streams) sendTo(ex *pipeline.Exchange, t *pipeline.Trigger) {
	call, own := ex.Call, streams{protocol: live.Legacy}
	if t.Protocol == live.TransportWS.String() {
		own.protocol = live.TransportWS
	}
	ex.Outgoing = pipeline.Outgoing{HasPath: true, HasQuery: true, Drop: ofClients, Extra: t.Lines}
	switch {
	case t.Internal:
		s.asEvents(ex, t, true)
	case t.Protocol == "sse":
		ex.Live.Streamed = pipeline.LiveStream{Share: s.share, Retries: s.retries}
		s.asEvents(ex, t, t.Post)
	default:
		nonce := []byte(wsconn.NewKey())
		ex.Live.Streamed = pipeline.LiveStream{Request: t.Request, Nonce: nonce, Upgrade: true, Share: s.share, Retries: s.retries}
		call.Method = methodGet
		call.SetBody(nil)
		call.SetLines(own.appendHandshake(nil, nonce))
	}
}

// asEvents makes the call one for an event stream.
func (s *streams) asEvents(ex *pipeline.Exchange, t *pipeline.Trigger, post bool) {
	call, out := ex.Call, &ex.Outgoing
	call.SetLines(nil)
	out.Extra = append(out.Extra, "Accept: text/event-stream\r\n"...)
	if post {
		call.Method = methodPost
		call.SetBody(t.Request)
		out.Extra = append(out.Extra, "Content-Type: application/json\r\n"...)
		return
	}
	call.Method = methodGet
	call.SetBody(nil)
	var d request.Decoder
	if list, _, refused := d.Body(t.Request, 0); refused == nil {
		out.Query = list[0].AppendParameters(nil)
	}
}
