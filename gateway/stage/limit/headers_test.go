package limit

import (
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
		{"none set", &pipeline.Grant{Rate: -1, Quota: -1}, false, counter.Count{}, "0 0 0"},
		{"could not be asked", grantOf(0, 10), false, counter.Count{Remaining: 9, ResetAt: 99}, "10 0 0"},
	} {
		ex := exchange(c.grant)
		ex.Charge.Whole = c.counted
		ex.Charge.Counts[max(c.grant.Quota, 0)] = c.count
		NewHeaders(standard).Answer().Handle(ex)
		v := strings.Fields(c.want)
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
		NewHeaders(standard).Answer().Handle(ex)
		if got := string(ex.Answer.Lines); got != c.kept+ours {
			t.Errorf("%s: got %q, want %q", c.name, got, c.kept+ours)
		}
	}
}

func TestAnswersWithoutAKeyAreLeftAlone(t *testing.T) {
	ex := exchange(nil)
	ex.Answer.Lines = append(ex.Answer.Lines, "X-RateLimit-Limit: 5\r\n"...)
	NewHeaders(standard).Answer().Handle(ex)
	NewHeaders(standard).Refusal().Handle(ex)
	if got := string(ex.Answer.Lines); got != "X-RateLimit-Limit: 5\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyARefusalOfTheQuotaTellsTheQuota(t *testing.T) {
	grant, s := grantOf(3, 2), compiled(t, memoryAtStart())
	h := NewHeaders(standard).Refusal()
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

func TestHeadersMayBeRenamedAndLeftOut(t *testing.T) {
	if NewHeaders(Names{}) != nil {
		t.Error("headers without names")
	}
	ex := exchange(grantOf(0, 10))
	ex.Answer.Lines = append(ex.Answer.Lines, "X-RateLimit-Limit: 5\r\nLeft: 8\r\n"...)
	NewHeaders(Names{Remaining: "Left"}).Answer().Handle(ex)
	if want := "X-RateLimit-Limit: 5\r\nLeft: 0\r\n"; string(ex.Answer.Lines) != want {
		t.Errorf("got %q, want %q", ex.Answer.Lines, want)
	}
}

const upstreamLines = "Date: Sat, 21 Nov 2026 11:00:00 GMT\r\nContent-Type: application/json\r\nServer: origin\r\nCache-Control: no-store\r\nEtag: \"abc\"\r\n"

func TestHeadersDoNotAllocate(t *testing.T) {
	ex, h := exchange(grantOf(0, 10)), NewHeaders(standard).Answer()
	ex.Answer.Lines = make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(1000, func() {
		ex.Answer.Lines = append(ex.Answer.Lines[:0], upstreamLines...)
		h.Handle(ex)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHeaders(b *testing.B) {
	ex, h := exchange(grantOf(0, 10)), NewHeaders(standard).Answer()
	ex.Answer.Lines = make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		ex.Answer.Lines = append(ex.Answer.Lines[:0], upstreamLines...)
		h.Handle(ex)
	}
}
