package pipeline

import (
	"encoding/json"
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/counter"
)

// A Grant is what one key may do with one API, compiled from the access rights of
// the key's session and of the policies in force. It is shared between requests and
// immutable, except for Operations, which is set when it is first needed. There is one
// per key and API: each field costs memory. A request reads three cache lines of it,
// the first of which decides on most refusals.
type Grant struct {
	scope     GrantScope              // set by Keep
	Refusal   *Rejection              // not nil: every call with the key to this API ends here
	URLs      URLRules                // nil: every path and method
	Slots     [MaxLimits]counter.Slot // of Limits, in their order
	Rate      int8                    // index of the rate in Limits, -1 without one
	Quota     int8                    // index of the quota in Limits, -1 without one
	Unlimited bool                    // the quota of the key is unlimited
	count     int8                    // of limits

	limits     [MaxLimits]counter.Limit       // backs Limits
	Special    *Special                       // rules that few keys have; nil: none
	Versions   *VersionSet                    // that the key may use; nil: all of them
	Meta       map[string]json.RawMessage     // meta data of the policies, in place of the key's of the same name; nil: none
	Policy     string                         // id of the first policy that took part; "" for none
	Operations atomic.Pointer[OperationRules] // of a GraphQL API; nil before the first operation
}

// NewGrant returns a grant without limits, which AddLimit adds.
func NewGrant() *Grant { return new(Grant).Clear() }

// Clear resets g, which must not be in use, to an empty grant.
func (g *Grant) Clear() *Grant {
	*g = Grant{}
	g.Rate, g.Quota = -1, -1
	return g
}

// AddLimit adds a limit, of which there must not be more than MaxLimits, and
// returns its index. It is called while the grant is compiled only.
func (g *Grant) AddLimit(l counter.Limit) int8 {
	g.limits[g.count] = l
	g.count++
	return g.count - 1
}

// Limits returns the rate, then the quota; at most MaxLimits.
func (g *Grant) Limits() []counter.Limit { return g.limits[:g.count] }

// QuotaMax returns the number of calls that the quota allows: -1 when it is unlimited,
// 0 without a quota. X-RateLimit-Limit shows it.
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
