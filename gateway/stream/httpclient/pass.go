package httpclient

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// Pauses before a message is passed on again.
const (
	refusedFirst  = 10 * time.Millisecond // it was not taken, although there is demand
	refusedAtMost = time.Second
	failedFirst   = time.Second
	failedAtMost  = 30 * time.Second
)

// A passer passes messages on in order. It keeps what is not taken until there is demand, and
// passes on again what could not be given out. It has a goroutine only while it does so.
type passer struct {
	site *stream.Site
	flow stream.Flow

	// free is called when more messages may be fetched. It does not block.
	free func()

	mu      sync.Mutex
	on      bool // there is demand
	stopped bool
	running bool // pump runs
	quiet   chan struct{}
	held    []*stream.Message               // in the order in which they are passed on
	again   map[*stream.Message]*time.Timer // that wait after a failure
	refused int                             // times in a row that the first one was not taken
	timer   *time.Timer                     // of the next time; nil: none
	lost    int                             // since the last line in the log
	logged  time.Time
}

// ready reports whether more messages may be fetched.
func (p *passer) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isReady()
}

func (p *passer) isReady() bool {
	return p.on && !p.stopped && len(p.held) == 0 && len(p.again) < max(1, p.site.MaxInFlight)
}

// demand follows the demand of the flow.
func (p *passer) demand(on bool) {
	p.mu.Lock()
	p.on = on
	if on && len(p.held) > 0 {
		p.pumpIn(0)
	}
	free := p.isReady()
	p.mu.Unlock()
	if free {
		p.free()
	}
}

// pumpIn has pump run after a while, at once for 0. It needs mu.
func (p *passer) pumpIn(wait time.Duration) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer = time.AfterFunc(wait, p.pump)
}

// pass passes a message on, on this goroutine unless another one does so.
func (p *passer) pass(m *stream.Message) {
	p.mu.Lock()
	p.held = append(p.held, m)
	p.mu.Unlock()
	p.pump()
}

func (p *passer) pump() {
	p.mu.Lock()
	if p.running {
		p.mu.Unlock()
		return
	}
	p.running = true
	for p.on && !p.stopped && len(p.held) > 0 {
		m := p.held[0]
		p.mu.Unlock()
		taken := p.flow.Take(m, func(err error) { p.settled(m, err) })
		p.mu.Lock()
		if !taken {
			if !p.stopped {
				p.pumpIn(min(refusedFirst<<min(p.refused, 10), refusedAtMost))
			}
			p.refused++
			break
		}
		p.refused = 0
		p.held = slices.Delete(p.held, 0, 1)
		p.site.State.Messages.Add(1)
		p.site.State.Bytes.Add(uint64(len(m.Body)))
	}
	p.running = false
	if p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
	free := p.isReady()
	p.mu.Unlock()
	if free {
		p.free()
	}
}

// settled is called when a message is settled. The server cannot take it back: one that
// failed is passed on again, unless nothing would come of that.
func (p *passer) settled(m *stream.Message, err error) {
	if err == nil {
		return
	}
	p.site.State.Fail(err)
	class := stream.ClassOf(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if class == stream.Permanent || class == stream.Refused || p.stopped {
		p.logLost(m, err)
		return
	}
	next := &stream.Message{ID: m.ID, Body: m.Body, Meta: m.Meta, Key: m.Key, At: m.At, Attempt: m.Attempt + 1}
	p.again[next] = time.AfterFunc(min(failedFirst<<min(m.Attempt-1, 10), failedAtMost), func() { p.retry(next) })
}

// logLost logs the end of a message, at most once a second. It needs mu.
func (p *passer) logLost(m *stream.Message, err error) {
	p.lost++
	if time.Since(p.logged) < time.Second {
		return
	}
	p.site.Log.Error("messages of a stream are lost", "stream", p.site.Stream, "input", p.site.Label, "messages", p.lost, "last", m.ID, "error", err)
	p.logged, p.lost = time.Now(), 0
}

func (p *passer) retry(m *stream.Message) {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return
	}
	delete(p.again, m)
	p.held = append(p.held, m)
	p.site.State.Again.Add(1)
	p.mu.Unlock()
	p.pump()
}

// stop passes nothing on any more. It returns when nothing is being passed on, or when ctx
// ends.
func (p *passer) stop(ctx context.Context) {
	p.mu.Lock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
	for _, timer := range p.again {
		timer.Stop()
	}
	var quiet chan struct{}
	if p.running {
		quiet = make(chan struct{})
		p.quiet = quiet
	}
	p.mu.Unlock()
	if quiet != nil {
		select {
		case <-quiet:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.held) + len(p.again); n > 0 {
		p.site.Log.Warn("messages of a stream that has stopped are lost", "stream", p.site.Stream, "input", p.site.Label, "messages", n)
	}
}
