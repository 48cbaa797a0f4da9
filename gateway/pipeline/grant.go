package pipeline

import (
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/internal/counter"
)

// A Grant is what one key may do with one API, compiled from the key's session
// and the policies in force. It is shared between requests and never changes,
// but that Operations and Calls are filled in when they are first needed. There are
// as many as keys: a field costs memory. What a request asks for stands in three
// lines of the processor's cache, the first of which decides on most refusals.
type Grant struct {
	scope     GrantScope              // set by Keep
	Refusal   *Rejection              // not nil: every call with the key to this API ends here
	URLs      URLRules                // nil: every path and method
	Seats     [MaxLimits]counter.Seat // where Limits are counted, in their order
	Rate      int8                    // index of the rate in Limits, -1 without one
	Quota     int8                    // index of the quota in Limits, -1 without one
	Unlimited bool                    // there is no quota because the key has one without end
	count     int8                    // of limits

	limits     [MaxLimits]counter.Limit       // what Limits returns, at its beginning
	Special    *Special                       // what few keys have; nil: nothing
	Versions   *VersionSet                    // that the key may use; nil: all of them
	Policy     string                         // id of the first policy that took part; "" for none
	Operations atomic.Pointer[OperationRules] // of a GraphQL API; nil before the first operation
	Calls      rollup.Seat                    // where the key's calls to the API are counted for the admin
}

// NewGrant returns a grant without limits, which AddLimit adds.
func NewGrant() *Grant { return new(Grant).Clear() }

// Clear makes g, which nobody uses, what NewGrant returns.
func (g *Grant) Clear() *Grant {
	*g = Grant{}
	g.Rate, g.Quota = -1, -1
	return g
}

// AddLimit adds a limit, of which there must not be more than MaxLimits, and
// returns its index. It is for whoever makes the grant.
func (g *Grant) AddLimit(l counter.Limit) int8 {
	g.limits[g.count] = l
	g.count++
	return g.count - 1
}

// Limits returns the rate, then the quota, asked in one Take unless the rate is
// asked before; at most MaxLimits.
func (g *Grant) Limits() []counter.Limit { return g.limits[:g.count] }

// QuotaMax is what X-RateLimit-Limit shows: how many calls the quota allows, -1
// for any number, 0 when none is set.
func (g *Grant) QuotaMax() int64 {
	switch {
	case g.Quota >= 0:
		return g.limits[g.Quota].Max
	case g.Unlimited:
		return -1
	}
	return 0
}

// MaxLimits is the largest number of limits that one request is counted under.
const MaxLimits = 2

// URLRules decides on methods and paths. Allows does not allocate.
type URLRules interface {
	Allows(method, path []byte) bool
}
