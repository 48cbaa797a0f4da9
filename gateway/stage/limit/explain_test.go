package limit

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

// explained handles a dry request and returns what is said of it, facts included.
func explained(s pipeline.Stage, ex *pipeline.Exchange) string {
	ex.DryRun = &pipeline.DryRun{}
	f := &pipeline.Finding{Verdict: s.Handle(ex)}
	s.(pipeline.Explainer).Explain(ex, f)
	var text strings.Builder
	text.WriteString(f.Said)
	for _, fact := range f.Facts {
		text.WriteString("\n" + strings.Join([]string{fact.Rule, fact.Value, fact.Seen, fact.From}, " | "))
	}
	if f.Fix != "" {
		text.WriteString("\n" + f.Fix)
	}
	return text.String()
}

func TestLimitsAreExplainedWithWhoSetThem(t *testing.T) {
	def, version := sharing(t, `"global_rate_limit": {"rate": 3, "per": 10}, `+pathRates)
	clock, err := definition.NewQuotaClock(definition.Calendar{Every: "month", Zone: "Asia/Tokyo"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := limiter(memoryAtStart()).Compile(def, version)
	if err != nil {
		t.Fatal(err)
	}
	grant := grantOf(2, 5)
	grant.Special = &pipeline.Special{Calendar: clock, ReportOnly: pipeline.ReportOnlyPolicies{Rate: "trial"}}
	of := func() *pipeline.Exchange {
		ex := request(grant, "GET", "/items/1")
		ex.Session = &definition.Session{Limits: definition.Limits{Rate: 2, Per: 10, QuotaMax: 5}, AccessRights: map[string]*definition.Access{"sample": {}}}
		return ex
	}
	for range 2 {
		s.Handle(of())
	}
	got := explained(s, of())
	for _, want := range []string{
		"rate | 2 per 10 s | 2 used | the key", "quota | 5 per month of the calendar (Asia/Tokyo) | 2 used, renews in ",
		"extended_paths.rate_limit | 2 per 10 s | 2 used | definition", "global_rate_limit | 3 per 10 s | 2 used | definition",
		"enforcement | measure | would be refused: rate_limit | policy trial", "wait 10 s, or raise global_rate_limit or extended_paths.rate_limit",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	ex := of()
	ex.Path = []byte("/other")
	if got := explained(s, ex); !strings.Contains(got, "would count 1") {
		t.Errorf("one that passes:\n%s", got)
	}
	if got := explained(compiled(t, memoryAtStart()), request(nil, "GET", "/")); got != "neither a rate nor a quota is set" {
		t.Errorf("without limits: %s", got)
	}
}

func TestLimitsOfOrganisationsAreExplained(t *testing.T) {
	o := openOffice(t, true, nil)
	if got := explained(o.stage, now(nil)); got != "organisation acme has no limits of its own" {
		t.Errorf("without a session: %s", got)
	}
	for session, want := range map[string]string{
		`{"quota_max": 1, "quota_renewal_calendar": "day"}`: "quota | 1 per day of the calendar (UTC) | 1 used",
		`{"rate": 1, "per": 60}`:                            "rate | 1 per 60 s | 1 used | organisation acme",
		`{"is_inactive": true}`:                             "is_inactive | true |  | organisation acme\nset is_inactive",
	} {
		o := openOffice(t, true, nil)
		o.store.put(t, session)
		o.call()
		if got := explained(o.stage, now(nil)); !strings.Contains(got, want) {
			t.Errorf("%s: lacks %q:\n%s", session, want, got)
		}
	}
	o.store.away.Store(true)
	o.changed("")
	o.changed("org:acme")
	if got := explained(o.stage, now(nil)); !strings.Contains(got, "cannot be looked up") {
		t.Errorf("away: %s", got)
	}
	broke := limiter(broken{counter.ErrUnavailable})
	if got := explained(stageOf(t, broke), request(grantOf(1, 1), "GET", "/")); !strings.Contains(got, "does not answer") {
		t.Errorf("no counter: %s", got)
	}
}

func TestLimitsAreForetoldForAnotherMoment(t *testing.T) {
	s := compiled(t, memoryAtStart())
	of := func(away time.Duration, dry *pipeline.DryRun) *pipeline.Exchange {
		ex := request(grantOf(2, 5), "GET", "/items/1")
		ex.Session = &definition.Session{Limits: definition.Limits{Rate: 2, Per: 10, QuotaMax: 5}, AccessRights: map[string]*definition.Access{"sample": {}}}
		ex.Started, ex.DryRun = start, dry
		if away != 0 {
			at := start.Add(away)
			ex.DryRun.At = &at
		}
		return ex
	}
	for range 2 {
		if v := s.Handle(of(0, nil)); v != pipeline.Next {
			t.Fatal("the key's own calls are refused")
		}
	}
	for away, want := range map[time.Duration]string{
		0:                "rate 2 of 2 per 10 s; quota 2 of 5 per 60 s",
		time.Second:      "rate 2 of 2 per 10 s; quota 2 of 5 per 60 s",
		11 * time.Second: "rate 0 of 2 per 10 s; quota 2 of 5 per 60 s",
		time.Hour:        "rate 0 of 2 per 10 s; quota 0 of 5 per 60 s",
		-time.Hour:       "how much was used then is not kept, so that nothing is taken to be; rate 0 of 2 per 10 s; quota 0 of 5 per 60 s",
	} {
		ex := of(away, &pipeline.DryRun{})
		f := &pipeline.Finding{Verdict: s.Handle(ex)}
		s.(pipeline.Explainer).Explain(ex, f)
		if !strings.HasPrefix(f.Said, want) || f.Untold != (away < 0) {
			t.Errorf("%s away: %q, untold %v, want %q", away, f.Said, f.Untold, want)
		}
		if refused := f.Verdict == pipeline.Rejected; refused != (away == 0 || away == time.Second) {
			t.Errorf("%s away: refused %v", away, refused)
		}
	}
}
