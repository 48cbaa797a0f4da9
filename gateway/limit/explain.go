package limit

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/rights"
)

// Explain tells how the key's limits stand, and who set them.
func (s stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	g := ex.Grant
	if g == nil || len(g.Limits()) == 0 {
		f.Said = "neither a rate nor a quota is set"
		return
	}
	from := originsOf(ex)
	for i := range g.Limits() {
		l, c := &g.Limits()[i], ex.Counts[i]
		rule, origin := "rate", from.rate
		if i == int(g.Quota) {
			rule, origin = "quota", from.quota
		}
		used := used(ex, f, i)
		f.Fact(rule, valueOf(l), fmt.Sprintf("%d used%s", used, renewal(l, c, ex.Started)), origin)
		if f.Said != "" {
			f.Said += "; "
		}
		f.Said += fmt.Sprintf("%s %d of %s%s", rule, used, valueOf(l), renewal(l, c, ex.Started))
	}
	if f.Verdict != pipeline.Rejected {
		f.Said += ", would count " + strconv.Itoa(calls(ex))
		return
	}
	switch ex.Rejection.Reason {
	case pipeline.ReasonRateLimit:
		f.Fix = fmt.Sprintf("wait %d s, or raise rate of %s", ex.RetryAfter, from.rate)
	case pipeline.ReasonQuotaExceeded:
		f.Fix = "raise quota_max of " + from.quota + ", or reset the key's quota"
	case pipeline.ReasonCounterUnavailable:
		f.Said, f.Fix = "the counter store does not answer, and quota.on_store_error is closed", "see that the store at valkey.url can be reached"
	}
}

// used is how many calls of a limit were used before this one. What looking has
// found is less this one when the limit has room for it.
func used(ex *pipeline.Exchange, f *pipeline.Finding, at int) int64 {
	n := ex.Grant.Limits()[at].Max - ex.Counts[at].Remaining
	passed := f.Verdict == pipeline.Next || at == int(ex.Grant.Rate) && ex.Rated > 0
	if passed {
		n -= int64(calls(ex))
	}
	return max(n, 0)
}

func valueOf(l *counter.Limit) string {
	if l.Period == 0 {
		return strconv.FormatInt(l.Max, 10)
	}
	return fmt.Sprintf("%d per %s", l.Max, pipeline.Span(l.Period))
}

// renewal tells when a quota renews.
func renewal(l *counter.Limit, c counter.Count, now time.Time) string {
	if l.Kind != counter.Quota || c.ResetAt == 0 {
		return ""
	}
	return ", renews in " + pipeline.Span(max(time.UnixMilli(c.ResetAt).Sub(now), 0).Round(time.Second))
}

type limitOrigins struct{ rate, quota string }

// originsOf returns who set the limits of an exchange's key.
func originsOf(ex *pipeline.Exchange) limitOrigins {
	all, err := rights.Effective(ex.Session, ex.Policies)
	if err != nil {
		return limitOrigins{}
	}
	may, ok := all.For(ex.API.Definition.ID)
	if !ok {
		return limitOrigins{}
	}
	return limitOrigins{may.Rate.From.String(), may.Quota.From.String()}
}
