package gateway

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/tunnels"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
)

// Bounds of event streams. What waits for a slow client is bounded as on GraphQL
// connections.
const (
	eventHeartbeat  = 12 * time.Second // of silence until a comment is sent
	eventLook       = 2 * time.Second  // between two looks for a client that has left
	maxEventsKept   = 64 << 10         // bytes of a queue that is kept for later events
	reconnectWithin = 5 * time.Second  // the longest time that clients are asked to wait
)

var (
	noSubscription = pipeline.NewRejection(pipeline.ReasonUpstreamMalformed, 502, "The upstream has not accepted the subscription")
	noResult       = pipeline.NewRejection(pipeline.ReasonUpstreamMalformed, 502, "The upstream has sent no GraphQL answer")
)

// forwardEvents calls the upstream for an operation whose answer is an event stream (GraphQL
// over SSE, distinct connections mode). What an upstream refuses stays the answer that it
// gave.
func (g *Gateway) forwardEvents(ex *pipeline.Exchange) pipeline.Verdict {
	if !ex.Live.Subscribes {
		if verdict := g.forward(ex); verdict != pipeline.Answered {
			return verdict
		}
		return g.eventsOf(ex, nil)
	}
	s := g.newEventStream(ex)
	verdict := g.forward(ex)
	streams, err := s.sub.streams(ex)
	ex.AsAsked()
	switch {
	case verdict != pipeline.Answered:
		return verdict
	case err != nil || !streams && ex.Live.Streamed.Upgrade:
		s.stop()
		return g.withoutEvents(ex, noSubscription)
	case streams:
		return g.stream(ex, s)
	}
	return g.eventsOf(ex, s)
}

// eventsOf makes events of an answer over HTTP. s is nil unless it is one to a subscription.
func (g *Gateway) eventsOf(ex *pipeline.Exchange, s *eventStream) pipeline.Verdict {
	a := ex.Answer
	ofEvents := http1.HasPrefix(valueOf(a.Lines, "Content-Type"), "text/event-stream")
	switch {
	case a.Status/100 != 2 || a.NoBody:
		return pipeline.Answered
	case isEncoded(a.Lines):
		return g.withoutEvents(ex, noResult)
	case ofEvents && a.Stream != nil && s != nil:
		from := a.Stream
		s.inner, _ = from.(*eventStream)
		verdict := g.stream(ex, s)
		if verdict == pipeline.Answered {
			go s.follow(from)
		}
		return verdict
	}
	return g.eventsAtOnce(ex, ofEvents)
}

// isEncoded reports whether a body is compressed. Some servers of GraphQL over SSE say none.
func isEncoded(lines []byte) bool {
	encoding := valueOf(lines, "Content-Encoding")
	return len(encoding) > 0 && !http1.EqualFold(encoding, "identity") && !http1.EqualFold(encoding, "none")
}

// withoutEvents refuses an exchange because of the upstream's answer.
func (g *Gateway) withoutEvents(ex *pipeline.Exchange, why *pipeline.Rejection) pipeline.Verdict {
	g.log.Warn("an operation over HTTP has no event stream", "api", ex.API.Definition.ID, "request_id", string(ex.RequestID()),
		"why", why.Message, "status", ex.Upstream.Status)
	discard(ex.Answer)
	return ex.Reject(why)
}

// discard takes an answer back.
func discard(a *wire.Answer) {
	if a.Stream != nil {
		_ = a.Stream.Close() // it is not used
	}
	a.Stream, a.NoBody, a.Length, a.Beside = nil, false, 0, false
}

// eventsAtOnce makes events of an answer that is complete: those of a short stream, or one
// result.
func (g *Gateway) eventsAtOnce(ex *pipeline.Exchange, ofEvents bool) pipeline.Verdict {
	a, most := ex.Answer, g.conf.Sockets.MaxResponse
	q := &eventQueue{most: g.conf.Sockets.MaxQueued}
	body, err := wholeBody(a, most)
	switch {
	case err != nil:
		return g.withoutEvents(ex, noResult)
	case ofEvents:
		if live.Events(bytes.NewReader(body), q) != nil {
			q.Fail(failure(upstreamFailed))
		}
	case len(body) > most:
		q.Fail(failure("The response is larger than " + strconv.Itoa(most) + " bytes; ask for it as application/json."))
	case !live.IsResult(body):
		return g.withoutEvents(ex, noResult)
	default:
		q.Next(body)
		q.Complete()
	}
	setEventHead(a)
	a.Body, a.Length = q.waiting, 0
	return pipeline.Answered
}

// wholeBody returns the body of an answer, and closes its stream. Of one that is too large
// there is more than most.
func wholeBody(a *wire.Answer, most int) ([]byte, error) {
	if a.Stream == nil {
		return a.Body, nil
	}
	body, err := io.ReadAll(io.LimitReader(a.Stream, int64(most)+1))
	_ = a.Stream.Close() // what it could say was said by Read
	a.Stream, a.Beside = nil, false
	return body, err
}

// setEventHead makes the head of an answer that of an event stream.
func setEventHead(a *wire.Answer) {
	a.Status, a.Phrase, a.NoBody = 200, a.Phrase[:0], false
	a.Lines = http1.RemoveLinesFunc(a.Lines, func(line []byte) bool {
		name, _, _ := bytes.Cut(line, []byte{':'})
		for _, one := range [...]string{
			"Connection", "Upgrade", "Content-Type", "Content-Encoding", "Content-Disposition", "Content-Range", "Accept-Ranges",
			"Cache-Control", "Expires", "Pragma", "Age", "Etag", "Last-Modified", "X-Accel-Buffering",
		} {
			if http1.EqualFold(name, one) {
				return true
			}
		}
		return http1.HasPrefix(name, "Sec-WebSocket-")
	})
	a.Lines = append(a.Lines, "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"...)
}

// newEventStream returns the stream that a subscription is to have. What streams the results
// over WebSocket gives them to it from any goroutine.
func (g *Gateway) newEventStream(ex *pipeline.Exchange) *eventStream {
	s := &eventStream{
		gateway: g, client: ex.Call.Client(), api: ex.API.Definition.ID, id: string(ex.RequestID()),
		retries: string(ex.Call.Method) == "GET", wake: make(chan struct{}, 1), timer: time.NewTimer(eventLook),
	}
	s.most = g.conf.Sockets.MaxQueued
	if reader := ex.Parent.LiveEvents(); reader != nil {
		s.client = wire.ClientUntil(reader.Left)
	}
	s.sub = g.newSubscription(s)
	s.sub.failed = s.failed
	s.sub.live.Events, s.sub.live.Left = true, &s.left
	ex.Live = &s.sub.live
	return s
}

// stream has the answer stream the events. They are held like a connection that has left
// HTTP: what allows them is checked again while the stream is open.
func (g *Gateway) stream(ex *pipeline.Exchange, s *eventStream) pipeline.Verdict {
	full := tunnels.Free
	if s.release, full = g.holdEvents(ex, s.cut); full != tunnels.Free {
		s.stop()
		discard(ex.Answer)
		return tunnels.Refuse(ex, full)
	}
	g.streams.add(s)
	a := ex.Answer
	setEventHead(a)
	a.Stream, a.Body, a.Length, a.Beside = s, nil, -1, false
	return pipeline.Answered
}

// follow passes the upstream's own event stream on.
func (s *eventStream) follow(from io.ReadCloser) {
	defer func() { _ = from.Close() }() // what it could say was said by Read
	if err := live.Events(readUntil{&s.left, from}, s.sub.To); err != nil {
		s.sub.metered.end(func() { s.failed(err) })
	}
}

// failed ends a stream whose upstream has failed.
func (s *eventStream) failed(err error) {
	if !s.left.Load() {
		s.gateway.log.Warn("a subscription over HTTP has failed", "api", s.api, "request_id", s.id, "err", err)
		s.Fail(failure(upstreamFailed))
	}
}

const upstreamFailed = "The upstream has failed."

// readUntil reads no more once who reads has left: an upstream that sends without a pause is
// not waited for.
type readUntil struct {
	left *atomic.Bool
	io.Reader
}

// Read implements io.Reader.
func (r readUntil) Read(p []byte) (int, error) {
	if r.left.Load() {
		return 0, errClientLeft
	}
	return r.Reader.Read(p)
}

// An eventQueue has the events that wait for the client. It implements live.Sink.
type eventQueue struct {
	most int // bytes that may wait

	mu      sync.Mutex
	waiting []byte
	read    int  // bytes of waiting that have been read
	over    bool // nothing is queued any more
}

// Next queues a result.
func (q *eventQueue) Next(result []byte) { q.add(false, "event: next\ndata: ", result, "\n\n") }

// Fail queues errors, an array, as the last result.
func (q *eventQueue) Fail(errors []byte) {
	q.add(true, "event: next\ndata: {\"errors\":", errors, "}\n\n"+completeEvent)
}

// Complete ends the stream.
func (q *eventQueue) Complete() { q.add(true, completeEvent, nil, "") }

// The line with empty data has browsers dispatch the event.
const completeEvent = "event: complete\ndata:\n\n"

// add queues an event with a JSON text, and reports whether there was room for it.
func (q *eventQueue) add(last bool, before string, text []byte, behind string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, more := len(q.waiting)-q.read, len(before)+len(text)+len(behind)
	switch {
	case q.over:
		return true
	case waiting > 0 && waiting+more > q.most && !last:
		return false
	}
	q.over = last
	if q.read > 0 && len(q.waiting)+more > cap(q.waiting) {
		q.waiting, q.read = q.waiting[:copy(q.waiting, q.waiting[q.read:])], 0
	}
	q.waiting = append(q.waiting, before...)
	start := len(q.waiting)
	q.waiting = append(q.waiting, text...)
	for i, c := range q.waiting[start:] {
		if c == '\n' || c == '\r' { // between two tokens; they would end the line
			q.waiting[start+i] = ' '
		}
	}
	q.waiting = append(q.waiting, behind...)
	return true
}

// take copies what waits to p. over says that nothing will follow.
func (q *eventQueue) take(p []byte) (n int, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = copy(p, q.waiting[q.read:])
	if q.read += n; q.read == len(q.waiting) {
		q.waiting, q.read = q.waiting[:0], 0
		if cap(q.waiting) > maxEventsKept {
			q.waiting = nil
		}
	}
	return n, q.over
}

// end queues text as the last.
func (q *eventQueue) end(text string) { q.add(true, text, nil, "") }

// drop ends the stream, whatever waits.
func (q *eventQueue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over, q.waiting, q.read = true, nil, 0
}

// An eventStream is the body of an answer to a subscription. Its methods as a live.Sink
// queue an event and do not wait; they may be called by any goroutine, also after its end.
type eventStream struct {
	eventQueue
	gateway *Gateway
	client  wire.Client
	api, id string        // of the exchange
	sub     *subscription // over WebSocket, if the upstream speaks that
	inner   *eventStream  // of an internal call; nil: none
	left    atomic.Bool   // nobody reads the results any more
	release func()        // of the place among the tunnels
	retries bool          // the client is one that connects again by itself: EventSource
	wake    chan struct{} // something was queued
	timer   *time.Timer
	closed  bool
}

const slowEvents = "The events are not read fast enough."

// Next implements live.Sink.
func (s *eventStream) Next(result []byte) {
	if !s.add(false, "event: next\ndata: ", result, "\n\n") {
		s.eventQueue.Fail(failure(slowEvents))
		s.stop()
	}
	s.awake()
}

// Fail implements live.Sink.
func (s *eventStream) Fail(errors []byte) { s.eventQueue.Fail(errors); s.awake() }

// Complete implements live.Sink.
func (s *eventStream) Complete() { s.eventQueue.Complete(); s.awake() }

func (s *eventStream) awake() {
	select {
	case s.wake <- struct{}{}:
	default: // it will wake
	}
}

// stop ends the subscription.
func (s *eventStream) stop() {
	s.left.Store(true)
	s.sub.Leave()
	if s.inner != nil {
		s.inner.drop()
		s.inner.stop()
		s.inner.awake()
	}
}

// cut ends a stream that is not allowed any more.
func (s *eventStream) cut(why error) {
	s.Fail(failure(why.Error()))
	s.stop()
}

// leave ends the stream before its subscription has: clients then connect again, spread
// over a time. Others than EventSource choose it themselves, and some do not understand
// the field.
func (s *eventStream) leave() {
	text := ""
	if s.retries {
		wait := time.Second + rand.N(reconnectWithin-time.Second)
		text = "retry: " + strconv.FormatInt(wait.Milliseconds(), 10) + "\n\n"
	}
	s.end(text)
	s.stop()
	s.awake()
}

var errClientLeft = errors.New("the client has left")

// Read returns events, and after a long silence a comment. It is called by who handles the
// call.
func (s *eventStream) Read(p []byte) (int, error) {
	s.timer.Reset(eventLook)
	for looks := time.Duration(0); ; {
		switch n, over := s.take(p); {
		case n > 0:
			return n, nil
		case over:
			return 0, io.EOF
		case looks*eventLook >= eventHeartbeat:
			return copy(p, ":\n"), nil
		}
		select {
		case <-s.wake:
		case <-s.timer.C:
			if looks++; s.client.Gone() {
				return 0, errClientLeft
			}
			s.timer.Reset(eventLook)
		}
	}
}

// Close ends the subscription.
func (s *eventStream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.release()
	s.drop()
	s.stop()
	s.timer.Stop()
	s.gateway.streams.remove(s)
	return nil
}

// openStreams are the event streams that are open.
type openStreams struct {
	mu      sync.Mutex
	all     map[*eventStream]struct{}
	leaving bool
}

func (o *openStreams) add(s *eventStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.leaving {
		s.leave()
	}
	if o.all == nil {
		o.all = make(map[*eventStream]struct{})
	}
	o.all[s] = struct{}{}
}

func (o *openStreams) remove(s *eventStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, s)
}

// leave has all clients connect again, elsewhere if they can.
func (o *openStreams) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaving = true
	for s := range o.all {
		s.leave()
	}
}
