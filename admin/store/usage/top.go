package usage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// errUnranked means that no rank of keys has been made of what is asked for.
var errUnranked = errors.New("not ranked")

// topKeys reports whether the ranks of keys answer the query.
func (q *Query) topKeys() bool {
	return q.By == Grouping{Key: true} && q.Step == "" && q.API == "" && q.Key == nil && q.Status < 0 && q.Reason == ""
}

// topAPIs reports whether the ranks of APIs answer the query.
func (q *Query) topAPIs() bool {
	return q.By == Grouping{API: true} && q.Step == "" && !q.Minutes && q.API == "" && q.Key == nil && q.Status < 0 && q.Reason == "" && !q.Refused
}

// ranges divides the range of a query by where its calls are read.
type ranges struct {
	days    []time.Time // from ranks of days
	hours   []time.Time // from ranks of hours
	changed []time.Time // from hours by key, since they have changed after they were ranked
	live    []time.Time // from minutes, since these are not summed up yet
	until   time.Time
}

// spread divides a range. Days with changes are read by hours; unranked says where
// changed hours are read.
func spread(since, until time.Time, changedDays map[time.Time]bool, unranked map[time.Time]*[]time.Time) (days, hours []time.Time) {
	days, hours = []time.Time{}, []time.Time{}
	for at := since.UTC(); at.Before(until); {
		if dayOf(at).Equal(at) && !at.Add(day).After(until) && !changedDays[at] {
			days = append(days, at)
			at = at.Add(day)
			continue
		}
		if list := unranked[at]; list != nil {
			*list = append(*list, at)
		} else {
			hours = append(hours, at)
		}
		at = at.Add(time.Hour)
	}
	return days, hours
}

// rangesOf divides the range of a query. With stale, ranks are read though hours have
// changed since, and the range ends at the first hour without any.
func rangesOf(ctx context.Context, st *store.Store, q *Query, stale bool) (*ranges, error) {
	floor, err := Floor(ctx, st)
	if err != nil {
		return nil, err
	}
	hours, err := st.Read().ChangedHours(ctx, db.ChangedHoursParams{OrgID: q.Org, Since: dayOf(q.Since), Until: q.Until})
	if err != nil {
		return nil, store.Translate(err)
	}
	days, err := st.Read().ChangedDays(ctx, db.ChangedDaysParams{OrgID: q.Org, Since: dayOf(q.Since), Until: q.Until})
	if err != nil {
		return nil, store.Translate(err)
	}
	r := &ranges{changed: []time.Time{}, live: []time.Time{}, until: q.Until}
	changedDays, unranked := make(map[time.Time]bool), make(map[time.Time]*[]time.Time)
	for _, at := range days {
		changedDays[at.UTC()] = true
	}
	for _, h := range hours {
		at := h.Hour.UTC()
		changedDays[dayOf(at)] = true
		switch {
		case stale && h.Ranked:
		case stale && !at.Before(q.Since) && at.Before(r.until):
			r.until = at
		case h.Marked && !at.Before(floor):
			unranked[at] = &r.live
		default:
			unranked[at] = &r.changed
		}
	}
	r.days, r.hours = spread(q.Since, r.until, changedDays, unranked)
	return r, nil
}

// readTopKeys answers which keys called most. When too many rows of hours by key would
// have to be added up besides ranks, the answer has ranks only, and ends where they end.
func readTopKeys(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	r, err := rangesOf(ctx, st, q, false)
	if err != nil {
		return nil, err
	}
	rows, err := st.Read().CountChanged(ctx, db.CountChangedParams{OrgID: q.Org, Changed: r.changed, Live: r.live, Refused: q.Refused, Most: MostKeyed + 1})
	if err != nil {
		return nil, store.Translate(err)
	}
	if rows > MostKeyed {
		if r, err = rangesOf(ctx, st, q, true); err != nil {
			return nil, err
		}
		if !r.until.After(q.Since) {
			return nil, errUnranked
		}
	}
	p := db.TopKeysParams{
		OrgID: q.Org, Days: r.days, Hours: r.hours, Changed: r.changed, Live: r.live, Refused: q.Refused, Most: MostRanked + 1,
		Max: q.Page.Limit(), Skip: q.Page.Offset(),
	}
	keys, err := st.Read().TopKeys(ctx, p)
	shown := len(keys)
	if err == nil && shown == 0 && p.Skip > 0 { // beyond the last page, whose number is wanted
		p.Skip, p.Max = 0, 1
		keys, err = st.Read().TopKeys(ctx, p)
	}
	switch {
	case err != nil:
		return nil, store.Translate(err)
	case len(keys) > 0 && keys[0].AllRows > MostRanked:
		return nil, &TooMuchError{MostRanked}
	}
	a := &Answer{Since: q.Since, Until: r.until, Groups: make([]Group, 0, shown)}
	if len(keys) > 0 {
		a.Count = keys[0].Groups
	}
	for _, k := range keys[:shown] {
		a.Groups = append(a.Groups, Group{At: q.Since.UTC(), Key: k.KeyHash, Sums: sumsOf(k.Hits, k.Errors, k.TotalUs, k.UpstreamUs)})
	}
	a.All, err = totals(ctx, st, q, r.until)
	return a, err
}

// readTopAPIs answers which APIs were called most.
func readTopAPIs(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	r, err := rangesOf(ctx, st, q, false)
	if err != nil {
		return nil, err
	}
	p := db.TopAPIsParams{
		OrgID: q.Org, Days: r.days, Hours: r.hours, Changed: slices.Concat(r.changed, r.live), Max: q.Page.Limit(), Skip: q.Page.Offset(),
	}
	apis, err := st.Read().TopAPIs(ctx, p)
	shown := len(apis)
	if err == nil && shown == 0 && p.Skip > 0 { // beyond the last page, whose number is wanted
		p.Skip, p.Max = 0, 1
		apis, err = st.Read().TopAPIs(ctx, p)
	}
	if err != nil {
		return nil, store.Translate(err)
	}
	a := &Answer{Since: q.Since, Until: q.Until, Groups: make([]Group, 0, shown)}
	if len(apis) > 0 {
		a.Count = apis[0].Groups
	}
	for _, r := range apis[:shown] {
		a.Groups = append(a.Groups, Group{At: q.Since.UTC(), API: r.APIID, Sums: sumsOf(r.Hits, r.Errors, r.TotalUs, r.UpstreamUs)})
	}
	if a.All, err = totals(ctx, st, q, q.Until); err != nil || shown == 0 {
		return a, err
	}
	latencies, err := q.params(ctx, st)
	if err != nil {
		return nil, err
	}
	return a, readLatencies(ctx, st, &latencies, a.Groups)
}

// totals adds up the calls of all keys and APIs, which are summed up at once.
func totals(ctx context.Context, st *store.Store, q *Query, until time.Time) (Sums, error) {
	a, err := readRows(ctx, st, &Query{
		Org: q.Org, Since: q.Since, Until: until, Status: -1, Refused: q.Refused, Page: store.Page{Max: 1},
	})
	if err != nil {
		return Sums{}, err
	}
	return a.All, nil
}
