package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// recheckPlayed is how often the rights of an open subscription are looked at again.
const recheckPlayed = 3 * time.Second

// playLive runs a subscription, and ends it once its caller may not run it any more.
func (p *player) playLive(ctx context.Context, call *admin.PlayedCall, q *explain.Request) (*admin.PlayedAnswer, error) {
	through, err := p.through(ctx, call.API)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	done := make(chan playedOutcome, 1)
	go func() {
		var o playedOutcome
		defer func() {
			o.fault = recover()
			done <- o
		}()
		o.played = through.PlayLive(ctx, &gateway.Playing{Request: q, API: call.API, Counted: call.Counted, Within: readPlayed}, playedSink{call.Live})
	}()
	look := time.NewTicker(recheckPlayed)
	defer look.Stop()
	for {
		select {
		case o := <-done:
			return o.answer()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-look.C:
			if why := p.barred(ctx, call); why != "" {
				return nil, admin.PlayedEnd("The subscription is not allowed any more: " + why + ".")
			}
		}
	}
}

// playedSink takes results for the admin. It implements gateway.PlayedSink.
type playedSink struct{ admin.PlayedSink }

// Begin implements gateway.PlayedSink.
func (s playedSink) Begin(began *explain.Played) {
	answer, err := playedAnswer(began)
	if err != nil {
		panic(err) // the caller recovers
	}
	s.PlayedSink.Begin(answer)
}

// passing are reasons of refusals that do not end a subscription: its start was counted,
// and what is away comes back.
var passing = []pipeline.Reason{
	pipeline.ReasonRateLimit, pipeline.ReasonQuotaExceeded, pipeline.ReasonCounterUnavailable, pipeline.ReasonKeyStoreUnavailable, pipeline.ReasonOverloaded,
	pipeline.ReasonAPIRateLimit, pipeline.ReasonOrgQuota, pipeline.ReasonOrgRateLimit, pipeline.ReasonBreakerOpen, pipeline.ReasonTunnelLimit, pipeline.ReasonAuthThrottled,
}

// barred returns the reason for which the call would be refused now; "" for none.
func (p *player) barred(ctx context.Context, call *admin.PlayedCall) string {
	q, err := explain.Parse(call.Description)
	if err != nil {
		return ""
	}
	report, err := p.report(ctx, call.Org, q)
	switch {
	case err != nil: // the next look decides
		return ""
	case report.API == nil || report.API.ID != call.API:
		return pipeline.ReasonRouteNotFound.String()
	case report.Outcome.Allowed || slices.ContainsFunc(passing, func(r pipeline.Reason) bool { return r.String() == report.Outcome.Reason }):
		return ""
	}
	return report.Outcome.Reason
}

// playedOutcome is how a call ended.
type playedOutcome struct {
	played *explain.Played
	fault  any
}

func (o *playedOutcome) answer() (*admin.PlayedAnswer, error) {
	if o.fault != nil {
		return nil, fmt.Errorf("calling the API: %v", o.fault)
	}
	return playedAnswer(o.played)
}
