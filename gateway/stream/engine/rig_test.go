package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// patience bounds what tests wait for.
const patience = 30 * time.Second

// A peer is an output of tests. It answers each message with the next of its errors, and
// takes what comes after them.
type peer struct {
	level *stream.Demand
	hold  bool // messages are settled by release

	mu     sync.Mutex
	errs   []error
	got    []*stream.Message
	held   []stream.Settle
	came   chan *stream.Message
	closed bool
}

func newPeer(errs ...error) *peer {
	return &peer{level: stream.NewDemand(true), errs: errs, came: make(chan *stream.Message, 1000)}
}

// Demand implements stream.Output.
func (p *peer) Demand() *stream.Demand { return p.level }

// Write implements stream.Output.
func (p *peer) Write(m *stream.Message, settle stream.Settle) {
	p.mu.Lock()
	var err error
	if len(p.errs) > 0 {
		err, p.errs = p.errs[0], p.errs[1:]
	} else {
		p.got = append(p.got, m)
	}
	if p.hold {
		p.held = append(p.held, settle)
		p.mu.Unlock()
		p.came <- m
		return
	}
	p.mu.Unlock()
	settle(err)
	p.came <- m
}

// Close implements stream.Output.
func (p *peer) Close(context.Context) {
	p.mu.Lock()
	p.closed = true
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, settle := range held {
		settle(stream.ErrClosed)
	}
}

// took returns the bodies of the messages that the peer has taken.
func (p *peer) took() (bodies []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

// release settles the oldest message that is held.
func (p *peer) release(err error) {
	p.mu.Lock()
	settle := p.held[0]
	p.held = p.held[1:]
	p.mu.Unlock()
	settle(err)
}

// A spring is an input of tests.
type spring struct {
	flow    stream.Flow
	stopped chan struct{}
}

// Start implements stream.Input.
func (s *spring) Start(to stream.Flow) { s.flow, s.stopped = to, make(chan struct{}) }

// Stop implements stream.Input.
func (s *spring) Stop(context.Context) { close(s.stopped) }

// Close implements stream.Input.
func (s *spring) Close() {}

// A rig is a stream whose connectors are those of the test.
type rig struct {
	t    *testing.T
	run  *running
	in   *spring
	outs []*peer
	dead *peer
}

// quick has messages tried again at once.
const quick = `"retry": {"max_attempts": 3, "initial": "1ms", "max": "1ms"}`

func newEngine(t *testing.T) *Engine {
	t.Helper()
	e := New(Options{MaxStreams: 100, MaxBytes: 64 << 20, WebSockets: true, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

// confOf reads a stream.
func confOf(t *testing.T, text string) *streams.Stream {
	t.Helper()
	all, faults := streams.Parse(json.RawMessage(`{"streams": {"s": `+text+`}}`), streams.Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return &all[0]
}

// start runs a stream of msgbroker connectors, which are replaced by the outputs.
func start(t *testing.T, text string, outs ...*peer) *rig {
	t.Helper()
	r := &rig{t: t, in: &spring{}, outs: outs, dead: newPeer()}
	var err error
	if r.run, err = newEngine(t).newRunning("key", "org", "api", confOf(t, text)); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, c := range r.run.connectors {
		switch c.side {
		case sideInput:
			c.in = r.in
		case sideOutput:
			c.out = outs[at]
			at++
		case sideDead:
			c.out = r.dead
		}
	}
	r.run.start()
	t.Cleanup(func() { r.drain(patience) })
	return r
}

func (r *rig) drain(within time.Duration) {
	r.run.mu.Lock()
	over := r.run.stopping
	r.run.mu.Unlock()
	if over {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	r.run.drain(ctx)
}

// send passes a message in, and returns what it is settled with.
func (r *rig) send(body string) <-chan error {
	r.t.Helper()
	return r.sendMessage(&stream.Message{ID: "id-" + body, Body: []byte(body), Attempt: 1})
}

func (r *rig) sendMessage(m *stream.Message) <-chan error {
	r.t.Helper()
	settled := make(chan error, 2)
	if !r.in.flow.Take(m, func(err error) { settled <- err }) {
		r.t.Fatal("the message was not taken")
	}
	return settled
}

// wait returns what comes.
func wait[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came in time")
		panic("unreachable")
	}
}

// settled waits for the settlement of a message, which must be the only one.
func settled(t *testing.T, from <-chan error) error {
	t.Helper()
	err := wait(t, from)
	select {
	case again := <-from:
		t.Fatalf("settled twice: %v, %v", err, again)
	default:
	}
	return err
}

const (
	inside  = `{"msgbroker": {"addresses": ["inproc://"], "topics": ["in"]}}`
	outside = `{"msgbroker": {"addresses": ["inproc://"], "topic": "out"}}`
)

// several is a broker of n outputs.
func several(pattern string, n int) string {
	var text strings.Builder
	text.WriteString(`{"broker": {"pattern": "` + pattern + `", "outputs": [` + outside)
	for range n - 1 {
		text.WriteString(", " + outside)
	}
	return text.String() + `]}}`
}

// streamOf is a stream to an output, with more members.
func streamOf(output, more string) string {
	if more != "" {
		more = ", " + more
	}
	return `{"input": ` + inside + `, "output": ` + output + `, ` + quick + more + `}`
}

const deadLetter = `"dead_letter": {"msgbroker": {"addresses": ["inproc://"], "topic": "dead"}, "include_error": true}`

// apiOf is an API with streams.
func apiOf(t testing.TB, text string) *definition.API {
	t.Helper()
	var api definition.API
	if err := json.Unmarshal([]byte(`{"api_id": "a", "org_id": "o", "use_keyless": true, "proxy": {"listen_path": "/a/"}, "x-svc-streaming": {"streams": `+text+`}}`), &api); err != nil {
		t.Fatal(err)
	}
	return &api
}
