package usage

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// ErrBusy means that another admin is doing the same work.
var ErrBusy = errors.New("another admin does the same work")

// settled is how long after its end an hour is summed up: by then most of its calls
// have arrived. It is summed up again for those that come later.
const settled = 2 * time.Minute

// Sum sums up the first hour of an API whose minutes have changed, or makes the ranks of
// the first hour or day that has changed, and reports whether there may be more to do.
// The hour that is not over yet is left out. The error is ErrBusy while another admin
// sums up.
func Sum(ctx context.Context, st *store.Store, now time.Time) (more bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		over := now.Add(-settled).Truncate(time.Hour)
		mark, err := tx.NextMark(ctx, over)
		if err = store.Translate(err); errors.Is(err, store.ErrNotFound) {
			more, err = rank(ctx, tx, over)
			return err
		}
		if err != nil {
			return err
		}
		more = true
		if mark.APIID == "" {
			return tx.SpreadMarks(ctx, db.SpreadMarksParams{Hour: mark.Hour, Until: mark.Hour.Add(time.Hour)})
		}
		return sum(ctx, tx, &mark)
	})
	return more, err
}

// lock holds off other transactions of its kind until the end of this one.
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

// sum writes the hour of an API and notes that its ranks are to be made. The marks are
// deleted first: batches that the sums do not see have marks of their own.
func sum(ctx context.Context, tx *store.Tx, m *db.NextMarkRow) error {
	if err := tx.Unmark(ctx, db.UnmarkParams{Hour: m.Hour, OrgID: m.OrgID, APIID: m.APIID}); err != nil {
		return err
	}
	if err := tx.DueAfter(ctx, db.DueAfterParams{OrgID: m.OrgID, Hour: m.Hour, Day: dayOf(m.Hour)}); err != nil {
		return err
	}
	floor, err := tx.UsageFloor(ctx)
	if err != nil {
		return err
	}
	of := db.SumUsageParams{Hour: m.Hour, Until: m.Hour.Add(time.Hour), OrgID: m.OrgID, APIID: m.APIID}
	if m.Hour.Before(floor) { // the other minutes of the hour are gone
		return tx.MoveUsage(ctx, db.MoveUsageParams(of))
	}
	return tx.SumUsage(ctx, of)
}

// Retention is how long usage is kept, at least.
type Retention struct {
	Minutes time.Duration // whole days are dropped
	Hours   time.Duration // whole months are dropped

	Refusals time.Duration // records of refused requests
	Samples  time.Duration // recorded requests

	MostSamples int // the newest recorded requests of each organisation that are kept
}

// Keep creates the partitions of the days and months to come, and drops what is older
// than the retention. It returns false if minutes are kept since hours have yet to sum
// them up. The error is ErrBusy while another admin does the same.
func Keep(ctx context.Context, st *store.Store, now time.Time, r Retention) (done bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		if err := forgetRefusals(ctx, tx, now.Add(-r.Refusals)); err != nil {
			return err
		}
		if err := forgetSamples(ctx, tx, now, r.Samples); err != nil {
			return err
		}
		if err := tx.KeepRanks(ctx, db.KeepRanksParams{At: now, HourSeconds: r.Hours.Seconds()}); err != nil {
			return err
		}
		done, err = tx.KeepUsage(ctx, db.KeepUsageParams{At: now, MinuteSeconds: r.Minutes.Seconds(), HourSeconds: r.Hours.Seconds()})
		return err
	})
	return done, err
}
