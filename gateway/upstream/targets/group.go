package targets

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// A member is what calls are spread over.
type member struct {
	URL    string // without a query, for people
	Host   string // host and port
	Weight int    // at least 1
}

// groupOptions is what a group is made of.
type groupOptions struct {
	API      string                   // id, for events
	Targets  []member                 // at least one
	Ejection *definition.EjectionRule // nil: targets that fail go on being called
	Raise    func(event.Event)        // takes events; must not wait
}

// group is the targets of one API, and how each of them is. It is safe for
// concurrent use.
type group struct {
	opts  groupOptions
	hosts []host
	epoch time.Time // from which on times are counted

	order atomic.Pointer[order]
	mu    sync.Mutex // held while the hosts in service change

	_    [64]byte      // what every call writes lies apart from what every call reads
	next atomic.Uint64 // of all turns ever taken
	_    [56]byte
}

// host is how one target is.
type host struct {
	// trouble is how many calls have failed in a row, and in the upper half how
	// many times the target was ejected: 0 for one that is well, which is all that
	// calls look at.
	trouble atomic.Uint64
	ejected atomic.Uint64 // times ever
	settled atomic.Int64  // by the group's clock: when its past is forgotten, if it is well then

	// Under the group's mu.
	down  int           // checks that say so
	until time.Duration // ejected until then, 0: it is not
}

const oneTime = 1 << 32 // of an ejection, in host.trouble

// order is whose turn it is, for as long as nothing changes.
type order struct {
	turns []uint16 // indices of hosts
	in    []bool   // by host: it has turns
	again time.Duration
}

const never = time.Duration(math.MaxInt64)

// newGroup returns a group in which all targets are well.
func newGroup(o groupOptions) *group {
	g := &group{opts: o, hosts: make([]host, len(o.Targets)), epoch: time.Now()}
	g.next.Store(rand.Uint64()) // so that the gateways of a group do not keep step
	g.renew(0)
	return g
}

// now is the time by the group's clock.
func (g *group) now(at time.Time) time.Duration { return at.Sub(g.epoch) }

// current returns the order in force. Targets whose ejection is over are in it.
func (g *group) current(now time.Duration) *order {
	o := g.order.Load()
	if now < o.again {
		return o
	}
	return g.takeBack(now)
}

// pick returns whose turn it is.
func (g *group) pick(o *order) int {
	return int(o.turns[g.next.Add(1)%uint64(len(o.turns))])
}

// peek returns whose turn is next, and leaves it to the next call.
func (g *group) peek(o *order) int {
	return int(o.turns[(g.next.Load()+1)%uint64(len(o.turns))])
}

// after returns another target that is in service, the next one by position that
// is not among those tried; -1 when there is none.
func (g *group) after(o *order, at int, tried []int) int {
	for i := 1; i < len(g.hosts); i++ {
		if other := (at + i) % len(g.hosts); o.in[other] && !slices.Contains(tried, other) {
			return other
		}
	}
	return -1
}

// succeeded notes a call to a target that did not fail.
func (g *group) succeeded(i int, now time.Duration) {
	h := &g.hosts[i]
	trouble := h.trouble.Load()
	if trouble == 0 {
		return
	}
	left := uint64(0)
	if times := trouble / oneTime; times > 0 && int64(now) < h.settled.Load() {
		left = times * oneTime
	}
	if left != trouble {
		h.trouble.CompareAndSwap(trouble, left)
	}
}

// failed notes a call to a target that failed, for the reason given.
func (g *group) failed(i int, now time.Duration, why failure) {
	if g.opts.Ejection == nil {
		return
	}
	h := &g.hosts[i]
	if trouble := h.trouble.Add(1); trouble%oneTime%uint64(g.opts.Ejection.Failures) == 0 {
		g.eject(i, now, why)
	}
}

// length is how long the n-th ejection in a row lasts.
func (g *group) length(times uint64) time.Duration {
	e := g.opts.Ejection
	if times > 30 {
		return e.Longest
	}
	return min(e.For<<(times-1), e.Longest)
}

// failure is why a target is not well.
type failure struct {
	Status int    // of its answer; 0: there was none
	Error  string // why there was none
}

// eject leaves a target out for a while, unless it is the last one.
func (g *group) eject(i int, now time.Duration, why failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := &g.hosts[i]
	if h.until != 0 || h.down > 0 || !g.others(i) {
		return
	}
	times := h.trouble.Load()/oneTime + 1
	h.trouble.Store(times * oneTime)
	h.ejected.Add(1)
	h.settled.Store(int64(never))
	h.until = now + g.length(times)
	g.renew(now)
	g.raise(event.HostDown, i, why, "left out for "+g.length(times).String()+" after calls that failed in a row")
}

// others reports whether a target beside i is in service. It needs mu.
func (g *group) others(i int) bool {
	for j := range g.hosts {
		if j != i && g.hosts[j].well() {
			return true
		}
	}
	return false
}

// well reports whether a host is to be called. It needs the group's mu.
func (h *host) well() bool { return h.down == 0 && h.until == 0 }

// takeBack puts targets whose ejection is over back into service. The next failure
// ejects such a target again, for longer.
func (g *group) takeBack(now time.Duration) *order {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.order.Load(); now < o.again {
		return o // another call has done it
	}
	for i := range g.hosts {
		h := &g.hosts[i]
		if h.until == 0 || now < h.until {
			continue
		}
		h.until = 0
		// Its past is forgotten when it has been back for as long as it was out.
		times := h.trouble.Load() / oneTime
		h.settled.Store(int64(now + g.length(times)))
		h.trouble.Store(times*oneTime + uint64(g.opts.Ejection.Failures-1))
		if h.down == 0 {
			g.raise(event.HostUp, i, failure{}, "called again after it was left out")
		}
	}
	return g.renew(now)
}

// Turn notes that a check of the target at a place has changed its mind: it finds
// the target well again, or not well any more, for the reason given. With several
// checks of a target all of them must find it well.
func (g *group) Turn(i int, up bool, why failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := &g.hosts[i]
	before := h.down
	if up {
		h.down--
	} else {
		h.down++
	}
	g.renew(g.now(time.Now()))
	switch {
	case up && h.down == 0:
		g.raise(event.HostUp, i, why, "checks find it well")
	case !up && before == 0:
		g.raise(event.HostDown, i, why, "checks find it unwell")
	}
}

// renew writes the turns down anew. It needs mu.
func (g *group) renew(now time.Duration) *order {
	o := &order{in: make([]bool, len(g.hosts)), again: never}
	some := false
	for i := range g.hosts {
		h := &g.hosts[i]
		o.in[i] = h.well()
		some = some || o.in[i]
		if h.until != 0 { // perhaps over already, with no call since
			o.again = min(o.again, h.until)
		}
	}
	weights := make([]int, len(g.hosts))
	for i := range weights {
		if o.in[i] = o.in[i] || !some; o.in[i] {
			weights[i] = g.opts.Targets[i].Weight
		}
	}
	o.turns = turnsOf(weights)
	g.order.Store(o)
	return o
}

func (g *group) raise(name event.Name, i int, why failure, detail string) {
	t := &g.opts.Targets[i]
	g.opts.Raise(event.Event{
		Name: name, At: time.Now(), API: g.opts.API, Detail: t.Host + ": " + detail,
		Upstream: &event.Upstream{URL: t.URL, Host: t.Host, Status: why.Status, Error: why.Error},
	})
}

// memberState is how a target is.
type memberState struct {
	member
	Down    bool   // a check says so
	Ejected bool   // it is left out because calls failed
	Times   uint64 // that it was
}

// States returns how all targets are.
func (g *group) States() []memberState {
	now := g.now(time.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]memberState, len(g.hosts))
	for i := range g.hosts {
		h := &g.hosts[i]
		all[i] = memberState{member: g.opts.Targets[i], Down: h.down > 0, Ejected: h.until > now, Times: h.ejected.Load()}
	}
	return all
}

// turnsOf returns one round of turns in which each index stands as often as its
// weight says, spread as evenly as possible (smooth weighted round-robin): each step
// adds every weight to its index's credit; the index with the highest credit gets the
// turn and pays the sum of all weights. Weights are at least 0, and one is above 0.
func turnsOf(weights []int) []uint16 {
	common, all := 0, 0
	for _, w := range weights {
		common = divisor(common, w)
	}
	for _, w := range weights {
		all += w / common
	}
	turns := make([]uint16, 0, all)
	have := make([]int, len(weights))
	for range all {
		most := -1
		for i, w := range weights {
			if w == 0 {
				continue
			}
			have[i] += w / common
			if most < 0 || have[i] > have[most] {
				most = i
			}
		}
		have[most] -= all
		turns = append(turns, uint16(most))
	}
	return turns
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
