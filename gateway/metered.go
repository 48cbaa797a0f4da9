package gateway

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Bounds of the events of one subscription that wait to be counted, for their rate, or to be
// joined.
const (
	maxEventsWaiting = 1000
	maxEventBytes    = 1 << 20
)

// A metered sink passes on the events of a subscription that the limits of its key admit, in
// a data graph with what other sources have of them. Counting may wait for a store, and
// joining for sources, so a goroutine does it, which there is while events wait.
type metered struct {
	to    live.Sink
	live  func() *pipeline.Live         // of the subscription
	calls func() pipeline.InternalCalls // by which events are joined
	gone  context.Context               // ends when the subscription has been left
	left  context.CancelFunc
	came  atomic.Bool // a result has, since this was last set to false

	mu      sync.Mutex
	waiting []waitingEvent
	bytes   int
	last    func() // what ends the results once nothing waits; nil: they go on
	busy    bool   // the goroutine runs
	over    bool   // nothing more is passed on
}

// A waitingEvent is one of an upstream.
type waitingEvent struct {
	text   []byte
	limits *pipeline.EventLimits // nil: it is not counted
	joins  pipeline.Joiner       // nil: it is the result
}

// Next implements live.Sink.
func (m *metered) Next(result []byte) {
	if !m.came.Load() {
		m.came.Store(true)
	}
	l := m.live()
	if l.Limits == nil && l.Joins == nil {
		m.to.Next(result)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch full := len(m.waiting) >= maxEventsWaiting || m.bytes+len(result) > maxEventBytes; {
	case m.over || m.last != nil:
		return
	case full && l.Limits != nil:
		l.Limits.Count(pipeline.EventDropped)
		return
	case full:
		m.waiting, m.bytes = nil, 0
		m.last = func() { m.to.Fail(failure(slowJoins)) }
	default:
		m.waiting = append(m.waiting, waitingEvent{bytes.Clone(result), l.Limits, l.Joins})
		m.bytes += len(result)
	}
	if !m.busy {
		m.busy = true
		go m.pass()
	}
}

const slowJoins = "The events come faster than data sources have the values of their fields."

// Fail implements live.Sink.
func (m *metered) Fail(errors []byte) {
	errors = bytes.Clone(errors)
	joins := m.live().Joins
	m.end(func() {
		if joins != nil {
			errors = joins.Errors(errors)
		}
		m.to.Fail(errors)
	})
}

// Complete implements live.Sink.
func (m *metered) Complete() { m.end(m.to.Complete) }

// end ends the results behind those that wait.
func (m *metered) end(last func()) {
	m.mu.Lock()
	if m.busy {
		if m.last == nil {
			m.last = last
		}
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	last()
}

// pass passes on what waits until nothing does.
func (m *metered) pass() {
	for {
		event, last := m.next()
		switch {
		case event.text == nil && last != nil:
			last()
			return
		case event.text == nil:
			return
		case event.limits != nil && !m.admit(event.limits):
		case event.joins != nil:
			m.to.Next(event.joins.Result(m.gone, m.calls(), http.StatusOK, event.text))
		default:
			m.to.Next(event.text)
		}
	}
}

// next returns the event whose turn it is or, if none waits, what ends the results. Events of
// a subscription that has been left are not counted.
func (m *metered) next() (event waitingEvent, last func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone.Err() != nil {
		m.over = true
	}
	if len(m.waiting) == 0 || m.over {
		m.waiting, m.busy = nil, false
		if m.over {
			return waitingEvent{}, nil
		}
		return waitingEvent{}, m.last
	}
	event = m.waiting[0]
	m.waiting = m.waiting[1:]
	m.bytes -= len(event.text)
	return event, nil
}

// admit reports whether an event is passed on. It may wait for the rate, and end the
// subscription.
func (m *metered) admit(l *pipeline.EventLimits) bool {
	for delayed := false; ; delayed = true {
		over := l.Take()
		switch {
		case over == nil:
			return true
		case l.AtLimit == "delay" && !over.Quota:
			if !delayed {
				l.Count(pipeline.EventDelayed)
			}
			if !m.wait(over.After) {
				return false
			}
		case l.AtLimit == "drop":
			l.Count(pipeline.EventDropped)
			return false
		default:
			l.Count(pipeline.EventEnded)
			m.refuse(over)
			return false
		}
	}
}

// wait returns after some time, or false once the subscription has been left.
func (m *metered) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-m.gone.Done():
		return false // next notices it as well
	case <-timer.C:
		return true
	}
}

// refuse ends the subscription because of a limit.
func (m *metered) refuse(over *pipeline.EventOver) {
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	text := append([]byte(`[{"message":"`), over.Message...)
	text = append(text, `","extensions":{"retry_after":`...)
	text = strconv.AppendInt(text, int64((over.After+time.Second-1)/time.Second), 10)
	m.to.Fail(append(text, `}}]`...))
}
