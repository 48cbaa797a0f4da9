package usage

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// topAPIs tells whether the ranks of APIs have the answer.
func (q *Query) topAPIs() bool {
	return q.By == Grouping{API: true} && q.Step == "" && !q.Minutes && q.API == "" && q.Key == nil && q.Status < 0 && q.Reason == "" && !q.Refused
}

// readAPIs answers which APIs were called most. Hours that have changed since they
// were ranked are read as they are.
func readAPIs(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	p, err := rangesOf(ctx, st, q)
	if err != nil {
		return nil, err
	}
	p.Skip, p.Max = q.Page.Offset(), q.Page.Limit()
	rows, err := st.Read().TopAPIs(ctx, p)
	shown := len(rows)
	if err == nil && shown == 0 && p.Skip > 0 { // beyond the last page: how many there are is wanted all the same
		p.Skip, p.Max = 0, 1
		rows, err = st.Read().TopAPIs(ctx, p)
	}
	if err != nil {
		return nil, store.Translate(err)
	}
	a := &Answer{Since: q.Since, Until: q.Until, Groups: make([]Group, 0, shown)}
	if len(rows) > 0 {
		a.Count = rows[0].Groups
	}
	for _, r := range rows[:shown] {
		a.Groups = append(a.Groups, Group{At: q.Since.UTC(), API: r.APIID, Sums: sumsOf(r.Hits, r.Errors, r.TotalUs, r.UpstreamUs)})
	}
	if a.All, err = totals(ctx, st, q, q.Until); err != nil || shown == 0 {
		return a, err
	}
	latencies, err := q.params(ctx, st)
	if err != nil {
		return nil, err
	}
	return a, tellLatencies(ctx, st, &latencies, a.Groups)
}

// rangesOf finds out what is read of what.
func rangesOf(ctx context.Context, st *store.Store, q *Query) (p db.TopAPIsParams, err error) {
	p.OrgID = q.Org
	first := dayOf(q.Since)
	marked, err := st.Read().MarkedHours(ctx, db.MarkedHoursParams{Since: first, Until: q.Until})
	if err != nil {
		return p, store.Translate(err)
	}
	due, err := st.Read().DueRanks(ctx, db.DueRanksParams{OrgID: q.Org, Since: first, Until: q.Until})
	if err != nil {
		return p, store.Translate(err)
	}
	changed, live := make(map[time.Time]bool), make(map[time.Time]bool)
	for _, hour := range marked {
		live[hour.UTC()], changed[dayOf(hour)] = true, true
	}
	for _, d := range due {
		if changed[dayOf(d.Bucket)] = true; d.Hours == 1 {
			live[d.Bucket.UTC()] = true
		}
	}
	p.Days, p.Hours, p.Live = spread(q.Since, q.Until, changed, live)
	return p, nil
}
