// Package limit holds calls against the rate and the quota of their key, and
// tells clients in headers how they stand.
package limit

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

var (
	rateExceeded  = pipeline.NewRejection(pipeline.ReasonRateLimit, 429, "Rate Limit Exceeded").Raising(event.RatelimitExceeded)
	quotaExceeded = pipeline.NewRejection(pipeline.ReasonQuotaExceeded, 403, "Quota exceeded").Raising(event.QuotaExceeded)
	uncounted     = pipeline.NewRejection(pipeline.ReasonCounterUnavailable, 503, "Calls cannot be counted at the moment, please try again")
)

// A seated counter is asked again under the same limits for less.
type seated interface {
	TakeSeated(limits []counter.Limit, seats []counter.Seat, calls int, counts []counter.Count) (refused int, err error)
}

// Limiter counts the calls of all APIs.
type Limiter struct {
	counter counter.Counter
	seated  seated // counter, when it is one
	log     *slog.Logger
	lastLog atomic.Int64 // unix seconds of the last line about a counter that errs
}

// New returns a limiter that counts with c.
func New(c counter.Counter, log *slog.Logger) *Limiter {
	l := &Limiter{counter: c, log: log}
	l.seated, _ = c.(seated)
	return l
}

// Compile returns the stage that counts calls of an API, or nil when no call of
// it is ever counted.
func (l *Limiter) Compile(def *definition.API) pipeline.Stage {
	if def.UseKeyless || def.DisableRateLimit && def.QuotaOff() {
		return nil
	}
	return stage{l}
}

type stage struct{ *Limiter }

// Handle takes the request's calls from every limit of the key, or none at all:
// a call that the rate refuses costs no quota, and the other way round. What
// Rate has counted already is not counted again.
func (s stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	g := ex.Grant
	if g == nil || len(g.Limits()) == 0 {
		return pipeline.Next
	}
	from := 0
	if ex.Rated > 0 {
		if v := s.Rate(ex); v != pipeline.Next {
			return v
		}
		from = int(g.Rate) + 1
	}
	v := pipeline.Next
	if from < len(g.Limits()) {
		v = s.take(ex, from, len(g.Limits()), calls(ex))
	}
	ex.Counted = v == pipeline.Next || ex.Rejection != uncounted
	return v
}

// Rate takes the request's calls from the rate of the key alone, for a stage
// that has costly work to do before it can tell whether the quota is to be
// asked. When ex.Calls grows afterwards, the stage, or Rate again, takes the
// difference. A request that something else refuses later stays counted.
func (l *Limiter) Rate(ex *pipeline.Exchange) pipeline.Verdict {
	g := ex.Grant
	if g == nil || g.Rate < 0 {
		return pipeline.Next
	}
	all := calls(ex)
	if all <= int(ex.Rated) {
		return pipeline.Next
	}
	v := l.take(ex, int(g.Rate), int(g.Rate)+1, all-int(ex.Rated))
	if v == pipeline.Next {
		ex.Rated = uint16(all)
	}
	return v
}

// calls is how many calls a request counts as.
func calls(ex *pipeline.Exchange) int { return int(max(ex.Calls, 1)) }

// take counts calls under the limits of the grant from one index up to another.
func (l *Limiter) take(ex *pipeline.Exchange, from, to, calls int) pipeline.Verdict {
	g := ex.Grant
	refused, err := l.ask(ex, from, to, calls)
	if err != nil {
		return l.fail(ex, err)
	}
	if refused < 0 {
		return pipeline.Next
	}
	if refused += from; refused == int(g.Quota) {
		return ex.Reject(quotaExceeded)
	}
	ex.RetryAfter = retryAfter(ex.Counts[refused].ResetAt, ex.Started.UnixMilli(), g.Limits()[refused].Period.Milliseconds())
	return ex.Reject(rateExceeded)
}

func (l *Limiter) ask(ex *pipeline.Exchange, from, to, calls int) (refused int, err error) {
	g, counts := ex.Grant, ex.Counts[from:to]
	if ex.Dry {
		return l.look(g.Limits()[from:to], calls, counts)
	}
	if l.seated != nil {
		return l.seated.TakeSeated(g.Limits()[from:to], g.Seats[from:to], calls, counts)
	}
	return l.counter.Take(context.Background(), g.Limits()[from:to], calls, counts) // it bounds its own waiting
}

// retryAfter returns how many whole seconds there are between two times in unix
// milliseconds: at least one, and not more than the period takes, whatever the
// clock of the counter's store shows.
func retryAfter(reset, now, period int64) int {
	wait := period
	if reset > 0 {
		wait = min(reset-now, period)
	}
	return int(max((wait+999)/1000, 1))
}

// fail refuses a call that could not be counted. That the store is away is said
// elsewhere, once; any other cause is logged here, at most once a second.
func (l *Limiter) fail(ex *pipeline.Exchange, err error) pipeline.Verdict {
	if !errors.Is(err, counter.ErrUnavailable) && !ex.Dry {
		last, now := l.lastLog.Load(), ex.Started.Unix()
		if now != last && l.lastLog.CompareAndSwap(last, now) {
			l.log.Error("calls cannot be counted", "api", ex.API.Definition.ID, "key", ex.KeyName, "err", err)
		}
	}
	ex.RetryAfter = 1
	return ex.Reject(uncounted)
}
