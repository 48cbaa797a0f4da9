// Package webhook sends events to other services over HTTP, and carries out the event
// handlers of APIs. The code that raises an
// event never waits for that: messages queue for each service by itself, within
// bounds, and what does not fit is dropped and counted.
package webhook

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/event"
)

// Options says how messages are sent. All of it but Addresses is required.
type Options struct {
	Addresses dialguard.Policy // that may be called
	Timeout   time.Duration    // for one try
	Pauses    []time.Duration  // before each further try, half of it left to chance
	Queue     int              // messages that wait for one service
	Log       *slog.Logger
}

// A Hook is where and how messages are sent to one service. It never changes.
type Hook struct {
	Method   string // as HTTP has it
	URL      string
	Header   map[string]string
	Template *Template     // nil: the usual message
	Cooldown time.Duration // in which the same message is not sent again; 0: none
}

// Sender sends messages. It is safe for concurrent use.
type Sender struct {
	opts   Options
	client *http.Client
	now    func() time.Time
	recent *recent

	ended chan struct{} // closed when no further message is taken
	cut   atomic.Bool   // what still waits is dropped

	mu    sync.Mutex
	lanes map[string]*lane
	over  bool // nothing is taken any more
	busy  sync.WaitGroup

	sent, failed, dropped, same atomic.Uint64
}

// maxLanes is how many services are called at the same time.
const maxLanes = 256

// New returns a sender. Run ends it.
func New(o Options) *Sender {
	return &Sender{
		opts: o, now: time.Now, recent: newRecent(), ended: make(chan struct{}), lanes: make(map[string]*lane),
		client: &http.Client{
			Timeout:       o.Timeout,
			Transport:     o.Addresses.Transport(o.Timeout),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Stats is what a sender did.
type Stats struct {
	Sent    uint64 // messages that a service took
	Failed  uint64 // messages that none took, whatever was tried
	Dropped uint64 // messages for which there was no room
	Same    uint64 // messages left out because the same was sent shortly before
	Waiting int    // messages on their way
}

// Stats returns current numbers.
func (s *Sender) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := 0
	for _, l := range s.lanes {
		waiting += len(l.queue)
	}
	return Stats{Sent: s.sent.Load(), Failed: s.failed.Load(), Dropped: s.dropped.Load(), Same: s.same.Load(), Waiting: waiting}
}

// Send queues an event for a service, and returns at once.
func (s *Sender) Send(h *Hook, e event.Event) {
	m := &message{hook: h}
	var err error
	if m.body = usual(&e); h.Template != nil {
		if m.body, err = h.Template.render(&e, h.isJSON()); err != nil {
			s.failed.Add(1)
			s.opts.Log.Warn("an event could not be written with the template of a webhook", "event", e.Name, "url", h.place(), "err", err)
			return
		}
	}
	if h.Cooldown > 0 && !s.recent.first(sha256.Sum256(m.identity()), s.now(), h.Cooldown) {
		s.same.Add(1)
		return
	}
	if !s.enqueue(m) {
		s.dropped.Add(1)
	}
}

// Run lets messages be sent until ctx ends. Those that wait then are tried once,
// for as long as one try may take, and dropped after that.
func (s *Sender) Run(ctx context.Context) {
	<-ctx.Done()
	s.mu.Lock()
	s.over = true
	for _, l := range s.lanes {
		close(l.queue)
	}
	s.mu.Unlock()
	close(s.ended)
	done := make(chan struct{})
	go func() { s.busy.Wait(); close(done) }()
	last := time.NewTimer(s.opts.Timeout)
	defer last.Stop()
	select {
	case <-done:
	case <-last.C:
		s.cut.Store(true)
		<-done // a try ends by its own time
	}
}

// isJSON reports whether the message is JSON, as it is unless the hook says
// otherwise.
func (h *Hook) isJSON() bool {
	for name, value := range h.Header {
		if strings.EqualFold(name, "Content-Type") {
			return strings.Contains(strings.ToLower(value), "json")
		}
	}
	return true
}

// place names a hook in logs: what follows the host may be a secret.
func (h *Hook) place() string {
	u, err := url.Parse(h.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
