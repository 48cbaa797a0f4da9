package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A meter records the requests of one API. It is small before the first request, since
// most of a hundred thousand APIs are rarely called.
type meter struct {
	observer   *Observer
	api        string
	part       atomic.Pointer[logPart]
	counts     atomic.Pointer[series]
	calls      atomic.Pointer[usage.APICalls]      // nil before the first call that is counted for the admin
	operations atomic.Pointer[usage.APIOperations] // nil before the first operation
	reportOnly atomic.Pointer[reportOnly]          // nil: no policy on trial would have refused anything
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
	if m.observer.calls != nil && ex.API != nil && m.api != "" {
		m.call(&o)
	}
	m.countReportOnly(ex)
	if len(ex.Operations) > 0 {
		m.countOperations(&o)
	}
	if m.observer.access != nil {
		m.observer.access.add(m, &o)
	}
	if r := ex.Rejection; r != nil && r.Event != "" && m.observer.events != nil && !ex.RefusedByChild() {
		m.observer.events.Raise(m.eventOf(ex))
	}
}

// eventOf returns the event of a refusal. The path is copied and the credential looked for
// only for an API with event handlers: a flood of refusals must cost nothing.
func (m *meter) eventOf(ex *pipeline.Exchange) event.Event {
	e := event.Event{Name: ex.Rejection.Event, At: ex.Started, API: m.api, Key: ex.KeyName, Detail: ex.Rejection.Message}
	if ex.API != nil && ex.API.Definition != nil {
		e.Org = ex.API.Definition.OrgID
		if ex.API.Definition.EventHandlers != nil {
			e.Path, e.Origin = string(ex.Call.Path), ex.Client
			m.setKey(&e, ex)
		}
	}
	return e
}

// setKey names the key of an event if the call was refused before it was known, and adds
// the key itself if that is wanted.
func (m *meter) setKey(e *event.Event, ex *pipeline.Exchange) {
	credential := ex.Token
	if credential == nil && ex.API.Version != nil {
		for _, s := range ex.API.Version.Request {
			p, ok := s.Stage.(pipeline.Presenter)
			if !ok {
				continue
			}
			var name string
			if credential, name = p.Presented(ex); e.Key == "" {
				e.Key = name
			}
			break
		}
	}
	if m.observer.rawKeys {
		e.RawKey = string(credential)
	}
}

// open creates the series of an API at its first request.
func (m *meter) open() *series {
	m.counts.CompareAndSwap(nil, newSeries())
	return m.counts.Load()
}

// observed is a finished exchange with what is derived from it.
type observed struct {
	ex     *pipeline.Exchange
	status int           // 0 when nothing was answered
	method int           // index of methodNames
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
		if id != "" { // requests that match no API
			delete(ms.byID, id)
		}
	}
}

// reopen starts new counts of operations for those of these APIs whose counts were
// dropped because they were not GraphQL APIs for a while.
func (ms *meters) reopen(graphs map[string]*schema.Schema) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for id := range graphs {
		if m := ms.byID[id]; m != nil {
			if a := m.operations.Load(); a != nil && a.Dropped() {
				m.operations.CompareAndSwap(a, nil)
			}
		}
	}
}

// all returns the meters of APIs that have been called.
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
