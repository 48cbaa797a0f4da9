package pipeline

import (
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/counter"
)

// A Grant is what one key may do with one API, compiled from the key's session
// and the policies in force. It is shared between requests and never changes,
// but that Operations is filled in when it is first needed. There are as many as
// keys: a field costs memory.
type Grant struct {
	Refusal *Rejection      // not nil: every call with the key to this API ends here
	URLs    URLRules        // nil: every path and method
	Limits  []counter.Limit // the rate, then the quota, asked in one Take unless the rate is asked before; at most MaxLimits

	Rate      int8 // index of the rate in Limits, -1 without one
	Quota     int8 // index of the quota in Limits, -1 without one
	Unlimited bool // there is no quota because the key has one without end

	Operations atomic.Pointer[OperationRules] // of a GraphQL API; nil before the first operation
	Policy     string                         // id of the first policy that took part; "" for none
}

// QuotaMax is what X-RateLimit-Limit shows: how many calls the quota allows, -1
// for any number, 0 when none is set.
func (g *Grant) QuotaMax() int64 {
	switch {
	case g.Quota >= 0:
		return g.Limits[g.Quota].Max
	case g.Unlimited:
		return -1
	}
	return 0
}

// MaxLimits is the largest number of limits that one request is counted under.
const MaxLimits = 4

// URLRules decides on methods and paths. Allows does not allocate.
type URLRules interface {
	Allows(method, path []byte) bool
}
