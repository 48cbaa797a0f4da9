package pipeline

import "github.com/sluicegate/sluice/internal/counter"

// A Charge is what a request costs under the limits of its key, and how much of it
// has been counted.
type Charge struct {
	Calls  uint16                   // calls that the request counts as, all or nothing; 0 means 1
	Rate   uint16                   // calls that the rate has counted ahead of the other limits
	Whole  bool                     // all limits have counted or refused the request
	Counts [MaxLimits]counter.Count // what is left of Grant.Limits: of the rate once Rate is set, of all once Whole
}

// Limits counts exchanges under their limits.
type Limits interface {
	// Charge counts the calls of ex under the part of its limits that has not counted
	// them, and rejects it when one of them is used up. ex.Charge says how much it
	// counts as and what has been counted: when it grows between two charges, the
	// second one counts the difference. A request that is refused later stays counted.
	Charge(ex *Exchange, part ChargePart) Verdict
}

// A ChargePart is a part of the limits of a request.
type ChargePart uint8

const (
	ChargeAll  ChargePart = iota // every limit that the request falls under
	ChargeRate                   // the rate of the key alone, ahead of work that costs much
)

// ChargeRate charges the rate of the key before costly work, for stages that run
// before the limits. It passes when the version has no limits.
func (ex *Exchange) ChargeRate() Verdict {
	if ex.Version == nil || ex.Version.Limits == nil || ex.Live != nil && ex.Live.Again {
		return Next
	}
	return ex.Version.Limits.Charge(ex, ChargeRate)
}
