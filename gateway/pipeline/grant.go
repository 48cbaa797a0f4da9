package pipeline

import "github.com/sluicegate/sluice/internal/counter"

// A Grant is what one key may do with one API, compiled from the key's session
// and the policies in force. It is shared between requests and never changes.
type Grant struct {
	Refusal *Rejection      // not nil: every call with the key to this API ends here
	URLs    URLRules        // nil: every path and method
	Limits  []counter.Limit // the rate, then the quota, asked in one Take unless the rate is asked before; at most MaxLimits
	Rate    int8            // index of the rate in Limits, -1 without one
	Quota   int8            // index of the quota in Limits, -1 without one

	QuotaMax int64  // what X-RateLimit-Limit shows: -1 unlimited, 0 none set
	Policy   string // id of the first policy that took part; "" for none
}

// MaxLimits is the largest number of limits that one request is counted under.
const MaxLimits = 4

// URLRules decides on methods and paths. Allows does not allocate.
type URLRules interface {
	Allows(method, path []byte) bool
}
