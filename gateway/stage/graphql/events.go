package graphql

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/wsconn"
)

// stream decides that the results of an admitted operation are sent one by one. Over HTTP
// the answer is an event stream then (GraphQL over SSE, distinct connections mode): those
// of subscriptions always are, others if the client accepts nothing else.
func (w *work) stream(ex *pipeline.Exchange, subscription bool, r *request.Request) {
	if ex.Live == nil && !ex.Call.IsHead() && (subscription || w.head.Only) {
		ex.Live = &pipeline.Live{Events: true, Subscribes: subscription}
	}
	if ex.Live != nil && subscription {
		w.asked = r
	}
}

// events calls the upstream for an operation whose answer is an event stream.
func (f forward) events(ex *pipeline.Exchange, w *work) pipeline.Verdict {
	ex.Outgoing.AlsoDrop("Accept-Encoding") // the answer is read here
	switch s := &f.streams; {
	case w.asked == nil:
		w.accept(ex, "application/json")
	case s.unsaid || s.internal || s.events:
		w.askForEvents(ex, s)
	default:
		w.askForSocket(ex, s)
	}
	return f.upstream.Handle(ex)
}

// isOfUpgrade reports whether a header line asks to leave HTTP.
func isOfUpgrade(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte{':'})
	return http1.EqualFold(name, "Upgrade") || http1.HasPrefix(name, "Sec-WebSocket-")
}

// accept gives the forwarded request one media type of answers.
func (w *work) accept(ex *pipeline.Exchange, media string) {
	ex.Outgoing.Rewrite("Accept")
	ex.Outgoing.Extra = append(ex.Outgoing.Extra, "Accept: "...)
	ex.Outgoing.Extra = append(ex.Outgoing.Extra, media...)
	ex.Outgoing.Extra = append(ex.Outgoing.Extra, "\r\n"...)
}

// askForEvents makes the forwarded request one for an event stream, by the method that the
// definition names.
func (w *work) askForEvents(ex *pipeline.Exchange, s *streams) {
	w.accept(ex, "text/event-stream") // alone: servers of GraphQL over SSE look for that
	if !s.events || s.internal || s.post != w.get {
		return
	}
	ex.Live.Rewrites(ex.Call)
	w.withoutParameters(ex)
	if s.post {
		ex.Call.Method = methodPost
		ex.Call.SetBody(appendRequest(nil, w.asked))
		w.asJSON(ex)
		return
	}
	w.withoutBody(ex)
	ex.Outgoing.Query = w.asked.AppendParameters(ex.Outgoing.Query)
}

// askForSocket makes the forwarded request a WebSocket handshake, behind which the
// subscription is sent.
func (w *work) askForSocket(ex *pipeline.Exchange, s *streams) {
	call, nonce := ex.Call, []byte(wsconn.NewKey())
	ex.Live.Rewrites(call)
	ex.Live.Streamed = pipeline.LiveStream{Request: appendRequest(nil, w.asked), Nonce: nonce, Upgrade: true, Share: s.share, Retries: s.retries}
	if !w.get {
		ex.Live.Streamed.Request = bytes.Clone(call.Body) // with what else it has
	}
	w.withoutParameters(ex)
	w.withoutBody(ex)
	ex.Outgoing.AlsoDrop("Accept")
	call.SetLines(s.appendHandshake(http1.RemoveLinesFunc(bytes.Clone(call.Lines), isOfUpgrade), nonce))
}

// withoutParameters removes the operation from the forwarded URL.
func (w *work) withoutParameters(ex *pipeline.Exchange) {
	ex.Outgoing.Query = w.decoder.AppendOthers(ex.Outgoing.Query[:0], ex.Query()) // may share memory with the result
	ex.Outgoing.HasQuery = true
}

// withoutBody makes the forwarded request a GET without a body.
func (w *work) withoutBody(ex *pipeline.Exchange) {
	ex.Call.Method = methodGet
	ex.Call.SetBody(nil)
	ex.Outgoing.AlsoDrop("Content-Type")
}

var methodPost = []byte("POST")
