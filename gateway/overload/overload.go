// Package overload keeps a gateway that is asked for more than it can do at work:
// it refuses the calls that are too many with 503, at once and before anything is
// done for them but reading them, so that the others wait no longer than meant.
// Refusing takes time as well: what is served meanwhile is less than can be done.
//
// # How it decides
//
// Ten to two hundred times a second a byte goes the way of a request, through
// the poller and the scheduler, and the time that it waits is the delay that
// requests have before anybody looks at them; to it comes what they wait until
// they are read (gateway/wire/gate). When not one byte comes through
// within the target (overload.target_delay) for two windows of 50 ms in a row,
// more comes in than can be done: a burst, a pause or a collection of garbage
// leaves at least one byte that is in time. From then on the number of calls
// that may pass in a second is moved so that the delay stays at the target, as
// long as that leaves 95 % of what can be done for serving: a refusal
// costs about half of a call that is served, so that keeping to the target at any
// price would cost half of the calls when half as many again come in. Callers who
// wait for an answer before they call again then wait for each other. Only when
// all wait for longer than overload.max_delay, which says that nothing bounds
// them, as many are refused as it takes. What passes is shared out:
//
//   - first between APIs: each has what it asks for up to a level that is the
//     same for all; what one leaves of it is the others';
//   - then, within an API that asks for more than its share, in the same way
//     between its keys, or client addresses where no key is asked for.
//
// So a key that asks for little is served while one that floods is shed. A call
// that is shed is answered with reason "overloaded" and Retry-After, and costs
// neither rate nor quota. When there has been room for everything for a second,
// the guard goes back to looking at the delay alone, which costs each request
// one atomic load.
//
// # What to look at
//
// sluice_overload_shedding is 1 while calls are shed, and the log says when that
// begins and ends. sluice_overload_delay_seconds is the delay,
// sluice_overload_limit what may pass in a second, and
// sluice_rejections_total{reason="overloaded"} says which APIs are shed. The cure
// is another gateway, or a rate limit for the key that floods. When the delay is
// long although the gateway has little to do, something else takes its
// processor's time.
//
// Keys are told apart in 1,024 cells with two places for each, for up to 64 APIs
// that are over their share: memory is bounded whatever comes in. Calls of the
// control API and of the health paths are never shed.
package overload

import (
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

var overloaded = pipeline.NewRejection(pipeline.ReasonOverloaded, 503, "The gateway is overloaded, please try again")

// retryAfter is what clients are told to wait, in seconds.
const retryAfter = 1

// Options say how long calls may wait.
type Options struct {
	TargetDelay time.Duration // when all wait for longer, some are shed; 0: none ever is
	MaxDelay    time.Duration // when all wait for longer, as many as it takes; at least TargetDelay counts
}

// Guard sheds the calls of all APIs that are too many. The nil Guard sheds none.
type Guard struct {
	Options
	waited func() time.Duration // before anybody reads a request; nil: not known
	log    *slog.Logger
	epoch  time.Time
	seed   maphash.Seed
	phase  atomic.Uint32

	mu     sync.Mutex
	listed []*demand // APIs that were called since the guard began to watch

	stats stats
}

// New returns a guard that sheds calls once they wait for longer than they should,
// or nil when none is ever to be shed. It does nothing before Run.
func New(o Options, log *slog.Logger) *Guard {
	if o.TargetDelay <= 0 {
		return nil
	}
	return &Guard{
		Options: o, log: log, seed: maphash.MakeSeed(),
		epoch: time.Now().Add(-time.Hour), // so that 0 lies well in the past
	}
}

// Behind tells the guard of those who let requests in before it is asked: how long
// requests waited there at least since that was last asked. It must precede Run.
func (g *Guard) Behind(waited func() time.Duration) {
	if g != nil {
		g.waited = waited
	}
}

// Compile makes s, which may be a part of the compiled API, the stage for an API. It
// returns nil when nothing is ever shed.
func (g *Guard) Compile(s *Stage, def *definition.API) pipeline.Stage {
	if g == nil {
		return nil
	}
	s.guard, s.def = g, def
	return s
}

// A Stage sheds calls of one API.
type Stage struct {
	guard  *Guard
	def    *definition.API
	demand atomic.Pointer[demand] // nil until the first call that is watched
}

// Handle sheds the call when it is one too many.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if s.guard.phase.Load() == uint32(calm) || s.passes(int64(ex.Started.Sub(s.guard.epoch)), ex) {
		return pipeline.Next
	}
	ex.RetryAfter = retryAfter
	return ex.Reject(overloaded)
}

func (s *Stage) passes(now int64, ex *pipeline.Exchange) bool {
	if ex.Dry {
		if ex.Due != nil { // of another moment it is not known
			return true
		}
		return s.demand.Load().wouldPass(s.guard.seed, now, ex)
	}
	return s.own().pass(s.guard.seed, now, ex)
}

// own returns what is known of the API, on the guard's list.
func (s *Stage) own() *demand {
	d := s.demand.Load()
	if d == nil {
		s.demand.CompareAndSwap(nil, &demand{api: s.def.ID})
		d = s.demand.Load()
	}
	if !d.listed.Load() {
		s.guard.list(d)
	}
	return d
}

// list puts an API on the list of those that are called.
func (g *Guard) list(d *demand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !d.listed.Load() {
		d.rate, d.within, d.total = 0, 0, 0
		g.listed = append(g.listed, d)
		d.listed.Store(true)
	}
}

// called returns the APIs on the list. Only the goroutine of Run calls it, and
// takes APIs off the list; others append, behind what is returned.
func (g *Guard) called() []*demand {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listed
}

// prune takes those off the list that are hardly called any more.
func (g *Guard) prune() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listed = slices.DeleteFunc(g.listed, func(d *demand) bool {
		idle := d.rate < idleRate && d.interval.Load() == 0 && d.keys.Load() == nil
		if idle {
			d.listed.Store(false)
		}
		return idle
	})
}

// forget takes all off the list, and all limits from them.
func (g *Guard) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.listed {
		d.interval.Store(0)
		d.keys.Store(nil)
		d.listed.Store(false)
	}
	g.listed = nil
}

// Stats is how a guard is.
type Stats struct {
	Shedding bool
	Delay    time.Duration // the shortest of the last window
	Limit    float64       // calls per second that may pass, while calls are shed
	Times    uint64        // that shedding began
}

type stats struct {
	mu  sync.Mutex
	now Stats
}

// Stats returns current numbers. It is safe for concurrent use.
func (g *Guard) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	g.stats.mu.Lock()
	defer g.stats.mu.Unlock()
	return g.stats.now
}

// Run watches the delay until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	if g == nil {
		return nil
	}
	c, err := newCanary(g.epoch)
	if err != nil {
		return err
	}
	defer c.close()
	k := &keeper{guard: g, control: control{Options: g.Options}}
	defer k.stop()
	began, due, delay := time.Now(), time.Now(), time.Duration(0)
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := time.Now()
		if err := c.send(now, now.Sub(due)); err != nil {
			return err
		}
		if took := now.Sub(began); took >= window-tickBusy/2 {
			delay = c.reading(now)
			if g.waited != nil {
				delay += g.waited()
			}
			k.turn(now, took, delay)
			began = now
		}
		pace := k.pace(delay)
		due = now.Add(pace)
		tick.Reset(pace)
	}
}

// How often a byte is sent: rarely as long as nothing waits, because each wakes a
// process that may have nothing else to do, which takes it up to 0.1 ms.
const (
	tickCalm = 100 * time.Millisecond
	tickBusy = 5 * time.Millisecond
)
