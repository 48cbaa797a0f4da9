package endpoint

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/mapping"
)

// An Input takes messages from clients of the API, by HTTP requests and over WebSocket. It
// has no goroutine of its own: messages run on those of the clients' connections.
type Input struct {
	site    *stream.Site
	known   known
	served  []streams.Route
	timeout time.Duration
	rate    *limiter
	replies replies
	refused sync.Map // pipeline.Rejection of a refused message, by label of the processor

	socket socketConf // its path is "" for none
	joined *Output    // whose clients send messages as well; nil: none

	flow    atomic.Pointer[flowing] // nil: not started
	stopped chan struct{}           // closed by Stop

	mu       sync.Mutex
	stopping bool
	busy     int           // messages that are being passed on
	quiet    chan struct{} // closed when none is any more; nil: nobody waits for that
	open     chan struct{} // closed while there is demand
	isOpen   bool
	sockets  map[*socket]struct{}
	wheel    wheel
}

// flowing is where messages go.
type flowing struct {
	stream.Flow
	unwatch func()
}

// NewInput returns the connector http_server as an input.
func NewInput(c *streams.HTTPServerInput, site *stream.Site) (*Input, error) {
	in := newInput(site)
	in.served, in.timeout = c.Routes(), c.Timeout
	in.socket = socketConf{path: c.WSPath, heartbeat: defaultHeartbeat, writeTimeout: writeTimeout}
	in.wheel.every = in.socket.heartbeat
	if c.RateLimit != nil {
		in.rate = newLimiter(c.RateLimit)
	}
	var err error
	in.replies, err = newReplies(c)
	return in, err
}

// NewSocketInput returns the connector websocket_server as an input.
func NewSocketInput(c *streams.WebSocket, site *stream.Site) *Input {
	in := newInput(site)
	in.served = []streams.Route{c.Route(true)}
	in.socket = socketConfOf(c)
	in.wheel.every = in.socket.heartbeat
	return in
}

func newInput(site *stream.Site) *Input {
	return &Input{
		site: site, stopped: make(chan struct{}), open: make(chan struct{}), sockets: make(map[*socket]struct{}),
	}
}

// replies says how requests are answered whose messages were passed on.
type replies struct {
	status  *mapping.Template // nil: 200
	headers []replyHeader
}

type replyHeader struct {
	name  string
	value *mapping.Template
}

func newReplies(c *streams.HTTPServerInput) (r replies, err error) {
	if c.ReplyStatus != "" {
		if r.status, err = mapping.CompileTemplate(string(c.ReplyStatus)); err != nil {
			return r, fmt.Errorf("sync_response.status: %w", err)
		}
	}
	for _, h := range c.ReplyHeaders {
		if !http1.IsToken(h.Name) || unsettable(h.Name) {
			return r, fmt.Errorf("sync_response.headers: %q cannot be set", h.Name)
		}
		value, err := mapping.CompileTemplate(string(h.Value))
		if err != nil {
			return r, fmt.Errorf("sync_response.headers.%s: %w", h.Name, err)
		}
		r.headers = append(r.headers, replyHeader{h.Name, value})
	}
	return r, nil
}

// unsettable reports whether a header frames the answer, or is about the connection.
func unsettable(name string) bool {
	for _, one := range [...]string{"Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive", "Upgrade", "Trailer", "TE"} {
		if http1.EqualFold([]byte(name), one) {
			return true
		}
	}
	return false
}

// Routes implements stream.Server.
func (in *Input) Routes() []stream.Route {
	socket := &sockets{conf: &in.socket, site: in.site, in: in, out: in.joined, known: &in.known}
	return routesOf(in.served, socket, func(*streams.Route) serve { return in.serve })
}

// Join implements stream.Joiner.
func (in *Input) Join(out stream.Output) bool {
	o, ok := out.(*Output)
	if !ok || in.socket.path == "" || o.socket.path != in.socket.path {
		return false
	}
	in.joined = o
	return true
}

// Start implements stream.Input.
func (in *Input) Start(to stream.Flow) {
	f := &flowing{Flow: to}
	in.flow.Store(f)
	f.unwatch = to.Demand().Watch(in.demand)
	in.site.State.Enter(stream.Running)
}

// demand is called when the level of the demand changes.
func (in *Input) demand(on bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case on && !in.isOpen:
		close(in.open)
	case !on && in.isOpen:
		in.open = make(chan struct{})
	}
	in.isOpen = on
}

// opening returns what is closed while there is demand.
func (in *Input) opening() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.open
}

// take passes a message on, unless the stream cannot take it now.
func (in *Input) take(m *stream.Message, settle stream.Settle) bool {
	f := in.enter()
	if f == nil {
		return false
	}
	defer in.leave()
	if !f.Take(m, settle) {
		return false
	}
	in.site.State.Messages.Add(1)
	in.site.State.Bytes.Add(uint64(len(m.Body)))
	return true
}

// enter returns where a message goes; nil: nowhere any more, or not yet.
func (in *Input) enter() *flowing {
	in.mu.Lock()
	defer in.mu.Unlock()
	f := in.flow.Load()
	if in.stopping || f == nil {
		return nil
	}
	in.busy++
	return f
}

func (in *Input) leave() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.busy--; in.busy == 0 && in.quiet != nil {
		close(in.quiet)
		in.quiet = nil
	}
}

// isStopping reports whether Stop was called.
func (in *Input) isStopping() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.stopping
}

// Stop implements stream.Input. Requests that wait are refused; WebSocket clients send no
// more messages, but get their acknowledgements until Close.
func (in *Input) Stop(ctx context.Context) {
	in.mu.Lock()
	in.stopping = true
	close(in.stopped)
	var quiet chan struct{}
	if in.busy > 0 {
		quiet = make(chan struct{})
		in.quiet = quiet
	}
	in.mu.Unlock()
	if f := in.flow.Load(); f != nil {
		f.unwatch()
	}
	in.site.State.Enter(stream.Draining)
	if quiet == nil {
		return
	}
	select {
	case <-quiet:
	case <-ctx.Done():
	}
}

// Close implements stream.Input: WebSocket clients are asked to connect again.
func (in *Input) Close() {
	in.mu.Lock()
	var all []*socket
	for s := range in.sockets {
		all = append(all, s)
	}
	in.mu.Unlock()
	for _, s := range all {
		s.close(closeRestart, "the stream has changed, connect again")
	}
	in.site.State.Enter(stream.Stopped)
}
