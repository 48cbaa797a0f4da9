package counter

import (
	"errors"
	"sync/atomic"
)

// State is how a Valkey stands to its store.
type State struct {
	Away  bool  // the outage policy applies, in a cluster perhaps to some keys only
	Cause error // why; nil when not away
}

// Stats count what a Valkey did since it was opened. They may be read at any
// time.
type Stats struct {
	Flights      atomic.Int64 // script calls sent, of all lanes
	Commands     atomic.Int64 // items those carried: calls under the same limits are one
	Outages      atomic.Int64 // times the store went away
	Standby      atomic.Int64 // calls that the outage policy decided
	Busy         atomic.Int64 // of those, calls for which too many waited
	DebtsPaid    atomic.Int64 // keys whose calls were told to the store afterwards
	DebtsDropped atomic.Int64 // keys whose were not: their period was over, or the outcome is unknown
	Floors       atomic.Int64 // keys given back to a store that had lost its data
	Refunds      atomic.Int64 // quota calls given back since another slot's limit refused
	RefundsLost  atomic.Int64 // the same, not given back: so much too strict
}

// State tells whether the store is away now.
func (v *Valkey) State() State {
	for _, l := range v.lanes {
		if down := l.isDown(); down != nil {
			return State{Away: true, Cause: down.cause}
		}
	}
	return State{}
}

// Stats returns the counts, which go on counting.
func (v *Valkey) Stats() *Stats { return &v.stats }

// report tells Changed when the store went away or came back. It looks at the
// state again under its lock, so that the last call always tells the truth.
func (v *Valkey) report() {
	v.reporting.Lock()
	defer v.reporting.Unlock()
	now := v.State()
	if v.quiet || now.Away == v.reported || errors.Is(now.Cause, errClosed) {
		return
	}
	v.reported = now.Away
	if now.Away {
		v.stats.Outages.Add(1)
	}
	if v.changed != nil {
		v.changed(now)
	}
}

// speak ends the quiet of opening.
func (v *Valkey) speak() {
	v.reporting.Lock()
	v.quiet = false
	v.reporting.Unlock()
	v.report()
}
