package usage

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// ErrBusy says that another admin does the same work at the moment.
var ErrBusy = errors.New("another admin is at it")

// settled is how long after its end an hour is summed up: by then most of its
// calls are here, and what comes later has it summed up again.
const settled = 2 * time.Minute

// Sum sums up the first hour whose minutes have changed, and tells whether there
// was one. The hour that is not over yet is left out. The error is ErrBusy while
// another admin sums up.
func Sum(ctx context.Context, st *store.Store, now time.Time) (more bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		over := now.Add(-settled).Truncate(time.Hour)
		hour, err := tx.NextMarkedHour(ctx, over)
		if err = store.Translate(err); errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		more = true
		return sum(ctx, tx, hour)
	})
	return more, err
}

// lock makes the transaction the only one of its kind.
func lock(ctx context.Context, tx *store.Tx) error {
	locked, err := tx.LockUsage(ctx)
	switch {
	case err != nil:
		return err
	case !locked:
		return ErrBusy
	}
	return tx.PaceUsage(ctx)
}

// sum writes an hour. The marks go first: what the sums do not see by then has
// marks of its own.
func sum(ctx context.Context, tx *store.Tx, hour time.Time) error {
	if err := tx.UnmarkUsage(ctx, hour); err != nil {
		return err
	}
	floor, err := tx.UsageFloor(ctx)
	if err != nil {
		return err
	}
	until := hour.Add(time.Hour)
	if hour.Before(floor) { // the other minutes of the hour are gone
		if err := tx.MoveUsage(ctx, db.MoveUsageParams{Hour: hour, Until: until}); err != nil {
			return err
		}
		return tx.MoveLatencies(ctx, db.MoveLatenciesParams{Hour: hour, Until: until})
	}
	if err := tx.SumUsage(ctx, db.SumUsageParams{Hour: hour, Until: until}); err != nil {
		return err
	}
	return tx.SumLatencies(ctx, db.SumLatenciesParams{Hour: hour, Until: until})
}

// Retention says how long usage is kept, at least.
type Retention struct {
	Minutes time.Duration // whole days are dropped
	Hours   time.Duration // whole months are dropped
}

// Keep makes the partitions of the days and months to come, and drops what is
// older than the retention. It returns false when minutes are left that hours
// have yet to sum up. The error is ErrBusy while another admin is at it.
func Keep(ctx context.Context, st *store.Store, now time.Time, r Retention) (done bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		done, err = tx.KeepUsage(ctx, db.KeepUsageParams{At: now, MinuteSeconds: r.Minutes.Seconds(), HourSeconds: r.Hours.Seconds()})
		return err
	})
	return done, err
}
