package observe

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

func reportedBy(policy string, reasons ...pipeline.Reason) *pipeline.Exchange {
	ex := exchange("GET", "/sample/things", 200)
	for _, r := range reasons {
		ex.ReportOnly.Add(r, policy)
	}
	return ex
}

func TestReportOnlyRefusalsAreCountedAndLogged(t *testing.T) {
	o := New(Options{Log: quiet()})
	m := o.NewMeter("sample")
	m.Done(exchange("GET", "/sample/things", 200))
	for range 3 {
		m.Done(reportedBy("trial", pipeline.ReasonRateLimit))
	}
	m.Done(reportedBy("other", pipeline.ReasonURLDenied, pipeline.ReasonRateLimit, pipeline.ReasonRateLimit))
	expect(t, scrape(t, o),
		`sluice_would_refuse_total{api="sample",policy="trial",reason="rate_limit"} 3`,
		`sluice_would_refuse_total{api="sample",policy="other",reason="rate_limit"} 1`,
		`sluice_would_refuse_total{api="sample",policy="other",reason="url_denied"} 1`,
	)
	got := lineOf(t, reportedBy(`tri"al`, pipeline.ReasonURLDenied, pipeline.ReasonQuotaExceeded), 200)["would"]
	want := []any{
		map[string]any{"reason": "url_denied", "policy": `tri"al`},
		map[string]any{"reason": "quota_exceeded", "policy": `tri"al`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
	if _, there := lineOf(t, exchange("GET", "/a", 200), 200)["would"]; there {
		t.Error("a request without report-only refusals has the member")
	}
}

// A success that is left out of the log by sampling is in it when it is worth
// knowing about.
func TestRequestsWithReportOnlyRefusalsAreAlwaysLogged(t *testing.T) {
	l := newAccessLog(keepOpen{}, AccessOptions{SampleOK: 0}, quiet())
	for _, c := range []struct {
		ex   *pipeline.Exchange
		want bool
	}{{exchange("GET", "/a", 200), false}, {reportedBy("trial", pipeline.ReasonRateLimit), true}} {
		if got := l.wants(&observed{ex: c.ex, status: 200}); got != c.want {
			t.Errorf("%v: wanted %v", c.ex.ReportOnly, got)
		}
	}
}

func TestSeriesOfPoliciesOnTrialAreBounded(t *testing.T) {
	var s reportOnly
	for i := range 2 * maxReportOnly {
		s.count(reportedBy(fmt.Sprint(i), pipeline.ReasonRateLimit))
	}
	if len(s.counts) != maxReportOnly {
		t.Errorf("%d series", len(s.counts))
	}
}

func TestCountingReportOnlyRefusalsDoesNotAllocate(t *testing.T) {
	m := New(Options{Log: quiet()}).NewMeter("sample")
	ex := reportedBy("trial", pipeline.ReasonRateLimit, pipeline.ReasonQuotaExceeded)
	m.Done(ex)
	if n := testing.AllocsPerRun(1000, func() { m.Done(ex) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
