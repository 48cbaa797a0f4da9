package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/internal/eventstream"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// A PlayedSink takes what comes of a subscription of the playground. Begin has what is
// known of its answer before the results, which may come first.
type PlayedSink interface {
	Begin(*explain.Played)
	live.Sink
}

// PlayLive is Play for a subscription. It returns once the subscription has ended, soon
// after ctx has. If the request is refused, or has an answer without results, that is
// returned and nothing is passed on.
func (g *Gateway) PlayLive(ctx context.Context, p *Playing, to PlayedSink) *explain.Played {
	report := g.Explain(p.Request)
	s := g.current.Load()
	if s == nil || !reaches(report, p.API) {
		return &explain.Played{Report: report}
	}
	r := &playedLive{gateway: g, playing: p, report: report, to: to}
	return r.run(ctx, s.Snapshot, s)
}

// PlayLive is Gateway.PlayLive under the aside's configuration. Nothing is measured.
func (a *Aside) PlayLive(ctx context.Context, p *Playing, to PlayedSink) *explain.Played {
	report := a.Explain(p.Request)
	if !reaches(report, p.API) {
		return &explain.Played{Report: report}
	}
	compiler := a.gateway.compiler.Detached()
	defer compiler.Close()
	r := &playedLive{gateway: a.gateway, playing: p, report: report, to: to}
	return r.run(ctx, a.snapshot, &aside{dryRun: dryRun{Gateway: a.gateway, Snapshot: a.snapshot, compiler: compiler}})
}

// playedLive is a subscription of the playground.
type playedLive struct {
	gateway *Gateway
	playing *Playing
	report  *explain.Report
	to      PlayedSink
}

// run makes the call as an operation of a GraphQL connection.
func (r *playedLive) run(ctx context.Context, s *snapshot.Snapshot, internal pipeline.InternalCalls) *explain.Played {
	g := r.gateway
	ex := g.playing(r.playing, s, internal)
	if ex == nil {
		return &explain.Played{Report: r.report}
	}
	defer played(r.playing, ex)
	to := &endingSink{Sink: r.to, ended: make(chan struct{})}
	sub, id := g.newSubscription(to), string(ex.RequestID())
	sub.failed = func(err error) { r.fail(ctx, to, id, err) }
	sub.metered.calls = func() pipeline.InternalCalls { return internal }
	var left atomic.Bool
	defer context.AfterFunc(ctx, func() { left.Store(!sub.isOpening()) })() // others may wait for the connection
	ex.Call.UntilLeft(&left)
	ex.Call.SetBody(bytes.Clone(ex.Call.Body)) // it is behind the header lines, which grow
	ex.Live = &sub.live
	done := &explain.Played{Sent: true, RequestID: id, Report: r.report}
	g.run(ex)
	streams, err := sub.streams(ex)
	switch {
	case err == nil && streams:
		defer sub.Leave()
		readHead(ex, done)
		r.to.Begin(done)
		select {
		case <-ctx.Done():
		case <-to.ended:
		}
	case ex.Answer.Takeover != nil && http1.HasPrefix(valueOf(ex.Answer.Lines, "Content-Type"), "text/event-stream"):
		readHead(ex, done)
		r.to.Begin(done)
		if err := passMessages(ctx, ex, to); err != nil {
			r.fail(ctx, to, id, err)
		}
	case streams, ex.Rejection == nil && http1.HasPrefix(valueOf(ex.Answer.Lines, "Content-Type"), "text/event-stream"):
		readHead(ex, done)
		r.to.Begin(done)
		defer sub.Leave()
		if err == nil {
			err = passEvents(ex, sub.To)
		}
		if err != nil {
			sub.metered.end(func() { r.fail(ctx, to, id, err) })
		}
		select {
		case <-ctx.Done():
		case <-to.ended:
		}
	default:
		g.read(ex, done, r.playing.Within)
	}
	return done
}

// maxMessage is the largest message that is passed on to a page, in bytes.
const maxMessage = 1 << 20

// passMessages passes on the messages that an event stream of the API gives to a client,
// until that ends or ctx does. Each is an object of event, its name, and data, its text.
func passMessages(ctx context.Context, ex *pipeline.Exchange, to live.Sink) error {
	page, client := net.Pipe()
	defer context.AfterFunc(ctx, func() { _ = page.Close() })() // closing a pipe does not fail
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer client.Close()
		ex.Answer.Takeover(client, nil)
	}()
	events := eventstream.NewReader(page, maxMessage)
	var err error
	for err == nil {
		var one eventstream.Event
		if one, err = events.Next(); err == nil && one.HasData {
			b := jsonscan.AppendString([]byte(`{"event":`), []byte(one.Name))
			b = jsonscan.AppendString(append(b, `,"data":`...), one.Data)
			to.Next(append(b, '}'))
		}
	}
	_ = page.Close() // see above
	<-served
	if errors.Is(err, io.EOF) {
		to.Complete()
		return nil
	}
	return err
}

// passEvents passes on what an upstream streams as text/event-stream.
func passEvents(ex *pipeline.Exchange, to live.Sink) error {
	a := ex.Answer
	if a.Stream == nil {
		return live.Events(bytes.NewReader(a.Body), to) // all have come at once
	}
	ex.Settle()
	err := live.Events(a.Stream, to)
	_ = a.Stream.Close() // what it could say was said by Read
	return err
}

// fail ends a subscription whose upstream has failed.
func (r *playedLive) fail(ctx context.Context, to live.Sink, id string, err error) {
	if ctx.Err() == nil {
		r.gateway.log.Warn("a subscription of the playground has failed", "api", r.playing.API, "request_id", id, "err", err)
		to.Fail(failure("The upstream has failed."))
	}
}

// endingSink is a sink that reports its end.
type endingSink struct {
	live.Sink
	once  sync.Once
	ended chan struct{}
}

// Fail implements live.Sink.
func (s *endingSink) Fail(errors []byte) {
	s.Sink.Fail(errors)
	s.end()
}

// Complete implements live.Sink.
func (s *endingSink) Complete() {
	s.Sink.Complete()
	s.end()
}

func (s *endingSink) end() { s.once.Do(func() { close(s.ended) }) }
