package gateway

import (
	"bytes"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Bounds of the events of one subscription that wait to be counted or for their rate.
const (
	maxEventsWaiting = 1000
	maxEventBytes    = 1 << 20
)

// A metered sink passes on the events of a subscription that the limits of its key admit.
// Counting may wait for a store, so a goroutine does it, which there is while events wait.
type metered struct {
	to     live.Sink
	limits func() *pipeline.EventLimits // of the subscription; nil: its events are not counted
	gone   chan struct{}                // closed when the subscription has been left
	came   atomic.Bool                  // a result has, since this was last set to false

	mu      sync.Mutex
	leave   sync.Once
	waiting [][]byte
	bytes   int
	last    func() // what ends the results once nothing waits; nil: they go on
	busy    bool   // the goroutine runs
	over    bool   // nothing more is passed on
}

// Next implements live.Sink.
func (m *metered) Next(result []byte) {
	if !m.came.Load() {
		m.came.Store(true)
	}
	l := m.limits()
	if l == nil {
		m.to.Next(result)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.over || m.last != nil:
	case len(m.waiting) >= maxEventsWaiting || m.bytes+len(result) > maxEventBytes:
		l.Count(pipeline.EventDropped)
	default:
		m.waiting = append(m.waiting, bytes.Clone(result))
		m.bytes += len(result)
		if !m.busy {
			m.busy = true
			go m.pass(l)
		}
	}
}

// Fail implements live.Sink.
func (m *metered) Fail(errors []byte) {
	errors = bytes.Clone(errors)
	m.end(func() { m.to.Fail(errors) })
}

// Complete implements live.Sink.
func (m *metered) Complete() { m.end(m.to.Complete) }

// end ends the results behind those that wait.
func (m *metered) end(last func()) {
	m.mu.Lock()
	if m.busy {
		m.last = last
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	last()
}

// left ends the waiting of events.
func (m *metered) left() { m.leave.Do(func() { close(m.gone) }) }

// pass passes on what waits until nothing does.
func (m *metered) pass(l *pipeline.EventLimits) {
	for {
		event, last := m.next()
		switch {
		case event == nil && last != nil:
			last()
			return
		case event == nil:
			return
		case m.admit(l):
			m.to.Next(event)
		}
	}
}

// next returns the event whose turn it is or, if none waits, what ends the results. Events of
// a subscription that has been left are not counted.
func (m *metered) next() (event []byte, last func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.gone:
		m.over = true
	default:
	}
	if len(m.waiting) == 0 || m.over {
		m.waiting, m.busy = nil, false
		if m.over {
			return nil, nil
		}
		return nil, m.last
	}
	event = m.waiting[0]
	m.waiting = m.waiting[1:]
	m.bytes -= len(event)
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
	case <-m.gone:
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
