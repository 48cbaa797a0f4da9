package counter

import (
	"errors"
	"sync/atomic"
)

// State says whether the store can be used.
type State struct {
	Away  bool  // the outage policy applies, in a cluster perhaps to some keys only
	Cause error // why it is away; nil otherwise
}

// Stats are counts since a Valkey was opened. They may be read at any time.
type Stats struct {
	Batches      atomic.Int64 // batches sent
	Items        atomic.Int64 // items of those batches: calls under the same limits share one
	Outages      atomic.Int64 // times the store went away
	Standby      atomic.Int64 // calls that the outage policy decided
	Busy         atomic.Int64 // of those, calls decided because too many waited
	DebtsPaid    atomic.Int64 // keys whose calls were added to the store afterwards
	DebtsDropped atomic.Int64 // keys whose calls were not: their period was over, or the outcome is unknown
	Floors       atomic.Int64 // keys restored in a store that had lost its data
	Refunds      atomic.Int64 // quota calls refunded because a limit in another hash slot refused
	RefundsLost  atomic.Int64 // quota calls not refunded: quotas are too strict by as many
}

// State returns whether the store is away now.
func (v *Valkey) State() State {
	for _, l := range v.lanes {
		if down := l.isDown(); down != nil {
			return State{Away: true, Cause: down.cause}
		}
	}
	return State{}
}

// Stats returns the live counts.
func (v *Valkey) Stats() *Stats { return &v.stats }

// report calls Changed if the store went away or came back. It reads the state
// under its lock, so that the last call always has the current one.
func (v *Valkey) report() {
	v.reporting.Lock()
	defer v.reporting.Unlock()
	now := v.State()
	if v.opening || now.Away == v.reported || errors.Is(now.Cause, errClosed) {
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

// opened reports the outcome of opening.
func (v *Valkey) opened() {
	v.reporting.Lock()
	v.opening = false
	v.reporting.Unlock()
	v.report()
}
