package limit

import (
	"context"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// foretell is count for an exchange that is not counted: it returns what counting would return, with what
// would be left, and counts nothing.
func (l *Limiter) foretell(ex *pipeline.Exchange, t taking, calls int) (refused int, err error) {
	if err := l.peek(ex, t.limits, t.counts); err != nil {
		return 0, err
	}
	for i := range t.limits {
		if t.counts[i].Remaining < int64(calls) {
			return i, nil
		}
	}
	for i := range t.limits {
		t.counts[i].Remaining -= int64(calls)
	}
	return -1, nil
}

// peek returns how limits stand at the moment of a dry run, if nothing is counted
// until then. Past counts are not recorded: limits of the past are taken as unused.
func (l *Limiter) peek(ex *pipeline.Exchange, limits []counter.Limit, counts []counter.Count) error {
	at := ex.DryRunAt()
	if at != nil && at.Before(ex.Started) {
		for i := range limits {
			counts[i] = counter.Count{Remaining: limits[i].Max}
		}
		return nil
	}
	if err := l.counter.Peek(context.Background(), limits, counts); err != nil || at == nil {
		return err
	}
	ahead := at.Sub(ex.Started)
	for i := range limits {
		renewed := ahead >= limits[i].Period
		if limits[i].Kind == counter.Quota {
			renewed = counts[i].ResetAt != 0 && counts[i].ResetAt <= at.UnixMilli()
		}
		if renewed {
			counts[i] = counter.Count{Remaining: limits[i].Max}
		}
	}
	return nil
}

// explainPast adds that past counts are not known.
func explainPast(ex *pipeline.Exchange, f *pipeline.Finding) {
	if at := ex.DryRunAt(); at != nil && at.Before(ex.Started) {
		f.Untold = true
		f.Said = "how much was used then is not kept, so that nothing is taken to be; " + f.Said
	}
}
