package limit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

var standard = Names{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset"}

func TestHeadersTellHowTheQuotaStands(t *testing.T) {
	reset := start.Add(time.Minute)
	for _, c := range []struct {
		name    string
		grant   *pipeline.Grant
		counted bool
		count   counter.Count
		want    string
	}{
		{"quota", grantOf(5, 10), true, counter.Count{Remaining: 7, ResetAt: reset.UnixMilli()}, "10 7 1700000061"},
		{"quota that never renews", grantOf(0, 10), true, counter.Count{Remaining: 7}, "10 7 0"},
		{"unlimited", &pipeline.Grant{Rate: -1, Quota: -1, Unlimited: true}, false, counter.Count{}, "-1 0 0"},
		{"unlimited beside a rate", &pipeline.Grant{Rate: 0, Quota: -1, Unlimited: true}, true, counter.Count{Remaining: 3, ResetAt: 99}, "-1 0 0"},
		{"none set", &pipeline.Grant{Rate: -1, Quota: -1}, false, counter.Count{}, ""},
		{"a rate alone", grantOf(5, 0), true, counter.Count{Remaining: 4, ResetAt: reset.UnixMilli()}, "5 4 1700000061"},
		{"a rate alone that was not counted", grantOf(5, 0), false, counter.Count{}, ""},
		{"could not be asked", grantOf(0, 10), false, counter.Count{Remaining: 9, ResetAt: 99}, "10 0 0"},
	} {
		ex := exchange(c.grant)
		ex.Charge.Whole = c.counted
		ex.Charge.Counts[max(c.grant.Quota, 0)] = c.count
		NewHeaders(standard, false).Answer().Handle(ex)
		v := strings.Fields(c.want)
		if len(v) == 0 {
			if len(ex.Answer.Lines) > 0 {
				t.Errorf("%s: got %q, want nothing", c.name, ex.Answer.Lines)
			}
			continue
		}
		want := "X-RateLimit-Limit: " + v[0] + "\r\nX-RateLimit-Remaining: " + v[1] + "\r\nX-RateLimit-Reset: " + v[2] + "\r\n"
		if got := string(ex.Answer.Lines); got != want {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
}

func TestHeadersReplaceThoseOfTheUpstream(t *testing.T) {
	const ours = "X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 0\r\n"
	for _, c := range []struct{ name, upstream, kept string }{
		{"none", "", ""},
		{"others", "Content-Type: text/plain\r\nX-Ratelimit: 5\r\n", "Content-Type: text/plain\r\nX-Ratelimit: 5\r\n"},
		{"any case", "x-ratelimit-limit: 5\r\nA: b\r\nX-RATELIMIT-RESET:9\r\n", "A: b\r\n"},
		{"several times", "X-RateLimit-Limit: 1\r\nX-RateLimit-Limit: 2\r\nA: b\r\nX-Ratelimit-Remaining: \r\n", "A: b\r\n"},
		{"a longer name", "X-RateLimit-Limit-Too: 1\r\n", "X-RateLimit-Limit-Too: 1\r\n"},
		{"a value that looks like a name", "A: X-RateLimit-Limit: 1\r\n", "A: X-RateLimit-Limit: 1\r\n"},
		{"no last line break", "X-RateLimit-Limit: 1", ""},
	} {
		ex := exchange(grantOf(0, 10))
		ex.Answer.Lines = append(ex.Answer.Lines, c.upstream...)
		NewHeaders(standard, false).Answer().Handle(ex)
		if got := string(ex.Answer.Lines); got != c.kept+ours {
			t.Errorf("%s: got %q, want %q", c.name, got, c.kept+ours)
		}
	}
}

func TestAnswersWithoutAKeyAreLeftAlone(t *testing.T) {
	ex := exchange(nil)
	ex.Answer.Lines = append(ex.Answer.Lines, "X-RateLimit-Limit: 5\r\n"...)
	NewHeaders(standard, false).Answer().Handle(ex)
	NewHeaders(standard, false).Refusal().Handle(ex)
	if got := string(ex.Answer.Lines); got != "X-RateLimit-Limit: 5\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyARefusalOfTheQuotaTellsTheQuota(t *testing.T) {
	grant, s := grantOf(3, 2), compiled(t, memoryAtStart())
	h := NewHeaders(standard, false).Refusal()
	for range 2 {
		s.Handle(exchange(grant))
	}
	ex := exchange(grant)
	if s.Handle(ex) != pipeline.Rejected {
		t.Fatal("admitted beyond the quota")
	}
	h.Handle(ex)
	if want := "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1700000061\r\n"; string(ex.Answer.Lines) != want {
		t.Errorf("got %q, want %q", ex.Answer.Lines, want)
	}
	for _, r := range []*pipeline.Rejection{rateExceeded, uncounted} {
		other := exchange(grant)
		other.Reject(r)
		h.Handle(other)
		if len(other.Answer.Lines) > 0 {
			t.Errorf("%s: got %q", r.Reason, other.Answer.Lines)
		}
	}
}

// TestHeadersAboutTheRate: with rate_limits they are about the rate alone, on every
// answer after it was counted (behaviour E.3).
func TestHeadersAboutTheRate(t *testing.T) {
	const line = "X-RateLimit-Limit: %d\r\nX-RateLimit-Remaining: %d\r\nX-RateLimit-Reset: %d\r\n"
	grant, s, h := grantOf(2, 10), compiled(t, memoryAtStart()), NewHeaders(standard, true)
	for left := 1; left >= 0; left-- {
		ex := exchange(grant)
		if s.Handle(ex) != pipeline.Next {
			t.Fatal("refused within the rate")
		}
		h.Answer().Handle(ex)
		if got, want := string(ex.Answer.Lines), fmt.Sprintf(line, 2, left, (ex.Charge.Counts[0].ResetAt+999)/1000); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	ex := exchange(grant)
	if s.Handle(ex) != pipeline.Rejected {
		t.Fatal("admitted beyond the rate")
	}
	h.Refusal().Handle(ex)
	if got := string(ex.Answer.Lines); !strings.HasPrefix(got, "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\n") {
		t.Errorf("refused by the rate: %q", got)
	}
	late := exchange(grant) // refused after it was counted, such as by the upstream's absence
	late.Charge.Whole, late.Rejection = true, uncounted
	if h.Refusal().Handle(late); len(late.Answer.Lines) == 0 {
		t.Error("refused after the rate: nothing")
	}
	for name, early := range map[string]*pipeline.Exchange{"not counted": exchange(grant), "without a rate": exchange(grantOf(0, 10)), "without a key": exchange(nil)} {
		early.Charge.Whole = name == "without a rate"
		h.Answer().Handle(early)
		if h.Refusal().Handle(early); len(early.Answer.Lines) > 0 {
			t.Errorf("%s: %q", name, early.Answer.Lines)
		}
	}
}

func TestHeadersMayBeRenamedAndLeftOut(t *testing.T) {
	if NewHeaders(Names{}, false) != nil {
		t.Error("headers without names")
	}
	ex := exchange(grantOf(0, 10))
	ex.Answer.Lines = append(ex.Answer.Lines, "X-RateLimit-Limit: 5\r\nLeft: 8\r\n"...)
	NewHeaders(Names{Remaining: "Left"}, false).Answer().Handle(ex)
	if want := "X-RateLimit-Limit: 5\r\nLeft: 0\r\n"; string(ex.Answer.Lines) != want {
		t.Errorf("got %q, want %q", ex.Answer.Lines, want)
	}
}

const upstreamLines = "Date: Sat, 21 Nov 2026 11:00:00 GMT\r\nContent-Type: application/json\r\nServer: origin\r\nCache-Control: no-store\r\nEtag: \"abc\"\r\n"

func TestHeadersDoNotAllocate(t *testing.T) {
	ex, h := exchange(grantOf(0, 10)), NewHeaders(standard, false).Answer()
	ex.Answer.Lines = make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(1000, func() {
		ex.Answer.Lines = append(ex.Answer.Lines[:0], upstreamLines...)
		h.Handle(ex)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHeaders(b *testing.B) {
	ex, h := exchange(grantOf(0, 10)), NewHeaders(standard, false).Answer()
	ex.Answer.Lines = make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		ex.Answer.Lines = append(ex.Answer.Lines[:0], upstreamLines...)
		h.Handle(ex)
	}
}
