package pipeline

import (
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition/renewal"
)

// Special is the part of a grant that few keys have. It never changes, but that
// Endpoints may make a limit when it is first needed.
type Special struct {
	Calendar  *renewal.Clock // says when the quota renews; nil: a period after the first call
	Throttle  Throttle
	Endpoints EndpointRates // nil: single calls have no rate of their own
	Measured  Measured
	Unlisted  bool      // the key may not call the API, and passes since that is measured
	Triggers  []float64 // percentages of the quota that are told when they are reached
}

// Throttle is how a call over its rate waits and tries again; the zero value is
// not at all.
type Throttle struct {
	Interval time.Duration
	Retries  int
}

// EndpointRates are rates of single calls. Limit returns that of a method and a
// path, or nil; it allocates at most when a key first makes such a call. room is
// written to and comes back, perhaps grown.
type EndpointRates interface {
	Limit(method, path, room []byte) (l *counter.Limit, grown []byte)
}

// Measured names the policies on trial on whose behalf it is noted what a rule
// would refuse; "" where the rule refuses.
type Measured struct {
	Access     string // APIs, versions, paths and fields
	Rate       string
	Quota      string
	Complexity string // of operations
}

// A Spared is a refusal that was left out.
type Spared struct {
	Reason Reason // ReasonNone: none
	Policy string // id of the one on trial
}

// MaxSpared is how many refusals an exchange notes that were left out.
const MaxSpared = 3

// Spare notes that a policy on trial would have refused the exchange for a
// reason, each reason once.
func (ex *Exchange) Spare(reason Reason, policy string) {
	for i := range ex.Spared {
		s := &ex.Spared[i]
		if s.Reason == reason {
			return
		}
		if s.Reason == ReasonNone {
			*s = Spared{Reason: reason, Policy: policy}
			return
		}
	}
}
