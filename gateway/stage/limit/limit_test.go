package limit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// start is when every call of these tests comes in.
var start = time.Unix(1_700_000_000, 250_000_000)

func exchange(grant *pipeline.Grant) *pipeline.Exchange {
	ex := pipeline.For(&wire.Call{Started: start})
	ex.API = &pipeline.API{Definition: &definition.API{ID: "sample"}}
	ex.Grant = grant
	return ex
}

func grantOf(rate, quota int64) *pipeline.Grant {
	g := pipeline.NewGrant()
	g.Unlimited = quota < 0
	if rate > 0 {
		g.Rate = g.AddLimit(counter.Limit{Key: "rate-k", Kind: counter.Rate, Max: rate, Period: 10 * time.Second})
	}
	if quota > 0 {
		g.Quota = g.AddLimit(counter.Limit{Key: "quota-k", Kind: counter.Quota, Max: quota, Period: time.Minute})
	}
	return g
}

func memoryAtStart() *counter.Memory { return counter.NewMemory(func() time.Time { return start }) }

func limiter(c counter.Counter) *Limiter { return New(Options{Counter: c, Waiting: 10, Log: quiet()}) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func compiled(t testing.TB, c counter.Counter) pipeline.Stage {
	t.Helper()
	return stageOf(t, limiter(c))
}

func stageOf(t testing.TB, l *Limiter) pipeline.Stage {
	t.Helper()
	s, err := l.Compile(&definition.API{}, nil)
	if s == nil || err != nil {
		t.Fatalf("an API with keys has no limits: %v", err)
	}
	return s
}

func TestStageIsLeftOutWhereNothingIsCounted(t *testing.T) {
	for _, c := range []struct {
		name string
		def  definition.API
		want bool
	}{
		{"with keys", definition.API{}, true},
		{"keyless", definition.API{UseKeyless: true}, false},
		{"rate off", definition.API{DisableRateLimit: true}, true},
		{"quota off", definition.API{DisableQuota: true}, true},
		{"both off", definition.API{DisableRateLimit: true, DisableQuota: true}, false},
		{"rate off, quota skipped", definition.API{DisableRateLimit: true, SkipQuota: true}, false},
	} {
		if s, err := limiter(memoryAtStart()).Compile(&c.def, nil); (s != nil) != c.want || err != nil {
			t.Errorf("%s: there is a stage: %v, want %v (%v)", c.name, s != nil, c.want, err)
		}
	}
}

func TestCallsBeyondALimitAreRefused(t *testing.T) {
	for _, c := range []struct {
		name     string
		grant    *pipeline.Grant
		admitted int
		status   int
		message  string
		reason   string
		event    event.Name
		retry    int
	}{
		{"rate", grantOf(3, 0), 3, 429, "Rate Limit Exceeded", "rate_limit", event.RatelimitExceeded, 10},
		{"quota", grantOf(0, 4), 4, 403, "Quota exceeded", "quota_exceeded", event.QuotaExceeded, 0},
		{"rate before quota", grantOf(2, 4), 2, 429, "Rate Limit Exceeded", "rate_limit", event.RatelimitExceeded, 10},
		{"quota below rate", grantOf(9, 4), 4, 403, "Quota exceeded", "quota_exceeded", event.QuotaExceeded, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := compiled(t, memoryAtStart())
			for i := range c.admitted {
				if v := s.Handle(exchange(c.grant)); v != pipeline.Next {
					t.Fatalf("call %d: verdict %d", i+1, v)
				}
			}
			ex := exchange(c.grant)
			if v := s.Handle(ex); v != pipeline.Rejected {
				t.Fatalf("call beyond: verdict %d", v)
			}
			r := ex.Rejection
			if r.Status != c.status || r.Message != c.message || r.Reason.String() != c.reason || r.Event != c.event {
				t.Errorf("refused with %d %q %s %s", r.Status, r.Message, r.Reason, r.Event)
			}
			if ex.RetryAfter != c.retry {
				t.Errorf("Retry-After %d, want %d", ex.RetryAfter, c.retry)
			}
		})
	}
}

func TestACallRefusedByTheRateCostsNoQuota(t *testing.T) {
	grant, memory := grantOf(2, 10), memoryAtStart()
	s := compiled(t, memory)
	for range 50 {
		s.Handle(exchange(grant))
	}
	var left [2]counter.Count
	if err := memory.Peek(t.Context(), grant.Limits(), left[:]); err != nil {
		t.Fatal(err)
	}
	if left[grant.Quota].Remaining != 8 {
		t.Errorf("%d of the quota are left, want 8", left[grant.Quota].Remaining)
	}
}

// free is what the limits of a grant have left.
func free(t *testing.T, c counter.Counter, g *pipeline.Grant) (rate, quota int64) {
	t.Helper()
	var left [pipeline.MaxLimits]counter.Count
	if err := c.Peek(t.Context(), g.Limits(), left[:]); err != nil {
		t.Fatal(err)
	}
	rate, quota = -1, -1
	if g.Rate >= 0 {
		rate = left[g.Rate].Remaining
	}
	if g.Quota >= 0 {
		quota = left[g.Quota].Remaining
	}
	return rate, quota
}

// A step is a way through the limiter that a request can take.
type step struct {
	rate    uint16 // calls known when Rate is asked; 0: it is not asked
	calls   uint16 // calls known when the stage is asked
	reason  string // of the refusal, "" for none
	left    [2]int64
	counted bool // afterwards, and so in the headers
}

func TestTheRateMayBeCountedBeforeTheQuota(t *testing.T) {
	for _, c := range []struct {
		name  string
		grant *pipeline.Grant
		steps []step
	}{
		{"one call each, as in one take", grantOf(2, 5), []step{
			{1, 1, "", [2]int64{1, 4}, true}, {0, 0, "", [2]int64{0, 3}, true}, {1, 1, "rate_limit", [2]int64{0, 3}, false},
		}},
		{"batches, all or nothing", grantOf(10, 20), []step{
			{4, 4, "", [2]int64{6, 16}, true},
			{7, 7, "rate_limit", [2]int64{6, 16}, false},
			{0, 7, "rate_limit", [2]int64{6, 16}, true},
			{0, 6, "", [2]int64{0, 10}, true},
		}},
		{"calls found after the rate was asked", grantOf(10, 20), []step{
			{1, 4, "", [2]int64{6, 16}, true}, {3, 1, "", [2]int64{3, 15}, true}, {1, 9, "rate_limit", [2]int64{2, 15}, false},
		}},
		{"quota below rate", grantOf(10, 5), []step{
			{3, 3, "", [2]int64{7, 2}, true},
			{3, 3, "quota_exceeded", [2]int64{4, 2}, true},
			{0, 3, "quota_exceeded", [2]int64{4, 2}, true},
			{2, 2, "", [2]int64{2, 0}, true},
		}},
		{"rate alone", grantOf(3, 0), []step{{2, 2, "", [2]int64{1, -1}, true}, {2, 2, "rate_limit", [2]int64{1, -1}, false}}},
		{"quota alone", grantOf(0, 3), []step{{2, 2, "", [2]int64{-1, 1}, true}, {2, 2, "quota_exceeded", [2]int64{-1, 1}, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			memory := memoryAtStart()
			l := limiter(memory)
			s := stageOf(t, l)
			for i, step := range c.steps {
				ex, v := exchange(c.grant), pipeline.Next
				if step.rate > 0 {
					ex.Charge.Calls = step.rate
					v = l.chargeRate(ex)
				}
				if ex.Charge.Calls = step.calls; v == pipeline.Next {
					v = s.Handle(ex)
				}
				if reason := reasonOf(ex); reason != step.reason || (v == pipeline.Rejected) != (reason != "") {
					t.Fatalf("step %d: verdict %d for %q, want %q", i, v, reason, step.reason)
				}
				if rate, quota := free(t, memory, c.grant); [2]int64{rate, quota} != step.left {
					t.Fatalf("step %d: %d and %d are left, want %v", i, rate, quota, step.left)
				}
				if ex.Charge.Whole != step.counted || step.counted && c.grant.Quota >= 0 && ex.Charge.Counts[c.grant.Quota].Remaining != step.left[1] {
					t.Errorf("step %d: counted %v as %v, want %v", i, ex.Charge.Whole, ex.Charge.Counts, step.counted)
				}
				if (ex.RetryAfter == 10) != (step.reason == "rate_limit") {
					t.Errorf("step %d: Retry-After %d", i, ex.RetryAfter)
				}
			}
		})
	}
}

func reasonOf(ex *pipeline.Exchange) string {
	if ex.Rejection == nil {
		return ""
	}
	return ex.Rejection.Reason.String()
}

func TestAnOutageBetweenTheTwoTakesRefuses(t *testing.T) {
	ex := exchange(grantOf(5, 5))
	if v := limiter(memoryAtStart()).chargeRate(ex); v != pipeline.Next || ex.Charge.Rate != 1 || ex.Charge.Counts[ex.Grant.Rate].Remaining != 4 {
		t.Fatalf("verdict %d, rated %d, counts %v", v, ex.Charge.Rate, ex.Charge.Counts)
	}
	away := limiter(broken{counter.ErrUnavailable})
	if v := stageOf(t, away).Handle(ex); v != pipeline.Rejected || ex.Rejection.Status != 503 || ex.Charge.Whole {
		t.Errorf("verdict %d, counted %v", v, ex.Charge.Whole)
	}
	first := exchange(grantOf(5, 5))
	if v := away.chargeRate(first); v != pipeline.Rejected || first.Rejection.Status != 503 || first.Charge.Rate != 0 {
		t.Errorf("verdict %d, rated %d", v, first.Charge.Rate)
	}
}

func TestCallsWithoutLimitsPass(t *testing.T) {
	l := limiter(broken{errors.New("asked")})
	s := stageOf(t, l)
	for name, grant := range map[string]*pipeline.Grant{"no key": nil, "no limit": grantOf(0, 0)} {
		ex := exchange(grant)
		ex.Charge.Calls = 5
		if v := l.chargeRate(ex); v != pipeline.Next || ex.Charge.Rate != 0 {
			t.Errorf("%s: verdict of the rate %d, rated %d", name, v, ex.Charge.Rate)
		}
		if v := s.Handle(ex); v != pipeline.Next || ex.Charge.Whole {
			t.Errorf("%s: verdict %d, counted %v", name, v, ex.Charge.Whole)
		}
	}
}

// broken is a counter that errs.
type broken struct{ err error }

func (b broken) Take(context.Context, []counter.Limit, int, []counter.Count) (int, error) {
	return 0, b.err
}
func (b broken) Peek(context.Context, []counter.Limit, []counter.Count) error { return b.err }
func (b broken) Reset(context.Context, ...string) error                       { return b.err }

func TestCallsThatCannotBeCountedAreRefusedAsAnOutage(t *testing.T) {
	for _, c := range []struct {
		err   error
		lines int
	}{
		{fmt.Errorf("%w: dial: refused", counter.ErrUnavailable), 0}, // said once where the outage is seen
		{counter.ErrNotCounter, 1},
	} {
		var log bytes.Buffer
		s, _ := New(Options{Counter: broken{c.err}, Log: slog.New(slog.NewTextHandler(&log, nil))}).Compile(&definition.API{}, nil)
		for range 20 {
			ex := exchange(grantOf(5, 5))
			ex.KeyName = "0123456789ab"
			if v := s.Handle(ex); v != pipeline.Rejected {
				t.Fatalf("%v: verdict %d", c.err, v)
			}
			if r := ex.Rejection; r.Status != 503 || r.Reason != pipeline.ReasonCounterUnavailable || ex.RetryAfter != 1 || ex.Charge.Whole {
				t.Fatalf("%v: refused with %d %s, Retry-After %d, counted %v", c.err, r.Status, r.Reason, ex.RetryAfter, ex.Charge.Whole)
			}
		}
		if got := strings.Count(log.String(), "\n"); got != c.lines {
			t.Errorf("%v: %d log lines, want %d:\n%s", c.err, got, c.lines, log.String())
		}
		if strings.Contains(log.String(), "quota-k") || c.lines > 0 && !strings.Contains(log.String(), "0123456789ab") {
			t.Errorf("%v: logged\n%s", c.err, log.String())
		}
	}
}

func TestRetryAfterIsWholeSecondsWithinThePeriod(t *testing.T) {
	for _, c := range []struct {
		reset, now, period int64
		want               int
	}{
		{10_000, 9_999, 60_000, 1},
		{10_000, 9_000, 60_000, 1},
		{10_000, 8_999, 60_000, 2},
		{10_000, 10_000, 60_000, 1},
		{10_000, 12_000, 60_000, 1},   // already over
		{900_000, 10_000, 60_000, 60}, // the store's clock is ahead
		{0, 10_000, 30_000, 30},       // nothing is ever freed: a rate of none
		{10_000, 9_900, 500, 1},
	} {
		if got := retryAfter(c.reset, c.now, c.period); got != c.want {
			t.Errorf("reset %d, now %d, period %d: %d, want %d", c.reset, c.now, c.period, got, c.want)
		}
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	l := limiter(memoryAtStart())
	s := stageOf(t, l)
	for name, grant := range map[string]*pipeline.Grant{"admitted": grantOf(1<<30, 1<<40), "refused": grantOf(1, 1<<40)} {
		ex := exchange(grant)
		if n := testing.AllocsPerRun(1000, func() { s.Handle(ex) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if n := testing.AllocsPerRun(1000, func() {
			ex.Charge.Rate, ex.Charge.Calls = 0, 3
			if l.chargeRate(ex) == pipeline.Next {
				s.Handle(ex)
			}
		}); n != 0 {
			t.Errorf("%s, the rate first: %v allocations", name, n)
		}
	}
}

func BenchmarkLimit(b *testing.B) {
	for _, c := range []struct {
		name  string
		grant *pipeline.Grant
	}{{"rate and quota", grantOf(1<<30, 1<<40)}, {"quota", grantOf(0, 1<<40)}, {"refused", grantOf(1, 5)}} {
		b.Run(c.name, func(b *testing.B) {
			s, ex := compiled(b, memoryAtStart()), exchange(c.grant)
			b.ReportAllocs()
			for b.Loop() {
				s.Handle(ex)
			}
		})
	}
}
