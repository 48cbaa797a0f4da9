package counter

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/counter/deadline"
	"github.com/sluicegate/sluice/internal/counter/recall"
	"github.com/sluicegate/sluice/internal/counter/script"
)

// Bounds of flights, measured with a store on the same machine.
const (
	flightsQueued = 32 // full flights that may wait: at 5 µs an item, 40 ms of the store's time

	waits = 4 // times a flight lets others go first: with one, an item costs the store 4 % more; with eight as much
)

// A flight is one call of the script, on its way for everybody who boarded.
// Those who ask for as many calls under the same limits share one item, and are
// admitted in the order in which they boarded.
type flight struct {
	batch script.Batch
	items []item
	told  []byte        // what the script said: their replies
	known []known       // of each key of the batch
	done  chan struct{} // closed when it has landed; nil for a flight with nobody waiting
	refs  atomic.Int32  // callers that have yet to read, and the one that flies
	born  int64         // unix milliseconds when it began to board

	number uint64 // flights are numbered in the order in which they left

	// Set before done is closed.
	err *outage
	now int64 // unix milliseconds at landing
}

type item struct {
	keyAt, keys int32
	portion     int32 // calls of each boarder, all or nothing; 0 while all only look
	calls       int32 // of all boarders
	reply       script.Reply
	err         *outage
}

// known is what the last reply about a quota said; it is empty for a rate.
type known struct {
	entry *recall.Entry
	hash  uint64
	reset int64 // unix milliseconds; 0 never. After landing: what the callers read
}

var flights = sync.Pool{New: func() any {
	f := &flight{}
	f.batch.Reset()
	return f
}}

// newFlight takes an empty flight, with a reference for the one who flies it.
func newFlight() *flight {
	f := flights.Get().(*flight)
	f.refs.Store(1)
	f.born = time.Now().UnixMilli()
	return f
}

// release gives a flight back after its last reader. One that failed is left to
// the garbage collector: the client may still hold its strings.
func (f *flight) release() {
	if f.refs.Add(-1) > 0 || f.err != nil {
		return
	}
	f.batch.Reset()
	clear(f.items)
	clear(f.known)
	f.items, f.known = f.items[:0], f.known[:0]
	f.done, f.now = nil, 0
	flights.Put(f)
}

// add boards one who asks for calls, or with calls 0 looks. It returns the item
// and how many calls of it come before these.
func (f *flight) add(r *recall.Recall, limits []Limit, calls int32) (at, place int32) {
	var forms [MaxLimits]script.Form
	for i := range limits {
		forms[i] = formOf(&limits[i])
	}
	shape, hash := f.batch.Shape(forms[:len(limits)]), r.Hash(limits[0].Key)
	if at := f.batch.Latest(hash); at >= 0 && f.items[at].joins(calls) && f.same(at, shape, limits) {
		it := &f.items[at]
		place = it.calls
		it.calls += calls
		it.portion = max(it.portion, calls)
		f.batch.Count(at, int(it.calls), int(it.portion))
		return int32(at), place
	}
	item := item{keyAt: int32(len(f.batch.Keys)), keys: int32(len(limits)), portion: calls, calls: calls}
	f.items = append(f.items, item)
	opened := f.batch.Open(shape)
	f.batch.Count(opened, int(calls), int(calls))
	for i := range limits {
		if i > 0 {
			hash = r.Hash(limits[i].Key)
		}
		f.batch.Key(limits[i].Key, hash, i == 0)
		f.known = append(f.known, f.look(r, &limits[i], hash, opened))
	}
	return int32(opened), 0
}

// look finds what is known of a quota, and has the script tell when its period
// ends if that is not known.
func (f *flight) look(r *recall.Recall, l *Limit, hash uint64, item int) known {
	k := known{hash: hash}
	if l.Kind == Quota {
		var ask bool
		if k.entry, k.reset, ask = r.Look(l.Key, hash, f.born); ask {
			f.batch.Ask(item)
		}
	}
	return k
}

func formOf(l *Limit) script.Form {
	return script.Form{Rate: l.Kind == Rate, Max: l.Max, Period: micros(l.Period), Group: groupSize(l.Max)}
}

// joins tells whether one who asks for calls may share the item: its boarders
// must all want as many, since a part of what one wants is never granted.
func (it *item) joins(calls int32) bool {
	return calls == 0 || it.calls == 0 || calls == it.portion && it.calls+calls <= MaxCalls
}

// same tells whether an item is under exactly these limits, which have a shape.
func (f *flight) same(at, shape int, limits []Limit) bool {
	if !f.batch.HasShape(at, shape) {
		return false
	}
	keys := f.batch.Keys[f.items[at].keyAt:]
	for i := range limits {
		if keys[i] != limits[i].Key {
			return false
		}
	}
	return true
}

// answer reads the result of one boarder and lets go of the flight.
func (f *flight) answer(b boarding, limits []Limit, counts []Count) (int, error) {
	defer f.release()
	it := &f.items[b.item]
	if f.err != nil {
		return 0, f.err
	}
	if it.err != nil {
		return 0, it.err
	}
	return f.fill(it, b, limits, counts)
}

// fill writes what one caller of an item reads who asked for calls, or with none
// only looked. It returns the refused index or -1.
func (f *flight) fill(it *item, b boarding, limits []Limit, counts []Count) (int, error) {
	granted, refused := it.reply.Outcome()
	if refused == script.Foreign {
		return 0, ErrNotCounter
	}
	taken := min(int(b.place)+int(b.calls), granted) // when refused: what the others of the item left
	if b.calls == 0 || int(b.place) < granted {      // granted are whole portions, so all of these calls or none
		refused = -1
	}
	known := f.known[it.keyAt : it.keyAt+it.keys]
	for i := range limits {
		free, reset := it.reply.Limit(i)
		switch {
		case limits[i].Kind == Quota:
			reset = known[i].reset
		case reset > 0:
			reset += f.now // the store tells a distance: its clock may be another one
		}
		counts[i] = Count{Remaining: max(free-int64(taken), 0), ResetAt: reset}
	}
	return refused, nil
}

// A boarding is a call's seat.
type boarding struct {
	flight *flight
	item   int32
	place  int32 // calls of the item that come before these
	calls  int32
	flies  bool // the caller found a free flight and flies it
}

// ask counts calls, or with calls 0 looks, by the next flight. The caller waits
// until it has landed, at most while ctx lasts; one that leaves has been
// counted all the same.
func (l *lane) ask(ctx context.Context, limits []Limit, counts []Count, calls int32) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	b, refusal := l.board(limits, calls)
	if refusal != nil {
		return 0, refusal
	}
	if b.flies {
		l.fly(b.flight)
		return b.flight.answer(b, limits, counts)
	}
	leaves := ctx.Done()
	if leaves == nil { // a gateway's callers do not leave, and waiting for one thing costs half of waiting for two
		<-b.flight.done
		return b.flight.answer(b, limits, counts)
	}
	select {
	case <-b.flight.done:
		return b.flight.answer(b, limits, counts)
	case <-leaves:
		b.flight.release()
		return 0, ctx.Err()
	}
}

// board finds a seat: in the flight that is about to leave, in one of its own
// when another may, else in the last that waits.
func (l *lane) board(limits []Limit, calls int32) (boarding, *outage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return boarding{}, l.down
	}
	var b boarding
	switch last := len(l.queue) - 1; {
	case l.boarding != nil && l.boarding.batch.Room(len(limits)):
		b.flight = l.boarding
		if b.flight.done == nil {
			b.flight.done = make(chan struct{})
		}
	case l.away < l.pace.Flights():
		b.flight, b.flies = newFlight(), true
		l.away++
		l.boarding = b.flight
	case last >= 0 && l.queue[last].batch.Room(len(limits)):
		b.flight = l.queue[last]
	case len(l.queue) == flightsQueued:
		return boarding{}, busy
	default:
		b.flight = newFlight()
		b.flight.done = make(chan struct{})
		l.queue = append(l.queue, b.flight)
	}
	b.item, b.place = b.flight.add(l.recall, limits, calls)
	b.calls = calls
	b.flight.refs.Add(1)
	return b, nil
}

// depart ends boarding. Whoever is ready to run may board before, and so may those
// who become ready meanwhile: on a busy machine a flight then carries everybody, and
// on an idle one leaves at once.
func (l *lane) depart(f *flight) *outage {
	for range waits {
		runtime.Gosched()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.boarding == f {
		l.boarding = nil
	}
	return l.down
}

// fly runs a flight, tells its boarders, and sends the next one off. A failure
// closes the lane and fails everybody who waits, none of whom was sent.
func (l *lane) fly(f *flight) {
	failed := l.depart(f)
	if failed != nil {
		failed = failed.unsent()
		f.err = failed
	} else {
		failed = l.travel(f)
	}
	l.mu.Lock()
	var stranded []*flight
	if failed != nil {
		stranded, l.queue = l.queue, nil
		l.shut(failed)
	}
	var next *flight
	if len(l.queue) > 0 && l.away <= l.pace.Flights() { // with more under way, another one takes the queue on
		next = l.queue[0]
		l.queue = append(l.queue[:0], l.queue[1:]...)
		if l.boarding == nil {
			l.boarding = next
		}
		l.v.flying.Add(1)
	} else {
		l.away--
	}
	l.mu.Unlock()
	f.land()
	for _, s := range stranded {
		s.err = failed.unsent()
		s.land()
	}
	if failed != nil {
		l.v.report()
	}
	if next != nil {
		go l.flyNext(next)
	}
}

// travel sends a flight and waits for its answer.
func (l *lane) travel(f *flight) *outage {
	ctx := deadline.Within(l.v.timeout) // its own: callers come and go, and a flight is for all of them
	ends, _ := ctx.Deadline()
	failed := l.send(ctx, f)
	ctx.End()
	now := time.Now()
	f.now = now.UnixMilli()
	l.v.stats.Flights.Add(1)
	l.v.stats.Commands.Add(int64(len(f.items)))
	if f.err == nil {
		l.remember(f)
	}
	if failed == nil {
		l.mu.Lock()
		l.pace.Note(now.Sub(ends) + l.v.timeout)
		l.mu.Unlock()
	}
	return failed
}

func (l *lane) flyNext(f *flight) {
	defer l.v.flying.Done()
	l.fly(f)
}

// land wakes the boarders. Nobody touches the flight for its flier any more.
func (f *flight) land() {
	if f.done != nil {
		close(f.done)
	}
	f.release()
}
