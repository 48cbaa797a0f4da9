package limit

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/event"
)

// Events receives events. Raise does not block.
type Events interface{ Raise(e event.Event) }

// Monitor raises an event when a quota is used up to a threshold. What a call leaves
// of the quota is unique over all gateways, so that exactly one call of a period
// reaches a threshold, and no state is needed.
type Monitor struct {
	Events Events
	Global float64 // threshold of all quotas in percent; 0: none
	Keys   bool    // watch quotas of keys
	Orgs   bool    // watch quotas of organisations

	RawKeys bool // events hold keys as clients sent them
}

// A use is the state of a quota after calls were counted.
type use struct {
	max   int64
	left  int64
	calls int64 // that were just counted
}

// reaches reports whether the calls brought the use of the quota from below a
// percentage to it.
func (u use) reaches(percent float64) bool {
	used := u.max - u.left
	line := percent * float64(u.max)
	return percent > 0 && float64(used)*100 >= line && float64(used-u.calls)*100 < line
}

// percent returns how much is used, in whole percent.
func (u use) percent() int { return int(float64(u.max-u.left) * 100 / float64(u.max)) }

// watch raises an event for each threshold that a use reaches. facts is the event
// without name, trigger and detail.
func (m *Monitor) watch(u use, own []float64, facts *event.Event) {
	if m.Global > 0 && u.reaches(m.Global) {
		m.raise(u, m.Global, facts)
	}
	for _, percent := range own {
		if percent != m.Global && u.reaches(percent) {
			m.raise(u, percent, facts)
		}
	}
}

func (m *Monitor) raise(u use, percent float64, facts *event.Event) {
	e := *facts
	e.Name, e.Trigger = event.TriggerExceeded, event.Trigger{Limit: int(percent), Usage: u.percent()}
	e.Detail = fmt.Sprintf("%v %% of the quota is reached: %d %% is used", percent, e.Trigger.Usage) // once in a period
	m.Events.Raise(e)
}

// watchKey raises events for thresholds of the key's quota that a request reaches.
func (l *Limiter) watchKey(ex *pipeline.Exchange) {
	g := ex.Grant
	if !l.monitor.Keys || ex.IsUncounted() || g == nil || g.Quota < 0 {
		return
	}
	var own []float64
	if sp := g.Special; sp != nil {
		own = sp.Triggers
	}
	if l.monitor.Global <= 0 && len(own) == 0 {
		return
	}
	u := useOf(&g.Limits()[g.Quota], &ex.Charge.Counts[g.Quota], calls(ex))
	facts := event.Event{At: ex.Started, API: ex.API.Definition.ID, Key: ex.KeyName, Org: ex.Session.OrgID}
	if l.monitor.RawKeys {
		facts.RawKey = string(ex.Token)
	}
	l.monitor.watch(u, own, &facts)
}

func useOf(limit *counter.Limit, count *counter.Count, calls int) use {
	return use{max: limit.Max, left: count.Remaining, calls: int64(calls)}
}
