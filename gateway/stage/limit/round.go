package limit

import (
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// The kinds of limits in a round.
const (
	keyRate = iota
	keyQuota
	endpointRate // of the key, for single endpoints
	pathRate     // of all callers, for single endpoints
	apiRate      // of all callers
	kinds
)

// A round is the limits that one request is counted under in one step: a call that
// any of them refuses costs nothing under the others. It is for requests under more
// limits than those of their grant.
type round struct {
	n      int
	kinds  [kinds]uint8
	limits [kinds]counter.Limit
	counts [kinds]counter.Count
}

var rounds = sync.Pool{New: func() any { return new(round) }}

func (r *round) add(kind uint8, l *counter.Limit) {
	r.kinds[r.n], r.limits[r.n] = kind, *l
	r.n++
}

// remove removes a limit.
func (r *round) remove(at int) {
	r.n--
	copy(r.kinds[at:], r.kinds[at+1:r.n+1])
	copy(r.limits[at:], r.limits[at+1:r.n+1])
}

// index returns the index of a kind, or -1.
func (r *round) index(kind uint8) int {
	for i := range r.n {
		if r.kinds[i] == kind {
			return i
		}
	}
	return -1
}

// release returns the round to the pool, without references to names of counters.
func (r *round) release() {
	clear(r.limits[:])
	r.n = 0
	rounds.Put(r)
}

// gather adds all limits that a request falls under, those of its grant beginning at
// from, in the order in which refusals are reported.
func (s *Stage) gather(r *round, ex *pipeline.Exchange, from int) {
	if g := ex.Grant; g != nil {
		all := g.Limits()
		for i := from; i < len(all); i++ {
			kind := uint8(keyRate)
			if i == int(g.Quota) {
				kind = keyQuota
			}
			r.add(kind, &all[i])
		}
		if sp := g.Special; sp != nil {
			setCalendarPeriod(r, sp, ex.Moment().UnixMilli())
			if sp.Endpoints != nil && s.rates {
				var l *counter.Limit
				if l, ex.Buf = sp.Endpoints.Limit(ex.Call.Method, ex.Path, ex.Buf); l != nil {
					r.add(endpointRate, l)
				}
			}
		}
	}
	s.api.gather(r, ex)
}

// countRound counts a request's calls under the limits of a round. A report-only
// limit that refuses is recorded and left out; a rate that refuses is waited for if
// the key may wait.
func (s *Stage) countRound(r *round, ex *pipeline.Exchange, calls int) pipeline.Verdict {
	var wait waiting
	defer wait.end(s.Limiter)
	for r.n > 0 {
		refused, err := s.count(ex, taking{limits: r.limits[:r.n], counts: r.counts[:r.n]}, calls)
		if err != nil {
			return s.fail(ex, err)
		}
		s.setCounts(r, ex)
		switch {
		case refused < 0:
			return pipeline.Next
		case s.reportOnly(r, ex, refused):
			r.remove(refused)
		case !r.isKeyRate(refused) || !wait.again(s.Limiter, ex, &r.limits[refused], calls):
			return s.refuse(r, ex, refused)
		default:
			setCalendarPeriod(r, ex.Grant.Special, time.Now().UnixMilli())
		}
	}
	return pipeline.Next
}

// setCounts copies the counts of the key's own limits to the exchange.
func (s *Stage) setCounts(r *round, ex *pipeline.Exchange) {
	if at := r.index(keyRate); at >= 0 {
		ex.Charge.Counts[ex.Grant.Rate] = r.counts[at]
	}
	if at := r.index(keyQuota); at >= 0 {
		ex.Charge.Counts[ex.Grant.Quota] = r.counts[at]
		if sp := ex.Grant.Special; sp != nil && sp.Calendar != nil {
			alignReset(&ex.Charge.Counts[ex.Grant.Quota], sp.Calendar.End(ex.Moment().UnixMilli()))
		}
	}
}

// reportOnly records the refusal of a report-only limit, and reports whether it is
// one.
func (s *Stage) reportOnly(r *round, ex *pipeline.Exchange, refused int) bool {
	if ex.Grant == nil || ex.Grant.Special == nil {
		return false
	}
	policies := &ex.Grant.Special.ReportOnly
	policy, reason := "", pipeline.ReasonRateLimit
	switch r.kinds[refused] {
	case keyRate:
		policy = policies.Rate
	case keyQuota:
		policy, reason = policies.Quota, pipeline.ReasonQuotaExceeded
	case endpointRate:
		policy = policies.Access
	}
	if policy == "" {
		return false
	}
	ex.ReportOnly.Add(reason, policy)
	return true
}

func (r *round) isKeyRate(at int) bool {
	return r.kinds[at] == keyRate || r.kinds[at] == endpointRate
}

// refuse refuses a request for one limit of a round.
func (s *Stage) refuse(r *round, ex *pipeline.Exchange, refused int) pipeline.Verdict {
	why := rateExceeded
	switch r.kinds[refused] {
	case keyQuota:
		return ex.Reject(quotaExceeded)
	case pathRate, apiRate:
		why = apiRateExceeded
	}
	return refuseRate(ex, why, r.counts[refused].ResetAt, r.limits[refused].Period)
}
