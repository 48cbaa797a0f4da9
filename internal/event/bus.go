package event

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"
)

// Event is one thing that happened. It holds no secret but RawKey: a key is named by the
// beginning of its hash.
type Event struct {
	Name   Name
	At     time.Time
	API    string // id; "" when it concerns none
	Org    string // id of the organisation; may be empty
	Key    string // what logs call the key; "" when it concerns none
	Detail string // in words, for people; may be empty
	RawKey string // the key as the client sent it, for webhooks alone; "" unless the operator wants it there

	// Where a request was refused. They are left out where no handler is set for an
	// API's events one by one.
	Path   string     // as the client wrote it
	Origin netip.Addr // the client

	Upstream *Upstream // of events about targets and breakers; else nil
	Trigger  Trigger   // of TriggerExceeded

	Certificate *Certificate // of events about certificates; else nil
}

// Trigger is a share of a quota that was reached.
type Trigger struct {
	Limit int // percent of the quota at which the event is raised
	Usage int // percent that is used, rounded down
}

// A Sink takes events, one at a time, from one goroutine.
type Sink interface{ Handle(e Event) }

// Bus passes events on to sinks without ever blocking the caller of Raise. It is
// safe for concurrent use.
type Bus struct {
	queue   chan Event
	sinks   []Sink
	dropped atomic.Uint64
}

// NewBus returns a bus that holds up to size events which no sink has taken yet.
func NewBus(size int, sinks ...Sink) *Bus {
	return &Bus{queue: make(chan Event, size), sinks: sinks}
}

// Add adds a sink. It must not run beside Run.
func (b *Bus) Add(s Sink) { b.sinks = append(b.sinks, s) }

// Raise hands e to the sinks, or drops and counts it if they are too far behind. It neither waits nor allocates.
func (b *Bus) Raise(e Event) {
	select {
	case b.queue <- e:
	default:
		b.dropped.Add(1)
	}
}

// Dropped returns how many events were dropped.
func (b *Bus) Dropped() uint64 { return b.dropped.Load() }

// Run passes events on until ctx ends, and then those that are still queued.
func (b *Bus) Run(ctx context.Context) {
	for {
		select {
		case e := <-b.queue:
			b.deliver(e)
		case <-ctx.Done():
			b.drain()
			return
		}
	}
}

func (b *Bus) drain() {
	for {
		select {
		case e := <-b.queue:
			b.deliver(e)
		default:
			return
		}
	}
}

func (b *Bus) deliver(e Event) {
	for _, s := range b.sinks {
		s.Handle(e)
	}
}
