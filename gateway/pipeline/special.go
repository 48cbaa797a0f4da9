package pipeline

import (
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

// Special is the part of a grant that few keys have. It is immutable, except that
// Endpoints compiles a limit when it is first needed.
type Special struct {
	Calendar   *definition.QuotaClock // when the quota renews; nil: a period after the first call
	Throttle   Throttle
	Endpoints  EndpointRates // rates of single endpoints; nil: none
	ReportOnly ReportOnlyPolicies
	Unlisted   bool      // the key has no access right for the API, and passes because the list is report-only
	Triggers   []float64 // percentages of the quota that raise an event
}

// Throttle is how often a call over its rate waits and is counted again; the zero
// value refuses it at once.
type Throttle struct {
	Interval time.Duration
	Retries  int
}

// EndpointRates are rates of single endpoints. Limit returns the rate of a method
// and a path, or nil; it allocates at most when a key first calls an endpoint. It
// overwrites buf and returns it, possibly grown.
type EndpointRates interface {
	Limit(method, path, buf []byte) (l *counter.Limit, grown []byte)
}

// ReportOnlyPolicies are the ids of report-only policies, by the rules that they
// set: what such a rule would refuse is reported under the policy. A rule whose
// member is "" refuses.
type ReportOnlyPolicies struct {
	Access     string // APIs, versions, paths and fields
	Rate       string
	Quota      string
	Complexity string // of operations
}

// A ReportOnlyRefusal is a refusal that a report-only policy did not enforce.
type ReportOnlyRefusal struct {
	Reason Reason // ReasonNone: none
	Policy string // id of the policy
}

// MaxReportOnly is how many report-only refusals an exchange records.
const MaxReportOnly = 3

// ReportOnlyRefusals are the report-only refusals of an exchange, in order, from
// index 0.
type ReportOnlyRefusals [MaxReportOnly]ReportOnlyRefusal

// Add records that a report-only policy would have refused the exchange, each
// reason once.
func (all *ReportOnlyRefusals) Add(reason Reason, policy string) {
	for i := range all {
		r := &all[i]
		if r.Reason == reason {
			return
		}
		if r.Reason == ReasonNone {
			*r = ReportOnlyRefusal{Reason: reason, Policy: policy}
			return
		}
	}
}
