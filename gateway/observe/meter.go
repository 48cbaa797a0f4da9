package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/gateway/observe/usage"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A meter sees the requests of one API. It is small until the first comes in:
// most of a hundred thousand APIs are rarely called.
type meter struct {
	observer *Observer
	api      string
	part     atomic.Pointer[logPart]
	counts   atomic.Pointer[series]
	calls    atomic.Pointer[rollup.API] // nil before the first call that is counted for the admin
	usage    atomic.Pointer[usage.API]  // nil before the first operation
	spared   atomic.Pointer[spared]     // nil: no policy on trial would have refused anything
}

// Done records a finished exchange. It reads the clock once.
func (m *meter) Done(ex *pipeline.Exchange) {
	o := observed{
		ex: ex, total: max(ex.Call.End().Sub(ex.Started), 0),
		status: ex.Answer.Status, method: methodOf(ex.Call.Method),
	}
	o.own = max(o.total-ex.Upstream.Duration, 0)
	s := m.counts.Load()
	if s == nil {
		s = m.open()
	}
	s.count(&o)
	if m.observer.calls != nil && ex.API != nil {
		m.call(&o)
	}
	m.noteSpared(ex)
	if len(ex.Operations) > 0 {
		m.operations(&o)
	}
	if m.observer.access != nil {
		m.observer.access.add(m, &o)
	}
	if r := ex.Rejection; r != nil && r.Event != "" && m.observer.events != nil && !ex.Relayed() {
		m.observer.events.Raise(m.eventOf(ex))
	}
}

// eventOf makes the event of a refusal. The path is copied only for an API that
// has somebody told of its events: a flood of refusals must cost nothing.
func (m *meter) eventOf(ex *pipeline.Exchange) event.Event {
	e := event.Event{Name: ex.Rejection.Event, At: ex.Started, API: m.api, Key: ex.KeyName, Detail: ex.Rejection.Message}
	if ex.API != nil && ex.API.Definition != nil {
		e.Org = ex.API.Definition.OrgID
		if len(ex.API.Definition.EventHandlers) > 0 {
			e.Path, e.Origin = string(ex.Call.Path), ex.Client
		}
	}
	return e
}

// open makes the series of an API that has its first request.
func (m *meter) open() *series {
	m.counts.CompareAndSwap(nil, newSeries())
	return m.counts.Load()
}

// observed is an exchange with what is known at its end.
type observed struct {
	ex     *pipeline.Exchange
	status int           // 0 when nothing was answered
	method int           // of methodNames
	total  time.Duration // from the request's first byte to its answer
	own    time.Duration // total without the upstream's part
}

// meters holds the meters of all APIs by id.
type meters struct {
	mu   sync.Mutex
	byID map[string]*meter
}

func (ms *meters) meter(api string, make func(string) *meter) *meter {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.byID[api]
	if m == nil {
		m = make(api)
		ms.byID[api] = m
	}
	return m
}

func (ms *meters) drop(ids []string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, id := range ids {
		if id != "" { // those that no API took
			delete(ms.byID, id)
		}
	}
}

// reopen has operations of these APIs counted anew where what was counted has
// been dropped, since the API was none of GraphQL for a while.
func (ms *meters) reopen(graphs map[string]*schema.Schema) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for id := range graphs {
		if m := ms.byID[id]; m != nil {
			if a := m.usage.Load(); a != nil && a.Gone() {
				m.usage.CompareAndSwap(a, nil)
			}
		}
	}
}

// all returns the meters that have seen a request.
func (ms *meters) all() []*meter {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var seen []*meter
	for _, m := range ms.byID {
		if m.counts.Load() != nil {
			seen = append(seen, m)
		}
	}
	return seen
}
