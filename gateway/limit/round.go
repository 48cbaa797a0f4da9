package limit

import (
	"context"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// What one limit of a round holds back.
const (
	keyRate = iota
	keyQuota
	endpointRate // of the key, for single calls
	pathRate     // of all callers, for single calls
	apiRate      // of all callers
	kinds
)

// A round is the limits that one request is counted under, all in one step: a
// call that any of them refuses costs nothing under the others. It is for
// requests under more limits than those that their grant has ready.
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

// drop takes a limit out.
func (r *round) drop(at int) {
	r.n--
	copy(r.kinds[at:], r.kinds[at+1:r.n+1])
	copy(r.limits[at:], r.limits[at+1:r.n+1])
}

// at returns the place of a kind, or -1.
func (r *round) at(kind uint8) int {
	for i := range r.n {
		if r.kinds[i] == kind {
			return i
		}
	}
	return -1
}

// release gives the round back, without holding on to names of counters.
func (r *round) release() {
	clear(r.limits[:])
	r.n = 0
	rounds.Put(r)
}

// gather adds all limits that a request falls under, but for those before from
// in its grant, in the order in which refusals are told.
func (s *stage) gather(r *round, ex *pipeline.Exchange, from int) {
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
			renewByCalendar(r, sp, ex.Moment().UnixMilli())
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

// count counts a request's calls under the limits of a round. Rules on trial that
// refuse are noted and left out; a rate that refuses is waited for where the key
// may wait.
func (s *stage) count(r *round, ex *pipeline.Exchange, calls int) pipeline.Verdict {
	var wait waiting
	defer wait.end(s.Limiter)
	for r.n > 0 {
		refused, err := s.takeAll(r, ex, calls)
		if err != nil {
			return s.fail(ex, err)
		}
		s.note(r, ex)
		switch {
		case refused < 0:
			return pipeline.Next
		case s.spares(r, ex, refused):
			r.drop(refused)
		case !s.isKeyRate(r, refused) || !wait.again(s.Limiter, ex, &r.limits[refused], calls):
			return s.refuse(r, ex, refused)
		default:
			renewByCalendar(r, ex.Grant.Special, time.Now().UnixMilli())
		}
	}
	return pipeline.Next
}

func (s *stage) takeAll(r *round, ex *pipeline.Exchange, calls int) (refused int, err error) {
	limits, counts := r.limits[:r.n], r.counts[:r.n]
	if ex.Dry {
		return s.look(ex, limits, calls, counts)
	}
	return s.counter.Take(context.Background(), limits, calls, counts) // it bounds its own waiting
}

// note keeps what clients and explanations are told of the key's own limits.
func (s *stage) note(r *round, ex *pipeline.Exchange) {
	if at := r.at(keyRate); at >= 0 {
		ex.Counts[ex.Grant.Rate] = r.counts[at]
	}
	if at := r.at(keyQuota); at >= 0 {
		ex.Counts[ex.Grant.Quota] = r.counts[at]
		if sp := ex.Grant.Special; sp != nil && sp.Calendar != nil {
			settleReset(&ex.Counts[ex.Grant.Quota], sp.Calendar.End(ex.Moment().UnixMilli()))
		}
	}
}

// spares notes the refusal of a limit that is on trial, and tells whether it is.
func (s *stage) spares(r *round, ex *pipeline.Exchange, refused int) bool {
	if ex.Grant == nil || ex.Grant.Special == nil {
		return false
	}
	m := &ex.Grant.Special.Measured
	policy, reason := "", pipeline.ReasonRateLimit
	switch r.kinds[refused] {
	case keyRate:
		policy = m.Rate
	case keyQuota:
		policy, reason = m.Quota, pipeline.ReasonQuotaExceeded
	case endpointRate:
		policy = m.Access
	}
	if policy == "" {
		return false
	}
	ex.Spare(reason, policy)
	return true
}

func (s *stage) isKeyRate(r *round, at int) bool {
	return r.kinds[at] == keyRate || r.kinds[at] == endpointRate
}

// refuse ends a request for one limit of a round.
func (s *stage) refuse(r *round, ex *pipeline.Exchange, refused int) pipeline.Verdict {
	why := rateExceeded
	switch r.kinds[refused] {
	case keyQuota:
		return ex.Reject(quotaExceeded)
	case pathRate, apiRate:
		why = apiRateExceeded
	}
	return refuseRate(ex, why, r.counts[refused].ResetAt, r.limits[refused].Period)
}
