package limit

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// Explain implements pipeline.Explainer: it reports the limits that a call falls
// under, how much of them is used, and what set them.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	r := new(round)
	s.gather(r, ex, 0)
	if r.n == 0 {
		f.Said = "neither a rate nor a quota is set"
		return
	}
	limits, counts := r.limits[:r.n], r.counts[:r.n]
	if err := s.peek(ex, limits, counts); err != nil {
		f.Said, f.Fix = "the counter store does not answer", "see that the store at valkey.url can be reached"
		return
	}
	from := originsOf(ex)
	for i := range limits {
		how := standing{limit: &limits[i], count: counts[i], now: ex.Moment()}
		if r.kinds[i] == keyQuota && ex.Grant.Special != nil {
			how.calendar = ex.Grant.Special.Calendar
		}
		explainLimit(f, ruleNames[r.kinds[i]], from.origin(r.kinds[i]), how)
	}
	explainReportOnly(ex, f)
	explainPast(ex, f)
	switch {
	case f.Verdict == pipeline.Rejected:
	case countedByParent(ex):
		f.Said += "; the limits of the key have counted the request in the API before"
		return
	default:
		f.Said += ", would count " + strconv.Itoa(calls(ex))
		return
	}
	switch ex.Rejection.Reason {
	case pipeline.ReasonRateLimit:
		explainThrottle(ex, f)
		f.Fix = fmt.Sprintf("wait %d s, or raise rate of %s", ex.RetryAfter, from.rate)
	case pipeline.ReasonAPIRateLimit:
		f.Fix = fmt.Sprintf("wait %d s, or raise global_rate_limit or extended_paths.rate_limit of the definition", ex.RetryAfter)
	case pipeline.ReasonQuotaExceeded:
		f.Fix = "raise quota_max of " + from.quota + ", or reset the key's quota"
	case pipeline.ReasonCounterUnavailable:
		f.Said, f.Fix = "the counter store does not answer, and quota.on_store_error is closed", "see that the store at valkey.url can be reached"
	}
}

var ruleNames = [kinds]string{
	keyRate: "rate", keyQuota: "quota", endpointRate: "endpoints", pathRate: "extended_paths.rate_limit", apiRate: "global_rate_limit",
}

// A standing is a limit and its count.
type standing struct {
	limit    *counter.Limit
	count    counter.Count
	now      time.Time
	calendar *definition.QuotaClock // of a quota that renews by it, else nil
}

func (s standing) used() int64 { return max(s.limit.Max-s.count.Remaining, 0) }

func explainLimit(f *pipeline.Finding, rule, origin string, s standing) {
	value, renews := s.value(), renewsIn(s)
	f.Fact(rule, value, fmt.Sprintf("%d used%s", s.used(), renews), origin)
	if f.Said != "" {
		f.Said += "; "
	}
	f.Said += fmt.Sprintf("%s %d of %s%s", rule, s.used(), value, renews)
}

// explainReportOnly adds the report-only refusals.
func explainReportOnly(ex *pipeline.Exchange, f *pipeline.Finding) {
	for _, r := range ex.ReportOnly {
		if r.Reason == pipeline.ReasonRateLimit || r.Reason == pipeline.ReasonQuotaExceeded {
			f.Fact("enforcement", "measure", "would be refused: "+r.Reason.String(), "policy "+r.Policy)
		}
	}
}

// explainThrottle adds that a real call would wait before it is refused.
func explainThrottle(ex *pipeline.Exchange, f *pipeline.Finding) {
	if ex.Grant == nil || ex.Grant.Special == nil {
		return
	}
	t := ex.Grant.Special.Throttle
	if t.Retries <= 0 || t.Interval <= 0 {
		return
	}
	f.Fact("throttle_retry_limit", strconv.Itoa(t.Retries), "", "")
	f.Fact("throttle_interval", pipeline.Span(t.Interval), "", "")
	f.Said += fmt.Sprintf("; before that it would try again up to %d times, every %s", t.Retries, pipeline.Span(t.Interval))
}

func (s standing) value() string {
	switch {
	case s.calendar != nil:
		return fmt.Sprintf("%d per %s of the calendar (%s)", s.limit.Max, s.calendar.Unit(), s.calendar.Zone())
	case s.limit.Period == 0:
		return strconv.FormatInt(s.limit.Max, 10)
	}
	return fmt.Sprintf("%d per %s", s.limit.Max, pipeline.Span(s.limit.Period))
}

// renewsIn returns when a quota renews, as text.
func renewsIn(s standing) string {
	if s.limit.Kind != counter.Quota || s.count.ResetAt == 0 {
		return ""
	}
	return ", renews in " + pipeline.Span(max(time.UnixMilli(s.count.ResetAt).Sub(s.now), 0).Round(time.Second))
}

type limitOrigins struct{ rate, quota string }

// origin returns what set a limit of a kind.
func (o limitOrigins) origin(kind uint8) string {
	switch kind {
	case keyRate:
		return o.rate
	case keyQuota:
		return o.quota
	case endpointRate:
		return "the access rights of the key"
	}
	return "definition"
}

// originsOf returns what set the limits of the key.
func originsOf(ex *pipeline.Exchange) limitOrigins {
	if ex.Session == nil {
		return limitOrigins{}
	}
	all, err := rights.Effective(ex.Session, ex.Policies)
	if err != nil {
		return limitOrigins{}
	}
	may, ok := all.For(ex.API.Definition.ID)
	if !ok {
		may = all.Unlisted(ex.API.Definition.ID)
	}
	return limitOrigins{may.Rate.From.String(), may.Quota.From.String()}
}

// Explain implements pipeline.Explainer.
func (s *orgStage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	state, known := s.find(s.org, ex.Started)
	origin := "organisation " + s.org.id
	switch {
	case !known:
		f.Said, f.Fix = "the session of the organisation cannot be looked up", "see that the store of keys can be reached"
		return
	case state.session == nil:
		f.Said = "organisation " + s.org.id + " has no limits of its own"
		return
	case state.session.IsInactive:
		f.Said, f.Fix = "organisation "+s.org.id+" is switched off", "set is_inactive of the organisation's session to false"
		f.Fact("is_inactive", "true", "", origin)
		return
	}
	limits := state.limits[:state.n]
	counts := make([]counter.Count, state.n)
	if err := s.peek(ex, limits, counts); err != nil {
		f.Said, f.Fix = "the counter store does not answer", "see that the store at valkey.url can be reached"
		return
	}
	for i := range limits {
		rule, how := "rate", standing{limit: &limits[i], count: counts[i], now: ex.Moment()}
		if i == state.quota {
			rule, how.calendar = "quota", state.calendar
		}
		explainLimit(f, rule, origin, how)
	}
	explainPast(ex, f)
	if f.Verdict == pipeline.Rejected {
		f.Fix = "raise the limits of organisation " + s.org.id + " (PUT /svc/org/keys/" + s.org.id + "), or reset its quota"
	}
}
