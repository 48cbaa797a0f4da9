// Package portalhook is the output portal_webhook of event streams: it posts messages to the
// portal, signed with the secret of the output. The portal sends them on to the webhooks of
// developers.
package portalhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/httpcall"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

// Bounds of posting.
const (
	maxPosting = 16   // messages at once
	maxQueued  = 4096 // messages that are taken without demand
	postWithin = 15 * time.Second
)

// An Output posts messages. Without messages it has no goroutine.
type Output struct {
	config *streams.PortalWebhook
	site   *stream.Site
	plan   *httpcall.Plan
	data   *mapping.Template // nil: the message
	key    []byte
	demand *stream.Demand
	ctx    context.Context // ends when Close does not wait any more
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	queue   []letter
	posting int  // goroutines, each with a message
	shown   bool // the level of demand that was wanted last
}

// A letter is a message that waits for an answer of the portal.
type letter struct {
	m      *stream.Message
	settle stream.Settle
}

// NewOutput returns an output of a stream. Its error is about the configuration.
func NewOutput(config *streams.PortalWebhook, site *stream.Site) (stream.Output, error) {
	plan, err := httpcall.New(&streams.HTTPRequest{
		URL: streams.Template(strings.ReplaceAll(config.PortalURL, "${", "$${")), Verb: http.MethodPost, Timeout: postWithin,
	}, site)
	if err != nil {
		return nil, fmt.Errorf("portal_url: %w", err)
	}
	o := &Output{config: config, site: site, plan: plan, key: webhooksign.Key(string(config.Secret)), demand: stream.NewDemand(true), shown: true}
	if config.Data != "" {
		if o.data, err = mapping.CompileTemplate(string(config.Data)); err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	site.State.Enter(stream.Running)
	return o, nil
}

// Demand implements stream.Output.
func (o *Output) Demand() *stream.Demand { return o.demand }

// Write implements stream.Output.
func (o *Output) Write(m *stream.Message, settle stream.Settle) {
	var err error
	o.change(func() {
		switch {
		case o.closed:
			err = stream.ErrClosed
		case len(o.queue) >= maxQueued:
			err = stream.Failf(stream.Transient, "%d messages wait for the portal already", maxQueued)
		case o.posting == maxPosting:
			o.queue = append(o.queue, letter{m, settle})
		default:
			o.posting++
			o.done.Go(func() { o.work(letter{m, settle}) })
		}
	})
	if err != nil {
		settle(err)
	}
}

// work posts a message, and then others that wait.
func (o *Output) work(next letter) {
	for more := true; more; {
		err := o.post(next.m)
		if err == nil {
			o.site.State.Messages.Add(1)
			o.site.State.Bytes.Add(uint64(len(next.m.Body)))
		}
		settle := next.settle
		o.change(func() {
			if more = len(o.queue) > 0; !more {
				o.posting--
				return
			}
			next, o.queue[0] = o.queue[0], letter{}
			if o.queue = o.queue[1:]; len(o.queue) == 0 {
				o.queue = nil
			}
		})
		settle(err)
	}
}

// change changes the state and sets the demand by it. Watchers are called without mu; the
// last to come sets what is wanted last.
func (o *Output) change(do func()) {
	o.mu.Lock()
	do()
	on := !o.closed && o.posting+len(o.queue) < min(maxPosting, o.site.MaxInFlight)
	changed := on != o.shown
	o.shown = on
	o.mu.Unlock()
	for changed {
		o.demand.Set(on)
		o.mu.Lock()
		changed, on = o.shown != on, o.shown
		o.mu.Unlock()
	}
}

// Close implements stream.Output. Messages that are being posted are waited for until ctx
// ends.
func (o *Output) Close(ctx context.Context) {
	var left []letter
	o.change(func() {
		o.closed = true
		left, o.queue = o.queue, nil
	})
	for _, one := range left {
		one.settle(stream.ErrClosed)
	}
	stop := context.AfterFunc(ctx, o.cancel)
	o.done.Wait()
	stop()
	o.cancel()
	o.plan.Close()
	o.site.State.Enter(stream.Stopped)
}
