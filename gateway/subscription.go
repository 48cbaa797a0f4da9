package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// A subscription is one of a client, over any transport. It implements
// pipeline.LiveUpstreams for the exchange that begins it, and live.Source.
type subscription struct {
	live.Subscription
	hub  *live.Hub
	live pipeline.Live

	metered metered     // what its results go through
	sharing bool        // the owner calls opensEvents
	shared  atomic.Bool // the exchange serves others as well: its client's leaving does not end it

	// exchange is held while an exchange uses live: one begins the subscription again when
	// the one before has ended.
	exchange sync.Mutex

	// begin begins the subscription again, when an upstream has lost it and it may be
	// begun again. It gives up exchange. failed is called when it has failed for good.
	begin  func()
	failed func(err error)

	mu      sync.Mutex
	opening bool        // others may wait for the connection that the exchange establishes
	tries   int         // since the last result
	timer   *time.Timer // of the next one
	left    bool
}

// newSubscription returns one whose results go to a sink.
func (g *Gateway) newSubscription(to live.Sink) *subscription {
	s := &subscription{hub: &g.hub}
	s.metered = metered{to: to, live: func() *pipeline.Live { return &s.live }, calls: func() pipeline.InternalCalls { return g.current.Load() }}
	s.metered.gone, s.metered.left = context.WithCancel(context.Background())
	s.To, s.Lost = &s.metered, s.lost
	s.live.Upstreams = s
	return s
}

// Join implements pipeline.LiveUpstreams.
func (s *subscription) Join(key []byte) bool {
	if !s.sharing && !s.live.Streamed.Upgrade {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening { // another upstream is tried
		s.abandon(errNotBegun)
	}
	s.Request, s.Shared = s.live.Streamed.Request, s.live.Streamed.Share
	s.opening = !s.hub.Join(key, &s.Subscription)
	if s.left {
		s.Subscription.Leave()
	}
	return !s.opening
}

// streams takes over from the exchange that has begun the subscription if its upstream
// speaks WebSocket. The error says why there is none.
func (s *subscription) streams(ex *pipeline.Exchange) (bool, error) {
	if s.live.Joined {
		return true, nil
	}
	conn, err := s.live.Upstream, errNotBegun
	if conn != nil {
		var protocol live.Protocol
		if protocol, err = handshakeOf(ex); err == nil {
			s.open(conn, protocol)
			return true, nil
		}
		_ = conn.Close() // it is not used
	}
	s.mu.Lock()
	if s.opening {
		s.abandon(err)
	}
	s.mu.Unlock()
	if conn != nil {
		return true, err
	}
	return false, nil
}

// open serves the connection that the exchange has established.
func (s *subscription) open(conn net.Conn, p live.Protocol) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = false
	s.hub.Open(&s.Subscription, conn, p)
}

// opensEvents reports whether others may follow the events that the exchange has asked for.
func (s *subscription) opensEvents() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared.Store(s.opening)
	s.opening = false
	return s.shared.Load()
}

// isOpening reports whether others may wait for the connection that the exchange
// establishes.
func (s *subscription) isOpening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opening
}

// abandon gives up the connection that others may wait for. It needs mu.
func (s *subscription) abandon(why error) {
	s.Subscription.Leave()
	s.hub.Abandon(&s.Subscription, why)
	s.opening = false
}

var (
	errNotBegun  = errors.New("the connection to the upstream could not be established")
	errHandshake = errors.New("the upstream's answer to the WebSocket handshake is wrong")
)

// handshakeOf returns what an upstream speaks that has answered a handshake.
func handshakeOf(ex *pipeline.Exchange) (live.Protocol, error) {
	protocol, ok := live.Choose(valueOf(ex.Answer.Lines, "Sec-WebSocket-Protocol"))
	asked, _ := live.Choose(ex.Call.Header("Sec-WebSocket-Protocol"))
	if !ok || protocol != asked || !live.Accepts(ex.Live.Streamed.Nonce, valueOf(ex.Answer.Lines, "Sec-WebSocket-Accept")) {
		return 0, errHandshake
	}
	return protocol, nil
}

// Pauses before a lost subscription is begun again.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// lost begins a subscription again that its upstream has lost, after a pause.
func (s *subscription) lost(err error) {
	s.mu.Lock()
	if s.left {
		s.mu.Unlock()
		return
	}
	if s.metered.came.Swap(false) {
		s.tries = 0
	}
	if s.begin != nil && s.tries < s.live.Streamed.Retries && !live.Refused(err) {
		pause := min(firstPause<<s.tries, longestPause)
		s.tries++
		s.timer = time.AfterFunc(pause-rand.N(pause/4), s.again) // not all at the same time
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.metered.end(func() { s.failed(err) })
}

// again begins the subscription again unless its client has left it.
func (s *subscription) again() {
	s.exchange.Lock()
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	if left {
		s.exchange.Unlock()
		return
	}
	s.shared.Store(false)
	s.live = pipeline.Live{Upstreams: s, Again: true}
	s.begin()
}

// Leave implements live.Source.
func (s *subscription) Leave() {
	s.mu.Lock()
	s.left = true
	s.metered.left()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.Subscription.Leave()
	s.mu.Unlock()
}
