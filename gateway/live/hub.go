package live

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Bounds of connections to upstreams.
const (
	maxSubscriptions = 1000             // at an upstream, on one connection
	idleTrunk        = 10 * time.Second // how long a connection without subscriptions is kept
)

// A Hub holds connections to upstreams, each of which carries many subscriptions.
// It is safe for concurrent use.
type Hub struct {
	mu     sync.Mutex
	trunks map[string]*trunk // those that take further subscriptions
}

// A Subscription is a client's share in what an upstream streams. It is a Source. One that
// was lost may join again. Join and Leave are not called at the same time.
type Subscription struct {
	To      Sink
	Request []byte          // what the upstream is sent, a JSON object
	Shared  bool            // one subscription at the upstream serves all with the same request
	Lost    func(err error) // the upstream has failed: nothing more follows. It does not wait

	trunk *trunk
	feed  *feed
	at    int // index in feed.members
}

// A feed is one subscription at the upstream.
type feed struct {
	id      string
	request string // "": others do not share it
	body    []byte // until it is sent
	members []*Subscription
}

// A trunk is a connection to an upstream.
type trunk struct {
	hub *Hub
	key string

	mu      sync.Mutex
	up      *upstream // nil: it is not acknowledged yet
	ended   bool
	feeds   map[string]*feed // by id
	shared  map[string]*feed // by request
	issued  uint64           // ids so far
	idle    *time.Timer
	leave   func()          // ends a stream of events; nil: the upstream speaks WebSocket
	members []*Subscription // of deliver
}

// Join has a subscription served by the connection that key stands for: by all of what a
// request for it says. It returns false if the caller is to establish that connection and
// to call Open, or Abandon if it fails: others may wait for it.
func (h *Hub) Join(key []byte, s *Subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.trunks[string(key)]; t != nil && t.take(s) {
		return true
	}
	t := &trunk{hub: h, key: string(key), feeds: make(map[string]*feed)}
	t.take(s)
	if h.trunks == nil {
		h.trunks = make(map[string]*trunk)
	}
	h.trunks[t.key] = t
	return false
}

// Open serves the connection of a subscription for which Join has returned false. Its
// handshake is done.
func (h *Hub) Open(s *Subscription, conn net.Conn, p Protocol) {
	t := s.trunk
	go func() {
		t.end(t.serve(conn, p))
	}()
}

// Events is Open for an upstream that sends a text/event-stream. It returns when that has
// ended; leave ends it, when no client is left.
func (h *Hub) Events(s *Subscription, from io.Reader, leave func()) {
	t, to := s.trunk, &fan{t: s.trunk}
	t.mu.Lock()
	t.leave = leave
	for id := range t.feeds { // there is one
		to.id = []byte(id)
	}
	if to.id == nil {
		t.ended = true
		leave()
	}
	t.mu.Unlock()
	t.end(Events(from, to))
}

// A fan is a Sink that passes results on to all who share a subscription.
type fan struct {
	t  *trunk
	id []byte
}

func (f *fan) each(over bool, do func(Sink)) {
	members, _ := f.t.of(f.id, over)
	for _, s := range members {
		do(s.To)
	}
}

// Next implements Sink.
func (f *fan) Next(result []byte) { f.each(false, func(to Sink) { to.Next(result) }) }

// Fail implements Sink.
func (f *fan) Fail(errors []byte) { f.each(true, func(to Sink) { to.Fail(errors) }) }

// Complete implements Sink.
func (f *fan) Complete() { f.each(true, Sink.Complete) }

// Abandon reports that the connection could not be established.
func (h *Hub) Abandon(s *Subscription, why error) { s.trunk.end(why) }

// Size returns how many connections to upstreams there are that take further
// subscriptions.
func (h *Hub) Size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.trunks)
}

// take adds a subscription. It returns false if the connection takes no more.
func (t *trunk) take(s *Subscription) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	f := t.shared[string(s.Request)]
	if f == nil || !s.Shared {
		if f = t.begin(s); f == nil {
			return false
		}
	}
	s.trunk, s.feed, s.at = t, f, len(f.members)
	f.members = append(f.members, s)
	return true
}

// begin begins a subscription at the upstream, which is sent when the connection is
// acknowledged. It needs mu.
func (t *trunk) begin(s *Subscription) *feed {
	if len(t.feeds) >= maxSubscriptions {
		return nil
	}
	t.issued++
	f := &feed{id: strconv.FormatUint(t.issued, 10), body: s.Request}
	t.feeds[f.id] = f
	if s.Shared {
		if t.shared == nil {
			t.shared = make(map[string]*feed)
		}
		f.request = string(s.Request)
		t.shared[f.request] = f
	}
	if t.idle != nil {
		t.idle.Stop()
		t.idle = nil
	}
	if t.up != nil {
		t.up.start(f)
	}
	return f
}

// Leave implements Source. The upstream is told when nobody is left.
func (s *Subscription) Leave() {
	t := s.trunk
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := s.feed
	s.feed = nil
	if f == nil || t.ended {
		return
	}
	last := len(f.members) - 1
	f.members[s.at] = f.members[last]
	f.members[s.at].at = s.at
	f.members[last] = nil
	if f.members = f.members[:last]; last == 0 {
		if t.up != nil && t.feeds[f.id] == f {
			t.up.stop(f)
		}
		t.drop(f)
	}
}

// drop forgets a subscription at the upstream. It needs mu.
func (t *trunk) drop(f *feed) {
	delete(t.feeds, f.id)
	if t.shared[f.request] == f {
		delete(t.shared, f.request)
	}
	switch {
	case len(t.feeds) > 0:
	case t.leave != nil:
		t.ended = true
		t.leave()
	case t.up != nil && t.idle == nil:
		t.idle = time.AfterFunc(idleTrunk, t.endIdle)
	}
}

// endIdle ends the connection unless a subscription has begun meanwhile. None begins behind
// it: those that come go to another connection.
func (t *trunk) endIdle() {
	t.mu.Lock()
	unused := t.idle != nil && len(t.feeds) == 0 && !t.ended
	if unused {
		t.ended = true
		t.up.leave()
	}
	t.mu.Unlock()
	if unused {
		t.end(errUnused)
	}
}

var errUnused = errors.New("the connection is not used")

// end ends the connection. All whose subscriptions have not ended have lost theirs.
func (t *trunk) end(why error) {
	t.hub.mu.Lock()
	if t.hub.trunks[t.key] == t {
		delete(t.hub.trunks, t.key)
	}
	t.hub.mu.Unlock()
	t.mu.Lock()
	var lost []*Subscription
	if !t.ended {
		t.ended = true
		if t.idle != nil {
			t.idle.Stop()
		}
		for _, f := range t.feeds {
			lost = append(lost, f.members...)
		}
		t.feeds, t.shared = nil, nil
		if t.up != nil {
			t.up.leave()
		}
	}
	t.mu.Unlock()
	for _, s := range lost {
		s.Lost(why)
	}
}

// of returns who has a part in a subscription at the upstream, until it is called again,
// and forgets it if it has ended. It returns false for an id that was never issued.
func (t *trunk) of(id []byte, over bool) (members []*Subscription, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.members)
	t.members = t.members[:0]
	f := t.feeds[string(id)]
	if f == nil {
		n, err := strconv.ParseUint(string(id), 10, 64)
		return nil, err == nil && n > 0 && n <= t.issued // it has been left
	}
	t.members = append(t.members, f.members...)
	if over {
		t.drop(f)
	}
	return t.members, true
}
