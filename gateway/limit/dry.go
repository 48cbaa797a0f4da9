package limit

import (
	"context"

	"github.com/sluicegate/sluice/internal/counter"
)

// look finds out what counting calls would come to, and counts nothing. counts
// tells what would be left.
func (l *Limiter) look(limits []counter.Limit, calls int, counts []counter.Count) (refused int, err error) {
	if err := l.counter.Peek(context.Background(), limits, counts); err != nil {
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
