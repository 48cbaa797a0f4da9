package counter

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/counter/script"
)

const (
	// batchesInFlight is how many batches of a lane are sent at a time. More would
	// only make them smaller.
	batchesInFlight = 2

	// batchesQueued is how many full batches may wait: at 5 µs an item, 40 ms of the
	// store's time.
	batchesQueued = 32
)

// A batch is one run of the script for all callers that joined it while it was
// open. Callers that ask for as many calls under the same limits share one item,
// and are admitted in the order in which they joined.
type batch struct {
	request script.Batch
	items   []item
	reply   []byte        // the script's replies to the items
	resets  []int64       // of each key of the request: unix milliseconds when a quota's period ends, 0 never
	done    chan struct{} // closed when it is finished; nil if no caller waits
	refs    atomic.Int32  // callers that have yet to read their answer, and the one that runs it
	created int64         // unix milliseconds
	number  uint64        // in the order in which batches were sent

	// Set before done is closed.
	err *outage
	now int64 // unix milliseconds when the reply came
}

type item struct {
	keyAt, keys int32 // in the request
	portion     int32 // calls of each caller, all or nothing; 0 while all only peek
	calls       int32 // of all callers
	reply       script.Reply
	err         *outage
}

var batches = sync.Pool{New: func() any {
	b := &batch{}
	b.request.Reset()
	return b
}}

// newBatch returns an empty batch with a reference for the caller that runs it.
func newBatch() *batch {
	b := batches.Get().(*batch)
	b.refs.Store(1)
	b.created = time.Now().UnixMilli()
	return b
}

// release recycles a batch after its last reader. One that failed is left to the
// garbage collector: the client may still hold its strings.
func (b *batch) release() {
	if b.refs.Add(-1) > 0 || b.err != nil {
		return
	}
	b.request.Reset()
	clear(b.items)
	b.items, b.resets = b.items[:0], b.resets[:0]
	b.done, b.now = nil, 0
	batches.Put(b)
}

// add adds a caller that asks for calls, or with calls 0 peeks. It returns the
// item, and how many calls of the item come before these.
func (b *batch) add(q *quotaCache, limits []Limit, calls int32) (at, before int32) {
	var forms [MaxLimits]script.Form
	for i := range limits {
		forms[i] = formOf(&limits[i])
	}
	shape := b.request.Shape(forms[:len(limits)])
	if at := b.request.Latest(limits[0].Key); at >= 0 && b.items[at].accepts(calls) && b.hasLimits(at, shape, limits) {
		it := &b.items[at]
		before = it.calls
		it.calls += calls
		it.portion = max(it.portion, calls)
		b.request.Count(at, int(it.calls), int(it.portion))
		return int32(at), before
	}
	b.items = append(b.items, item{keyAt: int32(len(b.request.Keys)), keys: int32(len(limits)), portion: calls, calls: calls})
	opened := b.request.Open(shape)
	b.request.Count(opened, int(calls), int(calls))
	for i := range limits {
		l, reset := &limits[i], int64(0)
		if l.Kind == Quota {
			var ask bool
			if reset, ask = q.reset(l.Key, b.created); ask {
				b.request.Ask(opened)
			}
		}
		b.request.Key(l.Key, i == 0)
		b.resets = append(b.resets, reset)
	}
	return int32(opened), 0
}

func formOf(l *Limit) script.Form {
	return script.Form{Rate: l.Kind == Rate, Max: l.Max, Period: micros(l.Period), Group: groupSize(l.Max)}
}

// accepts reports whether a caller that asks for calls may share the item: all of
// its callers must ask for as many, because the script grants whole portions.
func (it *item) accepts(calls int32) bool {
	return calls == 0 || it.calls == 0 || calls == it.portion && it.calls+calls <= MaxCalls
}

// hasLimits reports whether an item is under exactly these limits, which have a
// shape.
func (b *batch) hasLimits(at, shape int, limits []Limit) bool {
	if !b.request.HasShape(at, shape) {
		return false
	}
	keys := b.request.Keys[b.items[at].keyAt:]
	for i := range limits {
		if keys[i] != limits[i].Key {
			return false
		}
	}
	return true
}

func (b *batch) keysOf(it *item) []string {
	return b.request.Keys[it.keyAt : it.keyAt+it.keys : it.keyAt+it.keys]
}

// A ticket is a caller's place in a batch.
type ticket struct {
	batch  *batch
	item   int32
	before int32 // calls of the item that come before these
	calls  int32
	runs   bool // the caller has to run the batch
}

// answer returns what the batch decided for the caller of a ticket, and releases
// the batch.
func (t *ticket) answer(limits []Limit, counts []Count) (int, error) {
	b := t.batch
	defer b.release()
	it := &b.items[t.item]
	switch {
	case b.err != nil:
		return 0, b.err
	case it.err != nil:
		return 0, it.err
	}
	granted, refused := it.reply.Outcome()
	if refused == script.Foreign {
		return 0, ErrNotCounter
	}
	taken := min(int(t.before)+int(t.calls), granted) // if refused, what is left by the others of the item
	if t.calls == 0 || int(t.before) < granted {      // whole portions are granted, so all of these calls or none
		refused = -1
	}
	resets := b.resets[it.keyAt : it.keyAt+it.keys]
	for i := range limits {
		free, reset := it.reply.Limit(i)
		switch {
		case limits[i].Kind == Quota:
			reset = resets[i]
		case reset > 0:
			reset += b.now // the store reports a duration, as its clock may differ
		}
		counts[i] = Count{Remaining: max(free-int64(taken), 0), ResetAt: reset}
	}
	return refused, nil
}

// count counts calls, or with calls 0 peeks, in the next batch. The caller waits
// until the batch is finished, or ctx ends; then its calls are counted all the
// same.
func (l *lane) count(ctx context.Context, limits []Limit, counts []Count, calls int32) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	t, refusal := l.join(limits, calls)
	if refusal != nil {
		return 0, refusal
	}
	if t.runs {
		l.run(t.batch)
		return t.answer(limits, counts)
	}
	select {
	case <-t.batch.done:
		return t.answer(limits, counts)
	case <-ctx.Done():
		t.batch.release()
		return 0, ctx.Err()
	}
}

// join adds a caller to the open batch, to one of its own if another may be sent,
// or else to the last that is queued.
func (l *lane) join(limits []Limit, calls int32) (ticket, *outage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return ticket{}, l.down
	}
	t := ticket{calls: calls}
	switch last := len(l.queue) - 1; {
	case l.open != nil && l.open.request.Fits(len(limits)):
		t.batch = l.open
		if t.batch.done == nil {
			t.batch.done = make(chan struct{})
		}
	case l.inFlight < batchesInFlight:
		t.batch, t.runs = newBatch(), true
		l.inFlight++
		l.open = t.batch
	case last >= 0 && l.queue[last].request.Fits(len(limits)):
		t.batch = l.queue[last]
	case len(l.queue) == batchesQueued:
		return ticket{}, busy
	default:
		t.batch = newBatch()
		t.batch.done = make(chan struct{})
		l.queue = append(l.queue, t.batch)
	}
	t.item, t.before = t.batch.add(l.quotas, limits, calls)
	t.batch.refs.Add(1)
	return t, nil
}

// close closes an open batch. Goroutines that are ready to run may join first: on
// a busy machine the batch carries many calls, and on an idle one it leaves at
// once.
func (l *lane) close(b *batch) *outage {
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == b {
		l.open = nil
	}
	return l.down
}

// run closes, sends and finishes a batch, and starts the next one. A failure shuts
// the lane and fails all queued batches, none of which was sent.
func (l *lane) run(b *batch) {
	failed := l.close(b)
	if failed != nil {
		failed = failed.unsent()
		b.err = failed
	} else {
		failed = l.send(b)
	}
	l.mu.Lock()
	var abandoned []*batch
	if failed != nil {
		abandoned, l.queue = l.queue, nil
		l.shut(failed)
	}
	var next *batch
	if len(l.queue) > 0 {
		next = l.queue[0]
		l.queue = append(l.queue[:0], l.queue[1:]...)
		if l.open == nil {
			l.open = next
		}
		l.v.running.Add(1)
	} else {
		l.inFlight--
	}
	l.mu.Unlock()
	b.finish()
	for _, a := range abandoned {
		a.err = failed.unsent()
		a.finish()
	}
	if failed != nil {
		l.v.report()
	}
	if next != nil {
		go func() {
			defer l.v.running.Done()
			l.run(next)
		}()
	}
}

// send sends a batch and waits for its reply. It returns why the lane has to be
// shut, if it has.
func (l *lane) send(b *batch) *outage {
	ctx, cancel := context.WithTimeout(context.Background(), l.v.timeout) // not a caller's: the batch is for all of them
	defer cancel()
	failed := l.exchange(ctx, b)
	b.now = time.Now().UnixMilli()
	l.v.stats.Batches.Add(1)
	l.v.stats.Items.Add(int64(len(b.items)))
	if b.err == nil {
		l.record(b)
	}
	return failed
}

// finish wakes the callers that wait and releases the batch.
func (b *batch) finish() {
	if b.done != nil {
		close(b.done)
	}
	b.release()
}
