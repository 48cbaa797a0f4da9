// Package overload keeps an overloaded gateway responsive: it refuses the calls that
// exceed its capacity with 503 as soon as they are read, so that the others do not
// wait longer than the target delay. Refusing calls uses part of the capacity.
//
// # How it decides
//
// Ten to two hundred times a second a probe takes the path of a request, through the
// poller and the scheduler. The time that it waits is the delay of requests before
// they are handled; the time before they are read (gateway/wire) is added. When no
// probe passes within the target (overload.target_delay) in two consecutive windows
// of 50 ms, the load exceeds the capacity: a burst, a pause or a garbage collection
// delays some probes, but not all of a window. From then on the number of calls per
// second that may pass is adjusted so that the delay stays at the target, as long as
// 95 % of the capacity serves calls. A refusal costs about half as much as a served
// call, so that holding the target at any price would cost half of the calls at 1.5
// times the capacity. Clients that wait for an answer before they call again then
// wait for each other. Only when all wait for longer than overload.max_delay, which
// shows that clients do not wait for each other, are as many calls refused as it
// takes. The calls that pass are distributed:
//
//   - first between APIs: each gets its demand up to a level that is the same for
//     all; what an API does not use goes to the others;
//   - then, within an API that exceeds its share, in the same way between its keys,
//     or between client addresses if it is keyless.
//
// So a key with a small demand is served while one that floods is shed. A call that
// is shed is answered with reason "overloaded" and Retry-After, and counts neither
// under the rate nor under the quota. When nothing had to be shed for a second, the
// guard only measures the delay again, which costs a request one atomic load.
//
// # Operation
//
// sluice_overload_shedding is 1 while calls are shed, and the log has a line when
// that begins and ends. sluice_overload_delay_seconds is the delay,
// sluice_overload_limit the number of calls per second that may pass, and
// sluice_rejections_total{reason="overloaded"} has the APIs that are shed. The cure
// is another gateway, or a rate limit for the key that floods. When the delay is long
// although the gateway is idle, another process uses its processor.
//
// Keys are counted in 1,024 cells with two places for each, for up to 64 APIs that
// exceed their share: memory is bounded under any load. Calls of the control API and
// of the health paths are never shed.
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

// retryAfter is the value of Retry-After, in seconds.
const retryAfter = 1

// Options say how long calls may wait.
type Options struct {
	TargetDelay time.Duration // when all calls wait for longer, some are shed; 0: none ever is
	MaxDelay    time.Duration // when all calls wait for longer, as many are shed as it takes; TargetDelay if that is longer
}

// Guard sheds the calls that exceed the capacity, of all APIs. The nil Guard sheds
// none.
type Guard struct {
	Options
	waited func() time.Duration // time that requests waited to be read; nil: unknown
	log    *slog.Logger
	epoch  time.Time
	seed   maphash.Seed
	phase  atomic.Uint32

	mu     sync.Mutex
	listed []*demand // APIs that were called since the guard began to watch

	stats stats
}

// New returns a guard, or nil when the options shed no calls. It does nothing before
// Run.
func New(o Options, log *slog.Logger) *Guard {
	if o.TargetDelay <= 0 {
		return nil
	}
	return &Guard{
		Options: o, log: log, seed: maphash.MakeSeed(),
		epoch: time.Now().Add(-time.Hour), // so that 0 lies well in the past
	}
}

// AddDelay sets the function that returns how long requests waited before they were
// read: the shortest wait since its last call. It must be called before Run.
func (g *Guard) AddDelay(waited func() time.Duration) {
	if g != nil {
		g.waited = waited
	}
}

// Compile makes s, which may be part of the compiled API, the stage of an API. It
// returns nil when no calls are ever shed.
func (g *Guard) Compile(s *Stage, def *definition.API) pipeline.Stage {
	if g == nil {
		return nil
	}
	s.guard, s.def = g, def
	return s
}

// A Stage sheds the calls of one API.
type Stage struct {
	guard  *Guard
	def    *definition.API
	demand atomic.Pointer[demand] // nil until the first call that is watched
}

// Handle implements pipeline.Stage.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if s.guard.phase.Load() == uint32(calm) || s.passes(int64(ex.Started.Sub(s.guard.epoch)), ex) {
		return pipeline.Next
	}
	ex.RetryAfter = retryAfter
	return ex.Reject(overloaded)
}

func (s *Stage) passes(now int64, ex *pipeline.Exchange) bool {
	if ex.IsDry() {
		if ex.DryRunAt() != nil { // the state of other moments is unknown
			return true
		}
		return s.demand.Load().wouldPass(s.guard.seed, now, ex)
	}
	return s.own().pass(s.guard.seed, now, ex)
}

// own returns the demand of the API, on the guard's list.
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

// list adds an API to the list of those that are called.
func (g *Guard) list(d *demand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !d.listed.Load() {
		d.rate, d.within, d.total = 0, 0, 0
		g.listed = append(g.listed, d)
		d.listed.Store(true)
	}
}

// called returns the APIs on the list. Only the goroutine of Run calls it and removes
// APIs; others append, behind the slice that is returned.
func (g *Guard) called() []*demand {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listed
}

// prune removes the APIs that are hardly called any more.
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

// reset removes all APIs and their limits.
func (g *Guard) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.listed {
		d.interval.Store(0)
		d.keys.Store(nil)
		d.listed.Store(false)
	}
	g.listed = nil
}

// Stats is the state of a guard.
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
	p, err := newProbe(g.epoch)
	if err != nil {
		return err
	}
	defer p.close()
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
		if err := p.send(now, now.Sub(due)); err != nil {
			return err
		}
		if took := now.Sub(began); took >= window-tickBusy/2 {
			delay = p.reading(now)
			if g.waited != nil {
				delay += g.waited()
			}
			k.endWindow(now, took, delay)
			began = now
		}
		pace := k.pace(delay)
		due = now.Add(pace)
		tick.Reset(pace)
	}
}

// How often a probe is sent: rarely while nothing waits, because each wakes a process
// that may be idle otherwise, which costs up to 0.1 ms.
const (
	tickCalm = 100 * time.Millisecond
	tickBusy = 5 * time.Millisecond
)
