package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/explain"
)

// playedResults keeps what comes of a subscription.
type playedResults struct {
	began *explain.Played
	all   []string
	next  chan struct{} // receives with each result
}

func newPlayedResults() *playedResults { return &playedResults{next: make(chan struct{}, 10)} }

func (r *playedResults) Begin(p *explain.Played) { r.began = p }

func (r *playedResults) Next(result []byte) {
	r.all = append(r.all, strings.Join(strings.Fields(string(result)), ""))
	r.next <- struct{}{}
}

func (r *playedResults) Fail(errors []byte) { r.all = append(r.all, "error "+string(errors)) }
func (r *playedResults) Complete()          { r.all = append(r.all, "complete") }

// playLive runs an operation on an API until it ends, as a key if it is named.
func (s *sockets) playLive(ctx context.Context, api, operation, key string, to *playedResults) *explain.Played {
	s.t.Helper()
	caller := ""
	if key != "" {
		caller = fmt.Sprintf(`,"key_hash":%q`, s.Hasher.Hash(key))
	}
	body := fmt.Sprintf(`{"query":%q}`, operation)
	q := describe(s.t, fmt.Sprintf(`{"method":"POST","url":"/%s/","body":%q,"headers":{"Content-Type":"application/json","Accept":"application/json, text/event-stream"}%s}`, api, body, caller))
	return s.PlayLive(ctx, &gateway.Playing{Request: q, API: api, Counted: true, Within: time.Minute}, to)
}

func TestSubscriptionsOfThePlayground(t *testing.T) {
	s := withSockets(t)
	s.key("k", `{"org_id":"o","access_rights":{"ws":{},"old":{},"events":{},"posted":{}}}`)
	want := fmt.Sprint([]string{`{"data":{"count":1}}`, `{"data":{"count":2}}`, `{"data":{"count":3}}`, "complete"})
	for _, api := range []string{"ws", "old", "events", "posted"} {
		to := newPlayedResults()
		got := s.playLive(t.Context(), api, "subscription { count(to: 3) }", "k", to)
		if fmt.Sprint(to.all) != want {
			t.Errorf("%s: %s", api, to.all)
		}
		if b := to.began; b == nil || b != got || !b.Sent || len(b.RequestID) != 32 || b.Report == nil || !b.Report.Outcome.Allowed || len(b.Headers) == 0 {
			t.Errorf("%s: began with %+v", api, b)
		}
	}
}

func TestWhatIsNoSubscriptionIsAnsweredAsAWhole(t *testing.T) {
	s := withSockets(t)
	s.key("k", `{"org_id":"o","access_rights":{"ws":{"restricted_types":[{"name":"Subscription","fields":["secret"]}]}}}`)
	for _, c := range []struct {
		operation, key string
		status         int
		body, reason   string
	}{
		{"{ a }", "k", 200, `{"data":{"a":`, ""},
		{"subscription { secret }", "k", 400, "secret is restricted", "field_restricted"},
		{"subscription { count }", "", 401, "", "auth_missing"},
		{"subscription { none }", "k", 400, "none", "graphql_invalid"},
	} {
		to := newPlayedResults()
		got := s.playLive(t.Context(), "ws", c.operation, c.key, to)
		if got.Status != c.status || !strings.Contains(string(got.Body), c.body) || got.Report.Outcome.Reason != c.reason || to.began != nil || to.all != nil {
			t.Errorf("%s: %d %s, explained as %q, with %v", c.operation, got.Status, got.Body, got.Report.Outcome.Reason, to)
		}
	}
}

func TestASubscriptionOfThePlaygroundIsLeft(t *testing.T) {
	s := withSockets(t)
	s.key("k", `{"org_id":"o","access_rights":{"ws":{},"events":{}}}`)
	for _, api := range []string{"ws", "events"} {
		ctx, leave := context.WithCancel(t.Context())
		to, done := newPlayedResults(), make(chan struct{})
		go func() {
			defer close(done)
			s.playLive(ctx, api, "subscription forever { count }", "k", to)
		}()
		<-to.next
		leave()
		<-done
		<-s.upstream.left
		if len(to.all) != 1 {
			t.Errorf("%s: %s", api, to.all)
		}
	}
}

func TestASubscriptionOfThePlaygroundWhoseUpstreamIsAway(t *testing.T) {
	s := withSockets(t)
	s.key("k", `{"org_id":"o","access_rights":{"ws":{}}}`)
	s.upstream.Close()
	to := newPlayedResults()
	if got := s.playLive(t.Context(), "ws", "subscription { count }", "k", to); got.Status < 500 || to.began != nil {
		t.Errorf("%d %s %v", got.Status, got.Body, to)
	}
}
