package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// A PlayedSink takes the results of a subscription of the playground. Its methods do not
// wait, and do nothing after its end.
type PlayedSink interface {
	Begin(*PlayedAnswer) // with what is known of the answer before its results, which may come first
	Next(result []byte)  // a JSON object, which is copied
	Fail(errors []byte)  // a JSON array, which is copied; the last
	Complete()           // the last
}

// Bounds of the subscriptions of playgrounds.
const (
	streamedFor   = 10 * time.Minute
	maxStreamed   = 16              // at the same time, of all operators; and of all developers
	maxStreamedBy = 3               // of one of them
	maxUnread     = 4 << 20         // bytes of events that wait for a page
	streamBeat    = time.Second     // between two signs of life, by which a page that was closed is noticed
	streamCheck   = 5 * time.Second // between two looks at the session of the caller
)

// A PlayedEnd is why a subscription of the playground was ended, in words for the page.
type PlayedEnd string

// Error returns the words.
func (e PlayedEnd) Error() string { return string(e) }

// Why subscriptions are ended.
const (
	endLeft   PlayedEnd = "The page was closed."
	endLong   PlayedEnd = "Subscriptions of the playground end after 10 minutes. Run it again."
	endSlow   PlayedEnd = "The page does not read the results fast enough."
	endBarred PlayedEnd = "You are signed out, or may not use the playground any more."
	endStop   PlayedEnd = "The server stops. Run it again."
	endFailed PlayedEnd = "The subscription failed; the log of the admin has the cause."
	endNone   PlayedEnd = "The subscription has ended without a result."
)

// An underWay bounds what is under way at the same time, of all callers and of each. It is safe
// for concurrent use.
type underWay struct {
	most, each int

	mu    sync.Mutex
	all   int
	under map[string]int // by caller
}

func newUnderWay(most, each int) *underWay {
	return &underWay{most: most, each: each, under: make(map[string]int)}
}

// enter admits one more of a caller, until leave is called.
func (c *underWay) enter(who string) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most || c.under[who] >= c.each {
		return nil, false
	}
	c.all++
	c.under[who]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		if c.under[who]--; c.under[who] == 0 {
			delete(c.under, who)
		}
	}, true
}

// A streaming is a subscription to be run for a caller.
type streaming struct {
	by   Player
	call *PlayedCall
	of   *underWay
	show func(*PlayedAnswer) (any, error)
}

// stream runs a subscription and answers with its events, or with JSON if the API refuses
// it or answers otherwise.
func (s *Server) stream(ctx context.Context, c *rest.Call, r *streaming) (any, error) {
	leave, ok := r.of.enter(c.Who.Kind + ":" + c.Who.ID)
	if !ok {
		return nil, rest.Unavailable("Too many subscriptions of the playground are open; stop one, and try again in a few seconds")
	}
	lasting, end := context.WithCancelCause(s.streams)
	lasting, release := context.WithTimeoutCause(lasting, streamedFor, endLong)
	events := newPlayedEvents(end, s.stillMay(c))
	r.call.Live = events
	go func() {
		defer leave()
		defer release()
		events.finish(s.playLive(lasting, r))
	}()
	select {
	case first := <-events.first:
		if first.err != nil {
			return nil, first.err
		}
		shown, err := r.show(first.answer)
		if err != nil || !first.began {
			end(endLeft)
			return shown, err
		}
		text, err := rest.Encode(shown)
		if err != nil {
			end(endLeft)
			return nil, err
		}
		events.open(text)
		c.Stream(events)
		return nil, nil
	case <-ctx.Done():
	case <-time.After(playedWithin):
	}
	end(endLeft)
	return nil, notInTime()
}

// playLive makes the call. What panics ends that alone.
func (s *Server) playLive(ctx context.Context, r *streaming) (answer *PlayedAnswer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("running a subscription of the playground: %v\n%s", cause, debug.Stack())
		}
		if _, known := errors.AsType[PlayedEnd](err); err != nil && !known {
			s.log.Error("a subscription of the playground failed", "api", r.call.API, "err", err)
		}
	}()
	return r.by.Play(ctx, r.call)
}

// stillMay returns what reports whether the caller's credential still permits the call.
func (s *Server) stillMay(c *rest.Call) func() bool {
	credential, route, org, named := bytes.Clone(rest.CredentialOf(c.HTTP)), c.Route, c.Who.Org, c.OrgNamed
	return func() bool {
		ctx, cancel := context.WithTimeout(s.streams, streamBeat)
		defer cancel()
		who, err := s.identify(ctx, credential)
		switch {
		case err == nil:
			return route.Allows(who.Role) && (who.Org == org || named)
		default:
			_, expected := rest.FaultOf(err)
			return !expected // the database is away: the next look decides
		}
	}
}

func notInTime() error {
	return rest.Refuse(fasthttp.StatusGatewayTimeout, fmt.Sprintf("The API did not answer within %s", playedWithin))
}

// firstOfPlayed is what a subscription begins with, or came to instead.
type firstOfPlayed struct {
	answer *PlayedAnswer
	began  bool
	err    error
}

// playedEvents are the events of a subscription on their way to a page. It implements
// PlayedSink and io.ReadCloser.
type playedEvents struct {
	end     context.CancelCauseFunc
	may     func() bool
	first   chan firstOfPlayed // receives once
	checked time.Time

	mu      sync.Mutex
	told    bool // first has been sent
	waiting []byte
	over    bool          // nothing is added any more
	wake    chan struct{} // there is something to read
}

func newPlayedEvents(end context.CancelCauseFunc, may func() bool) *playedEvents {
	return &playedEvents{end: end, may: may, first: make(chan firstOfPlayed, 1), checked: time.Now(), wake: make(chan struct{}, 1)}
}

// Begin implements PlayedSink.
func (e *playedEvents) Begin(answer *PlayedAnswer) {
	e.tell(firstOfPlayed{answer: answer, began: true})
}

// tell says what came first, and reports whether this did.
func (e *playedEvents) tell(f firstOfPlayed) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told {
		return false
	}
	e.told = true
	e.first <- f
	return true
}

// open puts the first event before those that have come already.
func (e *playedEvents) open(answer []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(appendEvent(nil, "open", answer), e.waiting...)
	e.wakeReader()
}

// Next implements PlayedSink.
func (e *playedEvents) Next(result []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	if len(e.waiting)+len(result) > maxUnread {
		e.waiting = nil
		e.last("closed", reasonText(endSlow))
		e.end(endSlow)
		return
	}
	e.waiting = appendEvent(e.waiting, "next", result)
	e.wakeReader()
}

// Fail implements PlayedSink.
func (e *playedEvents) Fail(errors []byte) { e.finally("error", errors) }

// Complete implements PlayedSink.
func (e *playedEvents) Complete() { e.finally("complete", []byte("{}")) }

// finish takes what the call came to.
func (e *playedEvents) finish(answer *PlayedAnswer, err error) {
	if e.tell(firstOfPlayed{answer: answer, err: err}) {
		return
	}
	why := endNone // unless its end was said
	if err != nil {
		why = endFailed
		_ = errors.As(err, &why)
	}
	e.finally("closed", reasonText(why))
}

func (e *playedEvents) finally(name string, data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last(name, data)
}

// last adds the last event, unless it was added before. It needs mu.
func (e *playedEvents) last(name string, data []byte) {
	if e.over {
		return
	}
	e.over = true
	e.waiting = appendEvent(e.waiting, name, data)
	e.wakeReader()
}

func (e *playedEvents) wakeReader() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Read implements io.Reader.
func (e *playedEvents) Read(p []byte) (int, error) {
	if time.Since(e.checked) > streamCheck {
		if e.checked = time.Now(); !e.may() {
			e.end(endBarred)
		}
	}
	beat := time.NewTimer(streamBeat)
	defer beat.Stop()
	for {
		if n, over := e.take(p); n > 0 {
			return n, nil
		} else if over {
			return 0, io.EOF
		}
		select {
		case <-e.wake:
		case <-beat.C:
			return copy(p, ":\n\n"), nil
		}
	}
}

// take moves what waits into p, and reports whether that was all there will be.
func (e *playedEvents) take(p []byte) (n int, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n = copy(p, e.waiting)
	if e.waiting = e.waiting[n:]; len(e.waiting) == 0 {
		e.waiting = nil
	}
	return n, e.over
}

// Close implements io.Closer.
func (e *playedEvents) Close() error {
	e.end(endLeft)
	return nil
}

// appendEvent appends an event with JSON, which may have several lines.
func appendEvent(b []byte, name string, data []byte) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	for _, c := range data {
		switch c {
		case '\n':
			b = append(b, "\ndata: "...)
		case '\r': // white space between values
		default:
			b = append(b, c)
		}
	}
	return append(b, "\n\n"...)
}

// reasonText returns the data of the event that says why a subscription was ended.
func reasonText(why PlayedEnd) []byte {
	return append(jsonscan.AppendString([]byte(`{"reason":`), []byte(why)), '}')
}
