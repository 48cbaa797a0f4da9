package pipeline

import "time"

// EventLimits are the limits of a key under which the events of one subscription count,
// one call each. They are those of the key when the subscription began.
type EventLimits struct {
	AtLimit string // what happens at a limit: drop, delay or end

	// Take counts one event. It returns nil if the event may be passed on. It may wait for
	// a store.
	Take func() *EventOver

	// Count counts what has happened to an event at a limit.
	Count func(EventOutcome)
}

// An EventOver says which limit an event is over.
type EventOver struct {
	Message string
	After   time.Duration // when to try again; 0: never
	Quota   bool          // the limit is the quota, for which events do not wait
}

// An EventOutcome is what happens to an event at a limit.
type EventOutcome uint8

// The outcomes.
const (
	EventDropped EventOutcome = iota
	EventDelayed
	EventEnded
	EventOutcomes
)

// An EventMeter is Limits that count events.
type EventMeter interface {
	// Events returns the limits of the events of a subscription that ex begins, nil if
	// there are none.
	Events(ex *Exchange, atLimit string) *EventLimits
}
