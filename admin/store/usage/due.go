package usage

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

const day = 24 * time.Hour

// dayOf returns the day in UTC that a moment is in.
func dayOf(at time.Time) time.Time { return at.UTC().Truncate(day) }

// monthOf returns the month in UTC that a moment is in.
func monthOf(at time.Time) time.Time {
	year, month, _ := at.UTC().Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

// makeDue makes what comes first of that which is due since hours have changed, and
// tells whether there was something: the day of an API, or the ranks of an hour or
// of a day. Days are made when they are over.
func makeDue(ctx context.Context, tx *store.Tx, over time.Time) (more bool, err error) {
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
	switch {
	case d.APIID != "":
		err = tx.SumDay(ctx, db.SumDayParams{OrgID: d.OrgID, APIID: d.APIID, Day: d.Bucket, Until: d.Bucket.Add(day)})
	case d.Hours == 1:
		err = rankHour(ctx, tx, d.OrgID, d.Bucket)
	default:
		err = rankDay(ctx, tx, d.OrgID, d.Bucket)
	}
	return true, err
}

// rankHour writes down how often each key called in an hour, and each API was
// called.
func rankHour(ctx context.Context, tx *store.Tx, org string, hour time.Time) error {
	if err := tx.RankAPIsOfHour(ctx, db.RankAPIsOfHourParams{OrgID: org, Hour: hour}); err != nil {
		return err
	}
	month := monthOf(hour)
	if err := tx.SeeKeys(ctx, db.SeeKeysParams{OrgID: org, Hour: hour, Month: month}); err != nil {
		return err
	}
	if err := tx.NumberKeys(ctx, db.NumberKeysParams{OrgID: org, Hour: hour, Month: month}); err != nil {
		return err
	}
	rows, err := tx.HourByNumber(ctx, db.HourByNumberParams{OrgID: org, Hour: hour})
	if err != nil {
		return err
	}
	var all, refused tally
	for i := range rows {
		all.add(int(rows[i].Number), rows[i].Hits)
		if rows[i].Refused > 0 {
			refused.add(int(rows[i].Number), rows[i].Refused)
		}
	}
	return putRanks(ctx, tx, db.PutRankParams{OrgID: org, Hours: 1, Bucket: hour}, all, refused)
}

// rankDay is rankHour for a day, which is made of its hours.
func rankDay(ctx context.Context, tx *store.Tx, org string, of time.Time) error {
	if err := tx.RankAPIsOfDay(ctx, db.RankAPIsOfDayParams{OrgID: org, Day: of, Until: of.Add(day)}); err != nil {
		return err
	}
	var both [2]tally
	for i, refused := range []bool{false, true} {
		ranks, err := tx.Ranks(ctx, db.RanksParams{OrgID: org, Refused: refused, Hours: times(of, of.Add(day), time.Hour)})
		if err != nil {
			return err
		}
		for _, packed := range ranks {
			if err := both[i].unpack(packed); err != nil {
				return err
			}
		}
	}
	return putRanks(ctx, tx, db.PutRankParams{OrgID: org, Hours: 24, Bucket: of}, both[0], both[1])
}

func putRanks(ctx context.Context, tx *store.Tx, p db.PutRankParams, all, refused tally) error {
	p.Hits = all.pack()
	if err := tx.PutRank(ctx, p); err != nil {
		return err
	}
	p.Refused, p.Hits = true, refused.pack()
	return tx.PutRank(ctx, p)
}

// times lists moments, from one on and before another.
func times(since, until time.Time, step time.Duration) []time.Time {
	all := []time.Time{}
	for ; since.Before(until); since = since.Add(step) {
		all = append(all, since)
	}
	return all
}
