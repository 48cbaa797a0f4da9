package counter

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of flights, measured with a store on the same machine.
const (
	flightsAway   = 2   // script calls under way per lane: one leaves the store idle between two, more only split flights
	flightsQueued = 32  // full flights that may wait: at 6 µs an item, 50 ms of the store's time
	flightItems   = 256 // items of a flight: they stop the store for about a millisecond
	flightKeys    = 768 // keys of a flight, for items of many limits
)

// A flight is one call of the script, on its way for everybody who boarded.
// Those who ask for as many calls under the same limits share one item, and are
// admitted in the order in which they boarded.
type flight struct {
	keys  []string
	args  []byte
	items []item
	index map[string]int32 // first key → newest item that begins with it
	done  chan struct{}    // closed when it has landed; nil for a flight with nobody waiting
	refs  atomic.Int32     // callers that have yet to read, and the one that flies

	// Set before done is closed.
	err *outage
	now int64 // unix milliseconds at landing
}

type item struct {
	keyAt, keys int32
	argAt       int32
	portion     int32 // calls of each boarder, all or nothing; 0 while all only look
	calls       int32 // of all boarders
	reply       reply
	err         *outage
}

var flights = sync.Pool{New: func() any { return &flight{index: make(map[string]int32)} }}

// newFlight takes an empty flight, with a reference for the one who flies it.
func newFlight() *flight {
	f := flights.Get().(*flight)
	f.refs.Store(1)
	return f
}

// release gives a flight back after its last reader. One that failed is left to
// the garbage collector: the client may still hold its strings.
func (f *flight) release() {
	if f.refs.Add(-1) > 0 || f.err != nil {
		return
	}
	clear(f.keys)
	clear(f.items)
	clear(f.index)
	f.keys, f.args, f.items = f.keys[:0], f.args[:0], f.items[:0]
	f.done, f.now = nil, 0
	flights.Put(f)
}

// room tells whether another item of that many limits fits.
func (f *flight) room(limits int) bool {
	return len(f.items) < flightItems && len(f.keys)+limits <= flightKeys
}

// add boards one who asks for calls, or with calls 0 looks. It returns the item
// and how many calls of it come before these.
func (f *flight) add(limits []Limit, calls int32) (at, place int32) {
	argAt := len(f.args)
	f.args = appendItem(f.args, int(calls), int(calls), limits)
	if at, ok := f.index[limits[0].Key]; ok && f.items[at].joins(calls) && f.same(&f.items[at], argAt, limits) {
		f.args = f.args[:argAt]
		it := &f.items[at]
		place = it.calls
		it.calls += calls
		it.portion = max(it.portion, calls)
		packHead(f.args[it.argAt:], int(it.calls), int(it.portion))
		return at, place
	}
	at = int32(len(f.items))
	f.items = append(f.items, item{
		keyAt: int32(len(f.keys)), keys: int32(len(limits)), argAt: int32(argAt), portion: calls, calls: calls,
	})
	for i := range limits {
		f.keys = append(f.keys, limits[i].Key)
	}
	f.index[limits[0].Key] = at
	return at, 0
}

// joins tells whether one who asks for calls may share the item: its boarders
// must all want as many, since a part of what one wants is never granted.
func (it *item) joins(calls int32) bool {
	return calls == 0 || it.calls == 0 || calls == it.portion && it.calls+calls <= MaxCalls
}

// same tells whether an item is under exactly these limits, packed at argAt too.
func (f *flight) same(it *item, argAt int, limits []Limit) bool {
	if int(it.keys) != len(limits) {
		return false
	}
	packed := f.args[argAt+itemCalls:] // without the numbers of calls
	at := int(it.argAt) + itemCalls
	if !bytes.Equal(f.args[at:at+len(packed)], packed) {
		return false
	}
	for i := range limits {
		if f.keys[int(it.keyAt)+i] != limits[i].Key {
			return false
		}
	}
	return true
}

// packed is an item's part of the arguments.
func (f *flight) packed(it *item) []byte {
	return f.args[it.argAt : int(it.argAt)+itemHead+int(it.keys)*itemLimit]
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
	return it.reply.fill(int(b.place), int(b.calls), f.now, limits, counts)
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
	select {
	case <-b.flight.done:
		return b.flight.answer(b, limits, counts)
	case <-ctx.Done():
		b.flight.release()
		return 0, ctx.Err()
	}
}

// board finds a seat: in a flight of its own when one is free, else in the last
// that waits.
func (l *lane) board(limits []Limit, calls int32) (boarding, *outage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return boarding{}, l.down
	}
	var b boarding
	switch last := len(l.queue) - 1; {
	case l.away < flightsAway:
		b.flight, b.flies = newFlight(), true
		l.away++
	case last >= 0 && l.queue[last].room(len(limits)):
		b.flight = l.queue[last]
	case len(l.queue) == flightsQueued:
		return boarding{}, busy
	default:
		b.flight = newFlight()
		b.flight.done = make(chan struct{})
		l.queue = append(l.queue, b.flight)
	}
	b.item, b.place = b.flight.add(limits, calls)
	b.calls = calls
	b.flight.refs.Add(1)
	return b, nil
}

// fly runs a flight, tells its boarders, and sends the next one off. A failure
// closes the lane and fails everybody who waits, none of whom was sent.
func (l *lane) fly(f *flight) {
	ctx := within(l.v.timeout) // its own: callers come and go, and a flight is for all of them
	failed := l.send(ctx, f)
	ctx.end()
	f.now = time.Now().UnixMilli()
	l.v.stats.Flights.Add(1)
	l.v.stats.Commands.Add(int64(len(f.items)))
	l.mu.Lock()
	var stranded []*flight
	if failed != nil {
		stranded, l.queue = l.queue, nil
		l.shut(failed)
	}
	var next *flight
	if len(l.queue) > 0 {
		next = l.queue[0]
		l.queue = append(l.queue[:0], l.queue[1:]...)
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
