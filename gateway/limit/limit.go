// Package limit holds calls against the rate and the quota of their key, and
// tells clients in headers how they stand.
package limit

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

var (
	rateExceeded    = pipeline.NewRejection(pipeline.ReasonRateLimit, 429, "Rate Limit Exceeded").Raising(event.RatelimitExceeded)
	apiRateExceeded = pipeline.NewRejection(pipeline.ReasonAPIRateLimit, 429, "API Rate Limit Exceeded").Raising(event.RatelimitExceeded)
	quotaExceeded   = pipeline.NewRejection(pipeline.ReasonQuotaExceeded, 403, "Quota exceeded").Raising(event.QuotaExceeded)
	uncounted       = pipeline.NewRejection(pipeline.ReasonCounterUnavailable, 503, "Calls cannot be counted at the moment, please try again")
)

// A seated counter is asked again under the same limits for less.
type seated interface {
	TakeSeated(limits []counter.Limit, seats []counter.Seat, calls int, counts []counter.Count) (refused int, err error)
}

// Options says how calls are counted.
type Options struct {
	Counter counter.Counter
	Naming  counter.Naming // of the counters of APIs and organisations
	Waiting int            // requests that may wait for their rate at the same time
	Monitor *Monitor       // nil: nobody is told how much of a quota is used
	Log     *slog.Logger
}

// Limiter counts the calls of all APIs.
type Limiter struct {
	counter counter.Counter
	seated  seated // counter, when it is one
	naming  counter.Naming
	waiting *room
	monitor *Monitor
	log     *slog.Logger
	lastLog atomic.Int64 // unix seconds of the last line about a counter that errs

	plain, unrated *stage // of APIs that say nothing of their own; without rates
}

// New returns a limiter. Stop ends what waits in it.
func New(o Options) *Limiter {
	l := &Limiter{counter: o.Counter, naming: o.Naming, waiting: newRoom(o.Waiting), monitor: o.Monitor, log: o.Log}
	l.seated, _ = o.Counter.(seated)
	l.plain, l.unrated = &stage{Limiter: l, rates: true}, &stage{Limiter: l}
	return l
}

// Compile returns the stage that counts calls with keys to a version of an API,
// or nil when no call of it is ever counted. It also counts under the rates that
// all callers of the API share.
func (l *Limiter) Compile(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	if def.UseKeyless || def.DisableRateLimit && def.QuotaOff() {
		return nil, nil
	}
	api, err := l.sharedRates(def, version)
	switch {
	case err != nil:
		return nil, err
	case api != nil:
		return &stage{Limiter: l, api: api, rates: true}, nil
	case def.DisableRateLimit:
		return l.unrated, nil
	}
	return l.plain, nil
}

// CompileShared returns the stage that counts calls without a key under the rates
// that all callers of a version of an API share, or nil when there are none, or
// when callers have keys: then the stage for those does it.
func (l *Limiter) CompileShared(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	if !def.UseKeyless {
		return nil, nil
	}
	api, err := l.sharedRates(def, version)
	if api == nil || err != nil {
		return nil, err
	}
	return &stage{Limiter: l, api: api}, nil
}

// stage counts the calls of one API, or of all that say nothing of their own.
type stage struct {
	*Limiter
	api   *apiLimits // that all callers share; nil: none
	rates bool       // keys have rates
}

// Handle takes the request's calls from every limit that it falls under, or from
// none at all: a call that the rate refuses costs no quota, and the other way
// round. What Rate has counted already is not counted again.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	g := ex.Grant
	known := ex.Front != nil && countedBefore(ex)
	if s.api != nil || g != nil && g.Special != nil {
		return s.handleAll(ex, known)
	}
	if g == nil || len(g.Limits()) == 0 || known {
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
	if s.monitor != nil && v == pipeline.Next {
		s.watchKey(ex)
	}
	return v
}

// handleAll is Handle for a request that may fall under more limits than those
// that its grant has ready, or where more may follow from one that refuses. known
// tells that those which the grant has ready have counted it.
func (s *stage) handleAll(ex *pipeline.Exchange, known bool) pipeline.Verdict {
	from := 0
	if known {
		from = len(ex.Grant.Limits())
	} else if ex.Rated > 0 {
		if v := s.Rate(ex); v != pipeline.Next {
			return v
		}
		from = int(ex.Grant.Rate) + 1
	}
	r := rounds.Get().(*round)
	defer r.release()
	s.gather(r, ex, from)
	v := s.count(r, ex, calls(ex))
	ex.Counted = known || v == pipeline.Next || ex.Rejection != uncounted
	if s.monitor != nil && v == pipeline.Next && r.at(keyQuota) >= 0 {
		s.watchKey(ex)
	}
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
	if all <= int(ex.Rated) || ex.Front != nil && countedBefore(ex) {
		return pipeline.Next
	}
	v := l.take(ex, int(g.Rate), int(g.Rate)+1, all-int(ex.Rated))
	if v != pipeline.Next && g.Special != nil && ex.Rejection == rateExceeded {
		v = l.insist(ex, all-int(ex.Rated))
	}
	if v == pipeline.Next {
		ex.Rated = uint16(all)
	}
	return v
}

// insist is what follows when a key with more than plain limits is over its rate:
// one on trial is noted and passed, and one that may wait is waited for.
func (l *Limiter) insist(ex *pipeline.Exchange, calls int) pipeline.Verdict {
	if policy := ex.Grant.Special.Measured.Rate; policy != "" {
		ex.Spare(pipeline.ReasonRateLimit, policy)
		ex.Rejection, ex.RetryAfter = nil, 0
		return pipeline.Next
	}
	var wait waiting
	defer wait.end(l)
	for v := pipeline.Rejected; ; {
		if v != pipeline.Rejected || ex.Rejection != rateExceeded || !wait.again(l, ex, &ex.Grant.Limits()[ex.Grant.Rate], calls) {
			return v
		}
		ex.Rejection, ex.RetryAfter = nil, 0
		v = l.take(ex, int(ex.Grant.Rate), int(ex.Grant.Rate)+1, calls)
	}
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
	return refuseRate(ex, rateExceeded, ex.Counts[refused].ResetAt, g.Limits()[refused].Period)
}

// refuseRate ends a request for a rate whose next call is freed at reset, in unix
// milliseconds.
func refuseRate(ex *pipeline.Exchange, why *pipeline.Rejection, reset int64, period time.Duration) pipeline.Verdict {
	now := ex.Moment()
	if g := ex.Grant; !ex.Dry && g != nil && g.Special != nil && g.Special.Throttle.Retries > 0 {
		now = time.Now() // it may have waited
	}
	ex.RetryAfter = retryAfter(reset, now.UnixMilli(), period.Milliseconds())
	return ex.Reject(why)
}

func (l *Limiter) ask(ex *pipeline.Exchange, from, to, calls int) (refused int, err error) {
	g, counts := ex.Grant, ex.Counts[from:to]
	if ex.Dry {
		return l.look(ex, g.Limits()[from:to], calls, counts)
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
