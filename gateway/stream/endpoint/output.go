package endpoint

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

// Defaults of connectors that have no such setting.
const (
	defaultHeartbeat = 30 * time.Second
	writeTimeout     = 10 * time.Second
	maxClients       = 10000
)

// withoutClients is how long messages wait for a client when the last one has left. They go
// back to the source then.
const withoutClients = 2 * time.Second

// An Output gives messages to clients of the API: each message to the next client in turn
// that can take it. A message is settled when it has been written to the client's
// connection. What could not be written to a client goes to the next one.
type Output struct {
	site   *stream.Site
	known  known
	conf   streams.HTTPServerOutput
	served []streams.Route
	event  *mapping.Template // nil: events have no name
	socket socketConf        // its path is "" for none
	wheel  wheel             // of all clients but those of WebSocket
	pings  wheel
	demand *stream.Demand
	buffers

	telling sync.Mutex // orders the changes of demand; taken before mu

	mu      sync.Mutex
	seq     uint64 // of the last message
	pending []item // for the next client with credit, in the order of their numbers
	clients map[*member]struct{}
	first   *member // in turn; of a ring of clients with credit
	on      bool    // the level of the demand
	pumping bool
	closed  bool
	empty   chan struct{} // closed when the last client has left; nil: nobody waits for that
	stopped chan struct{} // closed by Close
	giveUp  *time.Timer   // nil: it does not run
}

// An item is a message that waits for a client.
type item struct {
	seq    uint64
	m      *stream.Message
	settle stream.Settle
}

// A client takes messages.
type client interface {
	// send sends a message and calls Output.done, perhaps later.
	send(it item)

	// end has the client connect again, once it has what was sent. It does not wait.
	end()

	// abandon ends the connection at once.
	abandon()
}

// A member is a client that gets messages. Its fields are guarded by the output.
type member struct {
	client
	credit     int     // messages that it may get
	next, prev *member // in the ring; nil: it is not in there
	left       bool
}

// NewOutput returns the connector http_server as an output.
func NewOutput(c *streams.HTTPServerOutput, site *stream.Site) (*Output, error) {
	o := newOutput(site)
	o.conf, o.served = *c, c.Routes()
	o.socket = socketConf{path: c.WSPath, heartbeat: defaultHeartbeat, writeTimeout: c.WriteTimeout}
	if c.Negotiates {
		o.socket.path = c.Path
	}
	o.wheel.every, o.pings.every = c.Heartbeat, o.socket.heartbeat
	if c.Event != "" {
		var err error
		if o.event, err = mapping.CompileTemplate(string(c.Event)); err != nil {
			return nil, fmt.Errorf("event: %w", err)
		}
	}
	return o, nil
}

// NewSocketOutput returns the connector websocket_server as an output.
func NewSocketOutput(c *streams.WebSocket, site *stream.Site) *Output {
	o := newOutput(site)
	o.conf = streams.HTTPServerOutput{MaxPending: c.MaxPending, MaxClients: maxClients, WriteTimeout: writeTimeout}
	o.served = []streams.Route{c.Route(false)}
	o.socket = socketConfOf(c)
	o.pings.every = o.socket.heartbeat
	return o
}

func newOutput(site *stream.Site) *Output {
	site.State.Enter(stream.Waiting)
	return &Output{
		site: site, demand: stream.NewDemand(false), clients: make(map[*member]struct{}), stopped: make(chan struct{}),
	}
}

// Routes implements stream.Server.
func (o *Output) Routes() []stream.Route {
	return routesOf(o.served, &sockets{conf: &o.socket, site: o.site, out: o, known: &o.known}, o.serve)
}

// Demand implements stream.Output. It is on while a client has credit.
func (o *Output) Demand() *stream.Demand { return o.demand }

// Write implements stream.Output.
func (o *Output) Write(m *stream.Message, settle stream.Settle) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		settle(stream.ErrClosed)
		return
	}
	o.seq++
	o.pending = append(o.pending, item{o.seq, m, settle})
	o.watchPending()
	o.pump()
}

// mostPumped is how many messages one caller passes on in a row: the others that it does so
// for must not keep it from its own work.
const mostPumped = 64

// pump passes pending messages on, unless somebody does so already. It needs mu, and gives
// it up.
func (o *Output) pump() {
	if o.pumping {
		o.unlock()
		return
	}
	o.pumping = true
	for n := 0; len(o.pending) > 0 && o.first != nil && !o.closed; n++ {
		if n == mostPumped {
			o.unlock()
			go o.pumpOn()
			return
		}
		it, c := o.pending[0], o.first
		o.pending[0] = item{}
		if o.pending = o.pending[1:]; len(o.pending) == 0 {
			o.pending = nil
		}
		c.credit--
		o.first = c.next
		if c.credit == 0 {
			o.exclude(c)
		}
		o.unlock()
		c.send(it)
		o.mu.Lock()
	}
	o.pumping = false
	o.unlock()
}

func (o *Output) pumpOn() {
	o.mu.Lock()
	o.pumping = false
	o.pump()
}

// unlock gives up mu and tells of a change of demand.
func (o *Output) unlock() {
	on := o.first != nil && !o.closed
	changed := on != o.on
	o.on = on
	o.mu.Unlock()
	if changed {
		o.tell()
	}
}

// tell sets the demand to its level. Of several changes at a time the last one counts.
func (o *Output) tell() {
	o.telling.Lock()
	defer o.telling.Unlock()
	o.mu.Lock()
	on, closed := o.on, o.closed
	o.mu.Unlock()
	o.demand.Set(on)
	switch {
	case on:
		o.site.State.Enter(stream.Running)
	case !closed:
		o.site.State.Enter(stream.Waiting)
	}
}

// include puts a client at the end of the ring. It needs mu.
func (o *Output) include(c *member) {
	if o.first == nil {
		o.first, c.next, c.prev = c, c, c
		return
	}
	c.next, c.prev = o.first, o.first.prev
	c.prev.next, c.next.prev = c, c
}

// exclude takes a client out of the ring. It needs mu.
func (o *Output) exclude(c *member) {
	if c.next == nil {
		return
	}
	switch {
	case c.next == c:
		o.first = nil
	case o.first == c:
		o.first = c.next
	}
	c.prev.next, c.next.prev = c.next, c.prev
	c.next, c.prev = nil, nil
}

var fullOfClients = pipeline.NewRejection(pipeline.ReasonTunnelLimit, 503, "Too many clients of this stream are connected, please try again")

// join adds a client with a credit. It returns nil if there are too many, or the output is
// closed: why says which.
func (o *Output) join(c client, credit int) (m *member, why *pipeline.Rejection) {
	o.mu.Lock()
	switch {
	case o.closed:
		why = draining
	case o.conf.MaxClients > 0 && len(o.clients) >= o.conf.MaxClients:
		why = fullOfClients
	}
	if why != nil {
		o.mu.Unlock()
		return nil, why
	}
	m = &member{client: c, credit: credit}
	o.clients[m] = struct{}{}
	o.site.State.Clients.Add(1)
	if credit > 0 {
		o.include(m)
	}
	o.pump()
	return m, nil
}

// begin gives a client its credit that joined without.
func (o *Output) begin(m *member) {
	o.mu.Lock()
	if !m.left {
		m.credit = max(1, o.conf.MaxPending)
		o.include(m)
	}
	o.pump()
}

// leave removes a client. It gets no more messages; what it has got is settled by done.
func (o *Output) leave(m *member) {
	o.mu.Lock()
	defer o.unlock()
	if m.left {
		return
	}
	m.left = true
	o.exclude(m)
	delete(o.clients, m)
	o.site.State.Clients.Add(-1)
	if len(o.clients) == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
	o.watchPending()
}

// done is called by a client when it has written a message, or could not.
func (o *Output) done(m *member, it item, err error) {
	if err == nil {
		o.site.State.Messages.Add(1)
		o.site.State.Bytes.Add(uint64(len(it.m.Body)))
		it.settle(nil)
		o.give(m)
		return
	}
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		it.settle(stream.ErrClosed)
		return
	}
	at, _ := slices.BinarySearchFunc(o.pending, it.seq, func(one item, seq uint64) int {
		if one.seq < seq {
			return -1
		}
		return 1
	})
	o.pending = slices.Insert(o.pending, at, it)
	o.site.State.Again.Add(1)
	o.watchPending()
	o.pump()
}

// refuse settles a message that cannot be sent to any client.
func (o *Output) refuse(m *member, it item, err error) {
	it.settle(&stream.Failure{Class: stream.Permanent, By: o.site.Label, Err: err})
	o.give(m)
}

// give returns a client one of its credit.
func (o *Output) give(m *member) {
	o.mu.Lock()
	if !m.left {
		if m.credit++; m.credit == 1 {
			o.include(m)
		}
	}
	o.pump()
}

// watchPending has pending messages go back to the source after a time without clients. It
// needs mu.
func (o *Output) watchPending() {
	if len(o.pending) > 0 && len(o.clients) == 0 && o.giveUp == nil && !o.closed {
		o.giveUp = time.AfterFunc(withoutClients, o.returnPending)
	}
}

var errNoClient = stream.Failf(stream.Transient, "no client is connected")

func (o *Output) returnPending() {
	o.mu.Lock()
	o.giveUp = nil
	if len(o.clients) > 0 {
		o.mu.Unlock()
		return
	}
	all := o.pending
	o.pending = nil
	o.unlock()
	for _, it := range all {
		it.settle(errNoClient)
	}
}

// Close implements stream.Output. Clients are asked to connect again; what they have not
// taken when ctx ends is settled with an error.
func (o *Output) Close(ctx context.Context) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	o.closed = true
	close(o.stopped)
	all := o.pending
	o.pending = nil
	if o.giveUp != nil {
		o.giveUp.Stop()
	}
	var ending []*member
	for m := range o.clients {
		ending = append(ending, m)
	}
	var empty chan struct{}
	if len(ending) > 0 {
		empty = make(chan struct{})
		o.empty = empty
	}
	o.unlock()
	o.site.State.Enter(stream.Draining)
	for _, it := range all {
		it.settle(stream.ErrClosed)
	}
	for _, m := range ending {
		m.end()
	}
	if empty != nil {
		select {
		case <-empty:
		case <-ctx.Done():
			for _, m := range ending {
				m.abandon()
			}
		}
	}
	o.site.State.Enter(stream.Stopped)
}
