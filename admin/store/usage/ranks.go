package usage

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

const day = 24 * time.Hour

// dayOf returns the beginning of the day in UTC.
func dayOf(at time.Time) time.Time { return at.UTC().Truncate(day) }

// rank makes the ranks of keys and APIs of the first hour or day that has changed, and
// reports whether there was one. Days are ranked when they are over.
func rank(ctx context.Context, tx *store.Tx, over time.Time) (more bool, err error) {
	d, err := tx.NextDue(ctx, over.Add(-day))
	if err = store.Translate(err); errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := tx.Undue(ctx, db.UndueParams(d)); err != nil {
		return false, err
	}
	if d.Hours == 1 {
		if err := tx.RankAPIsOfHour(ctx, db.RankAPIsOfHourParams{OrgID: d.OrgID, Hour: d.Bucket}); err != nil {
			return false, err
		}
		return true, tx.RankKeysOfHour(ctx, db.RankKeysOfHourParams{OrgID: d.OrgID, Hour: d.Bucket})
	}
	of := db.RankAPIsOfDayParams{OrgID: d.OrgID, Day: d.Bucket, Until: d.Bucket.Add(day)}
	if err := tx.RankAPIsOfDay(ctx, of); err != nil {
		return false, err
	}
	return true, tx.RankKeysOfDay(ctx, db.RankKeysOfDayParams(of))
}
