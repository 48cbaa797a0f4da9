package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/internal/definition"
)

// player makes calls of the playground through the gateway that explains for the admin:
// the one in this process, or one that serves nothing and has the configuration, the keys
// and the counters of the others. The caller of a call is named within the process, so
// that no credential is needed that could be stolen.
type player struct {
	*adminExplainer
	busy chan struct{} // holds an element for each call that is under way
}

// maxPlaying bounds the calls under way. One whose answer was waited for too long goes on
// until the time limits of upstreams end it.
const maxPlaying = 16

func newPlayer(e *adminExplainer) *player {
	return &player{e, make(chan struct{}, maxPlaying)}
}

// readPlayed is how long an answer is read that arrives in parts.
const readPlayed = 8 * time.Second

// Play implements admin.Player.
func (p *player) Play(ctx context.Context, call *admin.PlayedCall) (*admin.PlayedAnswer, error) {
	q, err := explain.Parse(call.Description)
	if err != nil {
		return nil, err
	}
	if call.Live != nil {
		return p.playLive(ctx, call, q)
	}
	through, err := p.through(ctx, call.API)
	if err != nil {
		return nil, err
	}
	select {
	case p.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan playedOutcome, 1)
	go func() {
		var o playedOutcome
		defer func() {
			o.fault = recover()
			<-p.busy
			done <- o
		}()
		o.played = through.Play(&gateway.Playing{Request: q, API: call.API, Counted: call.Counted, Within: readPlayed})
	}()
	select {
	case o := <-done:
		return o.answer()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// streamsElsewhere refuses calls of APIs whose streams do not run in this process.
var streamsElsewhere = &definition.Problems{{Message: "The streams of this API run in gateways of other processes; call one of these"}}

// sender sends calls to APIs.
type sender interface {
	Play(*gateway.Playing) *explain.Played
	PlayLive(context.Context, *gateway.Playing, gateway.PlayedSink) *explain.Played
}

// through returns what sends calls to an API.
func (p *player) through(ctx context.Context, api string) (sender, error) {
	if p.serves {
		if s := p.gateway.Current(); s != nil && s.API(api) != nil {
			return p.gateway, nil
		}
	}
	tag, rendered := p.current()
	if rendered == nil {
		return nil, fmt.Errorf("there is no configuration yet: %w", store.ErrNotFound)
	}
	aside, err := p.aside(ctx, tag, func() (*definition.Bundle, error) { return definition.ParseBundle(rendered) })
	if err != nil {
		return nil, err
	}
	if def := aside.API(api); def != nil && def.HasStreams() {
		return nil, streamsElsewhere
	}
	return aside, nil
}

func playedAnswer(got *explain.Played) (*admin.PlayedAnswer, error) {
	report, err := json.Marshal(got.Report)
	answer := &admin.PlayedAnswer{
		Sent: got.Sent, Status: got.Status, Body: got.Body, Cut: got.Cut, RequestID: got.RequestID, Took: got.Took, Upstream: got.Upstream, Report: report,
	}
	for _, h := range got.Headers {
		answer.Headers = append(answer.Headers, admin.PlayedHeader(h))
	}
	return answer, err
}
