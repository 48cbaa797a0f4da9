package limit

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Events implements pipeline.EventMeter. Events count under the rate and the quota of the
// key, like calls, except where those are on trial only.
func (s *Stage) Events(ex *pipeline.Exchange, atLimit string) *pipeline.EventLimits {
	g := ex.Grant
	if g == nil || ex.IsUncounted() {
		return nil
	}
	e := &events{limiter: s.Limiter}
	if sp := g.Special; sp != nil {
		e.special = pipeline.Special{Calendar: sp.Calendar, ReportOnly: sp.ReportOnly}
	}
	for i, l := range g.Limits() { // the grant may be used for another key afterwards
		switch {
		case i == int(g.Quota) && e.special.ReportOnly.Quota == "":
			e.limits.add(keyQuota, &l)
		case i == int(g.Rate) && e.special.ReportOnly.Rate == "":
			e.limits.add(keyRate, &l)
		}
	}
	if e.limits.n == 0 {
		return nil
	}
	return &pipeline.EventLimits{AtLimit: atLimit, Take: e.take, Count: func(o pipeline.EventOutcome) { s.events[o].Add(1) }}
}

// events are the limits of the events of one subscription.
type events struct {
	limiter *Limiter
	special pipeline.Special
	limits  round
}

// take counts an event. It is not called by several goroutines at the same time.
func (e *events) take() *pipeline.EventOver {
	r, now := &e.limits, time.Now().UnixMilli()
	setCalendarPeriod(r, &e.special, now)
	refused, err := e.limiter.counter.Take(context.Background(), r.limits[:r.n], 1, r.counts[:r.n]) // it has a timeout of its own
	switch {
	case err != nil:
		return &pipeline.EventOver{Message: "Events cannot be counted at the moment", After: time.Second}
	case refused < 0:
		return nil
	}
	l := &r.limits[refused]
	over := &pipeline.EventOver{Message: "Rate Limit Exceeded", Quota: r.kinds[refused] == keyQuota}
	if over.Quota {
		over.Message = "Quota exceeded"
	}
	if l.Period > 0 {
		over.After = time.Duration(retryAfter(r.counts[refused].ResetAt, now, l.Period.Milliseconds())) * time.Second
		if at := r.counts[refused].ResetAt; at > 0 && !over.Quota {
			over.After = min(max(time.Duration(at-now)*time.Millisecond, time.Millisecond), l.Period)
		}
	}
	return over
}
