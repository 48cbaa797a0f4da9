// Package limit counts calls under the rate and the quota of their key, of its
// organisation and of the API, and sends the state of the quota in headers.
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

// A slotted counter keeps the place of each limit in a slot, which saves looking up
// the limit's name.
type slotted interface {
	TakeSlots(limits []counter.Limit, slots []counter.Slot, calls int, counts []counter.Count) (refused int, err error)
}

// Options says how calls are counted.
type Options struct {
	Counter counter.Counter
	Naming  counter.Naming // of the counters of APIs and organisations
	Waiting int            // requests that may wait for their rate at the same time
	Monitor *Monitor       // raises events when quotas reach a threshold; nil: none
	Log     *slog.Logger
}

// Limiter counts the calls of all APIs.
type Limiter struct {
	counter counter.Counter
	slotted slotted // counter, if it is one; else nil
	naming  counter.Naming
	waiting *waitingRoom
	monitor *Monitor
	log     *slog.Logger
	lastLog atomic.Int64 // unix seconds of the last line about an error of the counter
	events  [pipeline.EventOutcomes]atomic.Uint64

	plain, unrated *Stage // of APIs without limits of their own: with and without rates of keys
}

// New returns a limiter. Stop ends the waiting of its requests.
func New(o Options) *Limiter {
	l := &Limiter{counter: o.Counter, naming: o.Naming, waiting: newWaitingRoom(o.Waiting), monitor: o.Monitor, log: o.Log}
	l.slotted, _ = o.Counter.(slotted)
	l.plain, l.unrated = &Stage{Limiter: l, rates: true}, &Stage{Limiter: l}
	return l
}

// Compile returns the stage that counts calls with keys to a version of an API,
// or nil when none of its calls is ever counted. It also counts under the rates that
// all callers of the API share.
func (l *Limiter) Compile(def *definition.API, version *definition.Version) (*Stage, error) {
	if def.UseKeyless || def.DisableRateLimit && def.QuotaOff() {
		return nil, nil
	}
	api, err := l.sharedRates(def, version)
	switch {
	case err != nil:
		return nil, err
	case api != nil:
		return &Stage{Limiter: l, api: api, rates: true}, nil
	case def.DisableRateLimit:
		return l.unrated, nil
	}
	return l.plain, nil
}

// CompileShared returns the stage that counts calls without a key under the rates
// that all callers of a version of an API share. It returns nil when there are none,
// and when callers have keys: the stage of Compile counts those.
func (l *Limiter) CompileShared(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	if !def.UseKeyless {
		return nil, nil
	}
	api, err := l.sharedRates(def, version)
	if api == nil || err != nil {
		return nil, err
	}
	return &Stage{Limiter: l, api: api}, nil
}

// A Stage counts the calls of one API, or of all APIs without limits of their own. It
// implements pipeline.Limits.
type Stage struct {
	*Limiter
	api   *apiLimits // that all callers share; nil: none
	rates bool       // keys have rates
}

// Handle implements pipeline.Stage.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	return s.Charge(ex, pipeline.ChargeAll)
}

// Charge implements pipeline.Limits. A request takes its calls from every limit that
// it falls under, or from none: a call that the rate refuses costs no quota, and the
// other way round.
func (s *Stage) Charge(ex *pipeline.Exchange, part pipeline.ChargePart) pipeline.Verdict {
	if part == pipeline.ChargeRate {
		return s.chargeRate(ex)
	}
	g, counted := ex.Grant, countedByParent(ex)
	from, v := s.remaining(ex, counted)
	switch {
	case v != pipeline.Next:
		return v
	case s.api != nil || g != nil && g.Special != nil:
		return s.chargeRound(ex, from, counted)
	case g == nil || len(g.Limits()) == 0 || counted:
		return pipeline.Next
	}
	if from < len(g.Limits()) {
		v = s.take(ex, from, len(g.Limits()), calls(ex))
	}
	ex.Charge.Whole = v == pipeline.Next || ex.Rejection != uncounted
	if s.monitor != nil && v == pipeline.Next {
		s.watchKey(ex)
	}
	return v
}

// remaining returns the index of the first limit of the grant that has not counted
// the request. When the rate was charged ahead, it charges the calls that were added
// since.
func (l *Limiter) remaining(ex *pipeline.Exchange, counted bool) (from int, v pipeline.Verdict) {
	switch {
	case counted:
		return len(ex.Grant.Limits()), pipeline.Next
	case ex.Charge.Rate == 0:
		return 0, pipeline.Next
	}
	return int(ex.Grant.Rate) + 1, l.chargeRate(ex)
}

// chargeRound charges a request that may fall under more limits than those of its
// grant, or that may pass although one refuses. counted reports that the limits of
// the grant have counted it.
func (s *Stage) chargeRound(ex *pipeline.Exchange, from int, counted bool) pipeline.Verdict {
	r := rounds.Get().(*round)
	defer r.release()
	s.gather(r, ex, from)
	v := s.countRound(r, ex, calls(ex))
	ex.Charge.Whole = counted || v == pipeline.Next || ex.Rejection != uncounted
	if s.monitor != nil && v == pipeline.Next && r.index(keyQuota) >= 0 {
		s.watchKey(ex)
	}
	return v
}

// chargeRate takes the calls of a request from the rate of its key that it has not
// taken yet.
func (l *Limiter) chargeRate(ex *pipeline.Exchange) pipeline.Verdict {
	g := ex.Grant
	if g == nil || g.Rate < 0 {
		return pipeline.Next
	}
	all := calls(ex)
	if all <= int(ex.Charge.Rate) || countedByParent(ex) {
		return pipeline.Next
	}
	v := l.take(ex, int(g.Rate), int(g.Rate)+1, all-int(ex.Charge.Rate))
	if v != pipeline.Next && g.Special != nil && ex.Rejection == rateExceeded {
		v = l.retryRate(ex, all-int(ex.Charge.Rate))
	}
	if v == pipeline.Next {
		ex.Charge.Rate = uint16(all)
	}
	return v
}

// retryRate handles a key with special limits that is over its rate: a report-only
// rate lets it pass, and one with a throttle makes it wait.
func (l *Limiter) retryRate(ex *pipeline.Exchange, calls int) pipeline.Verdict {
	if policy := ex.Grant.Special.ReportOnly.Rate; policy != "" {
		ex.ReportOnly.Add(pipeline.ReasonRateLimit, policy)
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

// calls returns how many calls a request counts as.
func calls(ex *pipeline.Exchange) int { return int(max(ex.Charge.Calls, 1)) }

// take counts calls under the limits of the grant from one index up to another.
func (l *Limiter) take(ex *pipeline.Exchange, from, to, calls int) pipeline.Verdict {
	g := ex.Grant
	refused, err := l.count(ex, taking{g.Limits()[from:to], g.Slots[from:to], ex.Charge.Counts[from:to]}, calls)
	if err != nil {
		return l.fail(ex, err)
	}
	if refused < 0 {
		return pipeline.Next
	}
	if refused += from; refused == int(g.Quota) {
		return ex.Reject(quotaExceeded)
	}
	return refuseRate(ex, rateExceeded, ex.Charge.Counts[refused].ResetAt, g.Limits()[refused].Period)
}

// refuseRate refuses a request for a rate whose next call is free at reset, in unix
// milliseconds.
func refuseRate(ex *pipeline.Exchange, why *pipeline.Rejection, reset int64, period time.Duration) pipeline.Verdict {
	now := ex.Moment()
	if g := ex.Grant; !ex.IsUncounted() && g != nil && g.Special != nil && g.Special.Throttle.Retries > 0 {
		now = time.Now() // it may have waited
	}
	ex.RetryAfter = retryAfter(reset, now.UnixMilli(), period.Milliseconds())
	return ex.Reject(why)
}

// A taking is the limits that calls are counted under, their slots, which may be nil,
// and where the results go.
type taking struct {
	limits []counter.Limit
	slots  []counter.Slot
	counts []counter.Count
}

// count counts calls under all limits or none, and returns the index of the limit
// that refuses them, or -1. A dry run counts nothing, nor does a call of the playground unless it
// asks for it.
func (l *Limiter) count(ex *pipeline.Exchange, t taking, calls int) (refused int, err error) {
	switch {
	case ex.IsUncounted():
		return l.foretell(ex, t, calls)
	case l.slotted != nil && t.slots != nil:
		return l.slotted.TakeSlots(t.limits, t.slots, calls, t.counts)
	}
	return l.counter.Take(context.Background(), t.limits, calls, t.counts) // it has a timeout of its own
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

// fail refuses a call that could not be counted. An outage of the store is logged by
// the store's client; other errors are logged here, at most once a second.
func (l *Limiter) fail(ex *pipeline.Exchange, err error) pipeline.Verdict {
	if !errors.Is(err, counter.ErrUnavailable) && !ex.IsDry() {
		last, now := l.lastLog.Load(), ex.Started.Unix()
		if now != last && l.lastLog.CompareAndSwap(last, now) {
			l.log.Error("calls cannot be counted", "api", ex.API.Definition.ID, "key", ex.KeyName, "err", err)
		}
	}
	ex.RetryAfter = 1
	return ex.Reject(uncounted)
}

// countedByParent reports whether the limits of the key have counted the request in
// an API that called this one: a request is counted once under one limit. It copies
// their counts.
func countedByParent(ex *pipeline.Exchange) bool {
	for parent := ex.Parent; parent != nil; parent = parent.Parent {
		if parent.Charge.Whole && parent.KeyHash == ex.KeyHash && calls(parent) >= calls(ex) && haveSameLimits(parent.Grant, ex.Grant) {
			ex.Charge.Counts, ex.Charge.Whole = parent.Charge.Counts, true
			return true
		}
	}
	return false
}

// haveSameLimits reports whether two grants have the same limits, under the same
// counters.
func haveSameLimits(a, b *pipeline.Grant) bool {
	if a == nil || b == nil || len(a.Limits()) != len(b.Limits()) || a.Rate != b.Rate || a.Quota != b.Quota {
		return false
	}
	for i := range a.Limits() {
		if a.Limits()[i] != b.Limits()[i] {
			return false
		}
	}
	return true
}
