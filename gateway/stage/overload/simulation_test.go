package overload

import (
	"container/heap"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// caller is somebody who calls an API at random times.
type caller struct {
	api  string
	key  string
	from netip.Addr // tells callers without a key apart
	rate float64    // calls per second

	asked, served int
	due           time.Duration
}

// order is the callers by when their next call is due, as a heap.
type order []*caller

func (o order) Len() int           { return len(o) }
func (o order) Less(i, j int) bool { return o[i].due < o[j].due }
func (o order) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o order) Push(any)           {}
func (o order) Pop() any           { return nil }

// share is what of the calls was served. Those of before may be among them.
func (c *caller) share() float64 { return float64(c.served) / max(float64(c.asked), 1) }

// simulation is a gateway with one processor in a time of its own: calls come
// in, wait for their turn, and take time when they are served or shed.
type simulation struct {
	callers []*caller
	order   order
	guard   *Guard
	keeper  *keeper
	stages  map[string]pipeline.Stage
	random  *rand.Rand
	log     *strings.Builder
	slow    float64 // what everything takes longer
	crowd   int     // calls that can wait at a time, as callers wait for their answers; 0: any number

	now     time.Duration // since the start
	waiting []arrival
	window  time.Duration // when the one under way began
	least   time.Duration // delay in it
	delays  []time.Duration
	sheds   int // windows in which calls were shed
}

type arrival struct {
	at time.Duration
	by *caller
}

// A call that is served takes 100 µs, so that 10,000 a second can be.
const (
	serveCost = 100 * time.Microsecond
	shedCost  = 40 * time.Microsecond
	most      = float64(time.Second / serveCost)
	target    = 25 * time.Millisecond
)

func simulate(callers ...*caller) *simulation {
	s := &simulation{
		callers: callers, order: slices.Clone(callers), stages: map[string]pipeline.Stage{}, log: new(strings.Builder), slow: 1,
		random: rand.New(rand.NewPCG(1, 2)), least: math.MaxInt64,
	}
	s.guard = New(Options{TargetDelay: target}, slog.New(slog.NewTextHandler(s.log, nil)))
	s.keeper = &keeper{guard: s.guard, control: control{Options: s.guard.Options}}
	for _, c := range callers {
		if s.stages[c.api] == nil {
			s.stages[c.api] = s.guard.Compile(new(Stage), &definition.API{ID: c.api})
		}
	}
	return s
}

// run lets time pass, and counts anew.
func (s *simulation) run(long time.Duration) {
	s.delays, s.sheds = s.delays[:0], 0
	for _, c := range s.callers {
		c.asked, c.served = 0, 0
		c.due = s.now + s.gap(c)
	}
	heap.Init(s.order)
	for until := s.now + long; s.now < until; {
		s.arrive()
		if len(s.waiting) > 0 {
			s.one()
		} else {
			s.least = 0
			s.now += 10 * time.Microsecond
		}
		if s.now-s.window >= window {
			s.turn()
		}
	}
}

func (s *simulation) gap(c *caller) time.Duration {
	if c.rate == 0 {
		return math.MaxInt64 / 4
	}
	return time.Duration(s.random.ExpFloat64() / c.rate * float64(time.Second))
}

// arrive queues what has come in by now.
func (s *simulation) arrive() {
	for c := s.order[0]; c.due <= s.now && (s.crowd == 0 || len(s.waiting) < s.crowd); c = s.order[0] {
		at := c.due
		if s.crowd > 0 { // it may have come late: its caller had to wait for an answer first
			at = s.now
		}
		s.waiting = append(s.waiting, arrival{at, c})
		c.due += s.gap(c)
		c.asked++
		heap.Fix(s.order, 0)
	}
}

// one serves or sheds the call that waits longest.
func (s *simulation) one() {
	first := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.least = min(s.least, s.now-first.at)
	ex := pipeline.Exchange{Caller: pipeline.Caller{KeyHash: first.by.key}, Client: first.by.from, Started: s.clock()}
	cost := shedCost
	if s.stages[first.by.api].Handle(&ex) == pipeline.Next {
		first.by.served++
		cost = serveCost
	}
	s.now += time.Duration(float64(cost) * s.slow)
}

func (s *simulation) clock() time.Time { return s.guard.epoch.Add(time.Hour + s.now) }

func (s *simulation) turn() {
	s.keeper.endWindow(s.clock(), s.now-s.window, s.least)
	s.delays = append(s.delays, s.least)
	s.window, s.least = s.now, math.MaxInt64
	if s.keeper.control.phase == shedding {
		s.sheds++
	}
}

// goodput is what was served per second, as a share of what can be.
func (s *simulation) goodput() float64 {
	served := 0
	for _, c := range s.callers {
		served += c.served
	}
	return float64(served) / (float64(len(s.delays)) * window.Seconds()) / most
}

// possible is the goodput that is left when what is too much is shed, for a
// demand as a share of what can be served.
func possible(demand float64) float64 {
	shed := float64(shedCost) / float64(serveCost)
	return (1 - demand*shed) / (1 - shed)
}

func (s *simulation) longest() (long time.Duration) {
	for _, d := range s.delays {
		long = max(long, d)
	}
	return long
}

func TestBelowCapacityNothingIsShed(t *testing.T) {
	s := simulate(&caller{api: "one", key: "a", rate: 0.9 * most})
	s.run(20 * time.Second)
	if c := s.callers[0]; c.share() < 0.999 || s.sheds > 0 {
		t.Errorf("%.3f was served, and %d windows shed", c.share(), s.sheds)
	}
	if len(s.guard.listed) > 0 {
		t.Error("calls are counted although none waits for long")
	}
}

func TestAboveCapacityAllThatIsPossibleIsServedInTime(t *testing.T) {
	for _, demand := range []float64{1.05, 1.2, 1.5, 1.7} {
		t.Run(fmt.Sprint(demand), func(t *testing.T) {
			s := simulate(&caller{api: "one", key: "a", rate: demand * most})
			s.run(2 * time.Second)
			s.run(5 * time.Second)
			if got, best := s.goodput(), possible(demand); got < 0.95*best {
				t.Errorf("%.2f of the capacity was served where %.2f is possible", got, best)
			}
			if got := s.longest(); got > 2*target {
				t.Errorf("calls waited for %s", got)
			}
		})
	}
}

// A thousand callers who call again as soon as they are answered wait for each
// other, which is a tenth of a second, and are served with nearly all there is.
func TestCallersWhoWaitForTheirAnswersAreServedAtCapacity(t *testing.T) {
	s := simulate(&caller{api: "one", key: "a", rate: 3 * most})
	s.keeper.control.MaxDelay, s.crowd = 10*target, 1000
	s.run(2 * time.Second)
	s.run(20 * time.Second)
	if got := s.goodput(); got < 0.94 {
		t.Errorf("%.2f of the capacity was served", got)
	}
	if got := s.longest(); got > 5*target {
		t.Errorf("calls waited for %s", got)
	}
	if s.sheds == 0 {
		t.Error("none of the calls that are too many was shed")
	}
}

// Five thousand would wait for longer than calls may.
func TestTooManyCallersAreShedWhateverItCosts(t *testing.T) {
	s := simulate(&caller{api: "one", key: "a", rate: 1.5 * most})
	s.keeper.control.MaxDelay, s.crowd = 10*target, 5000
	s.run(3 * time.Second)
	s.run(5 * time.Second)
	if got := s.longest(); got > 3*target {
		t.Errorf("calls waited for %s", got)
	}
	if got, best := s.goodput(), possible(1.5); got < 0.9*best {
		t.Errorf("%.2f of the capacity was served where %.2f is possible", got, best)
	}
}

// What comes in is more than can even be shed: no limit brings the delay down,
// and giving up on calls would help nobody.
func TestFarAboveCapacityAPartOfItIsServedAllTheSame(t *testing.T) {
	s := simulate(&caller{api: "one", key: "a", rate: 6 * most})
	s.run(5 * time.Second)
	s.run(2 * time.Second)
	if got := s.goodput(); got < 0.35 {
		t.Errorf("%.2f of the capacity was served", got)
	}
}

func TestOnlyTheGreedyAreShed(t *testing.T) {
	greedy := &caller{api: "one", key: "greedy", rate: 1.2 * most}
	quiet := &caller{api: "one", key: "quiet", rate: 0.1 * most}
	rare := &caller{api: "one", key: "rare", rate: 5}
	other := &caller{api: "two", key: "greedy", rate: 0.2 * most}
	s := simulate(greedy, quiet, rare, other)
	s.run(time.Second)
	s.run(5 * time.Second)
	for _, c := range []*caller{quiet, rare, other} {
		if c.share() < 0.99 {
			t.Errorf("%s %s: %.3f of %d calls was served", c.api, c.key, c.share(), c.asked)
		}
	}
	if greedy.share() > 0.5 || s.sheds == 0 {
		t.Errorf("of the calls that are too many, %.2f was served", greedy.share())
	}
	if !strings.Contains(s.log.String(), "level=WARN msg=\"overloaded") {
		t.Errorf("the log does not say so:\n%s", s.log)
	}
}

func TestAPIsAreEqualWhateverTheirNumberOfKeys(t *testing.T) {
	many := make([]*caller, 1500)
	for i := range many {
		many[i] = &caller{api: "many", key: fmt.Sprint("key", i), rate: 0.75 * most / float64(len(many))}
	}
	one := &caller{api: "one", key: "only", rate: 0.75 * most}
	s := simulate(append(many, one)...)
	s.run(3 * time.Second)
	s.run(5 * time.Second)
	served := 0
	for _, c := range many {
		served += c.served
	}
	if ratio := float64(one.served) / float64(served); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("the API with one key had %d calls, the one with many %d", one.served, served)
	}
}

// More keys than there are cells: those that flood are found all the same.
func TestQuietKeysAreServedAmongManyThatFlood(t *testing.T) {
	var flood, quiet []*caller
	for i := range 40 {
		flood = append(flood, &caller{api: "one", key: fmt.Sprint("flood", i), rate: 0.03 * most})
	}
	for i := range 2000 {
		quiet = append(quiet, &caller{api: "one", key: fmt.Sprint("quiet", i), rate: 0.3 * most / 2000})
	}
	s := simulate(append(flood, quiet...)...)
	s.run(3 * time.Second)
	s.run(3 * time.Second)
	asked, served := 0, 0
	for _, c := range quiet {
		asked, served = asked+c.asked, served+c.served
	}
	if share := float64(served) / float64(asked); share < 0.98 {
		t.Errorf("of the quiet keys' calls %.3f was served", share)
	}
	for _, c := range flood {
		if c.share() > 0.8 {
			t.Errorf("%s had %.2f of its calls", c.key, c.share())
		}
	}
}

func TestWithoutKeysAddressesAreToldApart(t *testing.T) {
	flood := &caller{api: "open", from: netip.MustParseAddr("192.0.2.1"), rate: 0.9 * most}
	quiet := &caller{api: "open", from: netip.MustParseAddr("192.0.2.2"), rate: 0.1 * most}
	one := &caller{api: "open", from: netip.MustParseAddr("2001:db8::1"), rate: 0.25 * most}
	same := &caller{api: "open", from: netip.MustParseAddr("2001:db8::2"), rate: 0.25 * most}
	s := simulate(flood, quiet, one, same)
	s.run(3 * time.Second)
	s.run(3 * time.Second)
	if quiet.share() < 0.98 {
		t.Errorf("the quiet address had %.3f of its calls", quiet.share())
	}
	network := one.served + same.served
	if ratio := float64(flood.served) / float64(network); ratio < 0.75 || ratio > 1.33 {
		t.Errorf("one address had %d calls, two of one network %d", flood.served, network)
	}
}

func TestSheddingEndsWithTheLoad(t *testing.T) {
	c := &caller{api: "one", key: "a", rate: 1.5 * most}
	s := simulate(c)
	s.run(3 * time.Second)
	c.rate = 0.6 * most
	s.run(3 * time.Second)
	s.run(time.Second)
	if s.sheds > 0 || c.share() < 0.99 {
		t.Errorf("%d windows shed, %.3f was served", s.sheds, c.share())
	}
	if len(s.guard.listed) > 0 || s.guard.phase.Load() != uint32(calm) {
		t.Error("calls are still counted")
	}
	if got := s.guard.Stats(); got.Shedding || got.Limit != 0 || got.Times != 1 {
		t.Errorf("stats: %+v", got)
	}
	if log := s.log.String(); !strings.Contains(log, "most_of=one") {
		t.Errorf("the log does not say what was shed:\n%s", log)
	}
}

// The machine gets slower while calls are shed: what may pass follows.
func TestTheLimitFollowsTheCapacity(t *testing.T) {
	s := simulate(&caller{api: "one", key: "a", rate: 1.3 * most})
	s.run(3 * time.Second)
	s.slow = 3
	s.callers[0].rate = 1.3 * most / 3
	s.run(5 * time.Second)
	s.run(5 * time.Second)
	if got, best := s.goodput(), possible(1.3)/3; got < 0.9*best || s.longest() > 2*target {
		t.Errorf("%.2f of the capacity was served where %.2f is possible; the longest delay was %s", got, best, s.longest())
	}
	s.slow = 1
	s.callers[0].rate = 1.3 * most
	s.run(5 * time.Second)
	s.run(5 * time.Second)
	if got, best := s.goodput(), possible(1.3); got < 0.9*best {
		t.Errorf("%.2f of the capacity was served where %.2f is possible again", got, best)
	}
}

// A burst that is worked off in a tenth of a second is no reason to shed.
func TestABurstIsServed(t *testing.T) {
	c := &caller{api: "one", key: "a", rate: 0.3 * most}
	s := simulate(c)
	for range 20 {
		for range 800 { // 80 ms of work
			s.waiting = append(s.waiting, arrival{s.now, c})
		}
		s.run(500 * time.Millisecond)
		if s.sheds > 0 {
			t.Fatalf("%d windows shed; delays were %v", s.sheds, s.delays)
		}
	}
}

func TestAnAPIThatIsNoLongerCalledIsForgotten(t *testing.T) {
	steady := &caller{api: "steady", key: "a", rate: 1.4 * most}
	gone := &caller{api: "gone", key: "a", rate: 0.2 * most}
	s := simulate(steady, gone)
	s.run(time.Second)
	if len(s.guard.listed) != 2 {
		t.Fatalf("%d APIs are listed", len(s.guard.listed))
	}
	gone.rate = 0
	s.run(10 * time.Second)
	if len(s.guard.listed) != 1 || s.guard.listed[0].api != "steady" {
		t.Errorf("%d APIs are listed", len(s.guard.listed))
	}
	gone.rate = 0.2 * most
	s.run(time.Second)
	if len(s.guard.listed) != 2 || gone.share() < 0.95 { // some still wait
		t.Errorf("%d APIs are listed; the one that came back had %.3f of its calls", len(s.guard.listed), gone.share())
	}
}

// There are tables for some APIs only; those that are asked for most have them.
func TestTablesAreBounded(t *testing.T) {
	var callers []*caller
	for i := range 3 * maxTables {
		callers = append(callers, &caller{api: fmt.Sprint("api", i), key: "a", rate: most / 100})
	}
	s := simulate(callers...)
	s.run(2 * time.Second)
	if got := len(s.keeper.holders) + len(s.keeper.free); got != maxTables {
		t.Errorf("there are %d tables", got)
	}
	flood := callers[len(callers)-1]
	for _, c := range callers {
		if d := s.stages[c.api].(*Stage).demand.Load(); d.keys.Load() == nil {
			flood = c
		}
	}
	flood.rate = most
	s.run(2 * time.Second)
	if s.stages[flood.api].(*Stage).demand.Load().keys.Load() == nil {
		t.Error("the API that is asked for most has no table")
	}
	if got := len(s.keeper.holders) + len(s.keeper.free); got != maxTables {
		t.Errorf("there are %d tables", got)
	}
}
