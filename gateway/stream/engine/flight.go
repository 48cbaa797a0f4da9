package engine

import (
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// A room bounds what a stream, or all streams together, have not settled. Its demand is off
// from the moment that it is full until a quarter of it is free again: inputs then take
// several messages in a row, rather than one at a time.
type room struct {
	messages, bytes int // at most; 0 messages: any number
	demand          *stream.Demand

	mu       sync.Mutex
	have     int
	size     int
	open     bool
	told     bool // the level of the demand
	telling  bool
	emptied  chan struct{} // closed once nothing is unsettled; nil: it is not waited for
	oldest   *delivery     // in the order in which they entered
	youngest *delivery
}

func newRoom(messages, bytes int) *room {
	return &room{messages: messages, bytes: bytes, demand: stream.NewDemand(true), open: true, told: true}
}

// enter takes room, and reports whether there was enough. One message always fits.
func (r *room) enter(size int) bool {
	r.mu.Lock()
	fits := r.have == 0 || (r.messages == 0 || r.have < r.messages) && r.size+size <= r.bytes
	if fits {
		r.have++
		r.size += size
	}
	if !fits || r.have == r.messages || r.size >= r.bytes {
		r.open = false
	}
	r.unlock()
	return fits
}

// leave gives room back.
func (r *room) leave(size int) {
	r.mu.Lock()
	r.have--
	r.size -= size
	if !r.open && (r.have == 0 || (r.messages == 0 || r.have <= r.messages-1-r.messages/4) && r.size <= r.bytes-r.bytes/4) {
		r.open = true
	}
	if r.have == 0 && r.emptied != nil {
		close(r.emptied)
		r.emptied = nil
	}
	r.unlock()
}

// unlock gives up mu and sets the demand. Of several changes at a time the last one counts.
func (r *room) unlock() {
	if r.telling {
		r.mu.Unlock()
		return
	}
	for r.telling = true; r.told != r.open; {
		r.told = r.open
		open := r.open
		r.mu.Unlock()
		r.demand.Set(open)
		r.mu.Lock()
	}
	r.telling = false
	r.mu.Unlock()
}

// empty returns what is closed once nothing is unsettled.
func (r *room) empty() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.emptied == nil {
		r.emptied = make(chan struct{})
		if r.have == 0 {
			close(r.emptied)
			done := r.emptied
			r.emptied = nil
			return done
		}
	}
	return r.emptied
}

// note puts a delivery at the end of those that are unsettled.
func (r *room) note(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.before = r.youngest
	if r.youngest != nil {
		r.youngest.after = d
	} else {
		r.oldest = d
	}
	r.youngest = d
}

// forget is called when a delivery is settled.
func (r *room) forget(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.before != nil {
		d.before.after = d.after
	} else {
		r.oldest = d.after
	}
	if d.after != nil {
		d.after.before = d.before
	} else {
		r.youngest = d.before
	}
}

// load returns what is unsettled, and since when the oldest of it is: the zero time for
// nothing.
func (r *room) load() (messages, bytes int, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.oldest != nil {
		since = r.oldest.since
	}
	return r.have, r.size, since
}
