package limit

import (
	"context"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// look finds out what counting calls would come to, and counts nothing. counts
// tells what would be left.
func (l *Limiter) look(ex *pipeline.Exchange, limits []counter.Limit, calls int, counts []counter.Count) (refused int, err error) {
	if err := l.foresee(ex, limits, counts); err != nil {
		return 0, err
	}
	for i := range limits {
		if counts[i].Remaining < int64(calls) {
			return i, nil
		}
	}
	for i := range limits {
		counts[i].Remaining -= int64(calls)
	}
	return -1, nil
}

// foresee tells how limits stand at the moment that an exchange asks about, if
// nothing is counted until then. How they stood in the past is not kept: they
// count as unused.
func (l *Limiter) foresee(ex *pipeline.Exchange, limits []counter.Limit, counts []counter.Count) error {
	if err := l.counter.Peek(context.Background(), limits, counts); err != nil || ex.Due == nil {
		return err
	}
	ahead := ex.Due.Sub(ex.Started)
	for i := range limits {
		renewed := ahead >= limits[i].Period
		if limits[i].Kind == counter.Quota {
			renewed = counts[i].ResetAt != 0 && counts[i].ResetAt <= ex.Due.UnixMilli()
		}
		if isPast(ex) || renewed {
			counts[i] = counter.Count{Remaining: limits[i].Max}
		}
	}
	return nil
}

// isPast tells whether an exchange asks about a moment in the past.
func isPast(ex *pipeline.Exchange) bool { return ex.Due != nil && ex.Due.Before(ex.Started) }

// explainPast says what cannot be told.
func explainPast(ex *pipeline.Exchange, f *pipeline.Finding) {
	if isPast(ex) {
		f.Untold = true
		f.Said = "how much was used then is not kept, so that nothing is taken to be; " + f.Said
	}
}
