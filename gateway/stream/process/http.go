package process

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/httpcall"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/sleep"
)

// longestPause bounds the time between two attempts: the message holds a goroutine.
const longestPause = time.Minute

// httpWork is the http processor: the body of the response becomes the message.
type httpWork struct {
	plan    *httpcall.Plan
	retries int
	ctx     context.Context
	next    node
}

func (p *compiler) http(path string, of *streams.HTTPRequest, next node) work {
	plan, err := httpcall.New(of, p.chain.site)
	if err != nil {
		p.problem(path, err)
	}
	p.chain.close = append(p.chain.close, plan.Close)
	return &httpWork{plan, of.Retries, p.chain.ctx, next}
}

func (w *httpWork) run(it *item) (node, error) {
	call, err := w.plan.Prepare(it.document, func() ([]byte, error) { return it.document().Bytes() })
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		answer, failure := call.Ask(w.ctx)
		if failure == nil {
			doc := it.document().Copy()
			doc.SetBody(answer.Body)
			for _, one := range httpcall.Meta(answer.Status, answer.Header) {
				doc.SetMeta(one.Name, one.Value)
			}
			it.doc = doc
			return w.next, nil
		}
		again := failure.Class != stream.Permanent && attempt < w.retries
		if !again || sleep.For(w.ctx, min(w.plan.Pause(attempt, failure.After), longestPause)) != nil {
			return nil, refusal(failure)
		}
	}
}

// refusal classes a failure for a processor: no output has got anything of the message.
func refusal(f *stream.Failure) *stream.Failure {
	class := stream.Transient
	if f.Class == stream.Permanent {
		class = stream.Refused
	}
	return &stream.Failure{Class: class, After: f.After, Err: f.Err}
}
