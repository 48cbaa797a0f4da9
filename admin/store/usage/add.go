// Package usage stores usage: counts of calls in minutes, which are summed up to hours,
// and ranks of keys and APIs by hour and day.
package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/usage"
)

// ahead is how far a gateway's clock may be ahead. Minutes beyond that count for now.
const ahead = 5 * time.Minute

// Add adds a batch and reports whether it was new. The batch must have passed Check.
func Add(ctx context.Context, st *store.Store, b *usage.Batch, now time.Time) (added bool, err error) {
	rows := merged(bounded(b.Rows, now))
	err = st.InTx(ctx, func(tx *store.Tx) error {
		claimed, err := tx.ClaimUsage(ctx, db.ClaimUsageParams{Gateway: b.Gateway, Boot: b.Boot, Sequence: b.Sequence})
		if added = claimed > 0; err != nil || !added {
			return err
		}
		// First, because the transaction that keeps partitions waits for those with
		// marks and lets no other begin.
		if err := tx.MarkUsage(ctx, hoursOf(rows)); err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := tx.AddUsage(ctx, columns(rows)); err != nil {
				return err
			}
		}
		if err := addSums(ctx, tx, keyless(rows)); err != nil {
			return err
		}
		if err := addLatencies(ctx, tx, b.Latencies, now); err != nil {
			return err
		}
		if err := addSamples(ctx, tx, b, now); err != nil {
			return err
		}
		return addRefusals(ctx, tx, b, now)
	})
	return added, err
}

// addSums adds the sums without keys. It comes last, since all batches of an
// organisation update the same rows.
func addSums(ctx context.Context, tx *store.Tx, minutes []usage.Row) error {
	if len(minutes) == 0 {
		return nil
	}
	if err := tx.AddAPIMinutes(ctx, db.AddAPIMinutesParams(sumColumns(minutes))); err != nil {
		return err
	}
	return tx.AddAPIHours(ctx, sumColumns(hourly(minutes)))
}

// addLatencies is addSums for latencies.
func addLatencies(ctx context.Context, tx *store.Tx, latencies []usage.Latency, now time.Time) error {
	if len(latencies) == 0 {
		return nil
	}
	minutes := mergedLatencies(latencies, func(minute int64) int64 { return bucketOf(minute, now) })
	if err := tx.AddLatencyMinutes(ctx, db.AddLatencyMinutesParams(latencyColumns(minutes))); err != nil {
		return err
	}
	hours := mergedLatencies(latencies, func(minute int64) int64 { return hourOf(bucketOf(minute, now)) })
	return tx.AddLatencyHours(ctx, latencyColumns(hours))
}

// bucketOf returns the minute that calls count for.
func bucketOf(minute int64, now time.Time) int64 {
	if latest := now.Add(ahead).Unix(); minute > latest {
		return now.Truncate(time.Minute).Unix()
	}
	return minute
}

// hourOf returns the hour of a minute.
func hourOf(minute int64) int64 { return minute - minute%3600 }

// bounded returns a copy of rows without minutes in the future.
func bounded(rows []usage.Row, now time.Time) []usage.Row {
	all := slices.Clone(rows)
	for i := range all {
		all[i].Minute = bucketOf(all[i].Minute, now)
	}
	return all
}

// order is the order of the primary key of usage_minute.
func order(x, y *usage.Row) int {
	return cmp.Or(
		cmp.Compare(x.Org, y.Org), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Minute, y.Minute), cmp.Compare(x.API, y.API),
		cmp.Compare(x.Status, y.Status), cmp.Compare(x.Reason, y.Reason),
	)
}

// merged sorts rows and merges those that differ in their numbers only. It overwrites
// rows.
func merged(rows []usage.Row) []usage.Row {
	slices.SortFunc(rows, func(x, y usage.Row) int { return order(&x, &y) })
	all := rows[:0]
	for _, r := range rows {
		if n := len(all); n > 0 && order(&all[n-1], &r) == 0 {
			last := &all[n-1]
			last.Hits, last.Total, last.Upstream = last.Hits+r.Hits, last.Total+r.Total, last.Upstream+r.Upstream
			continue
		}
		all = append(all, r)
	}
	return all
}

// keyless returns the sums of rows for each API, and for all APIs of an organisation.
func keyless(rows []usage.Row) []usage.Row {
	all := make([]usage.Row, 0, 2*len(rows))
	for _, r := range rows {
		r.Key = ""
		all = append(all, r)
	}
	all = merged(all)
	for _, r := range all {
		r.API = ""
		all = append(all, r)
	}
	return merged(all)
}

// hourly returns the sums of minutes.
func hourly(minutes []usage.Row) []usage.Row {
	all := slices.Clone(minutes)
	for i := range all {
		all[i].Minute = hourOf(all[i].Minute)
	}
	return merged(all)
}

// mergedLatencies returns the sorted latencies of each API, and of all APIs of an
// organisation, by bucket.
func mergedLatencies(latencies []usage.Latency, bucket func(minute int64) int64) []usage.Latency {
	same := func(x, y *usage.Latency) int {
		return cmp.Or(cmp.Compare(x.Org, y.Org), cmp.Compare(x.Minute, y.Minute), cmp.Compare(x.API, y.API))
	}
	sorted := make([]usage.Latency, 0, 2*len(latencies))
	for _, l := range latencies {
		l.Minute = bucket(l.Minute)
		sorted = append(sorted, l)
		l.API = ""
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(x, y usage.Latency) int { return same(&x, &y) })
	all := sorted[:0]
	for _, l := range sorted {
		if n := len(all); n > 0 && same(&all[n-1], &l) == 0 {
			for size, calls := range l.Counts {
				all[n-1].Counts[size] += calls
			}
			continue
		}
		all = append(all, l)
	}
	return all
}

// hoursOf returns the hours that rows are of, each once.
func hoursOf(rows []usage.Row) []time.Time {
	hours := []time.Time{}
	known := make(map[int64]bool)
	for i := range rows {
		if hour := hourOf(rows[i].Minute); !known[hour] {
			known[hour] = true
			hours = append(hours, time.Unix(hour, 0))
		}
	}
	return hours
}

// columns returns the parameters of the statement that adds rows.
func columns(rows []usage.Row) (p db.AddUsageParams) {
	for i := range rows {
		p.Keys = append(p.Keys, rows[i].Key)
	}
	c := sumColumns(rows)
	p.Orgs, p.Buckets, p.APIs, p.Statuses, p.Reasons = c.Orgs, c.Buckets, c.APIs, c.Statuses, c.Reasons
	p.Hits, p.Errors, p.Totals, p.Upstreams = c.Hits, c.Errors, c.Totals, c.Upstreams
	return p
}

// sumColumns is columns without keys.
func sumColumns(rows []usage.Row) (p db.AddAPIHoursParams) {
	for i := range rows {
		r := &rows[i]
		errors := int64(0)
		if r.IsError() {
			errors = r.Hits
		}
		p.Orgs, p.Buckets, p.APIs = append(p.Orgs, r.Org), append(p.Buckets, time.Unix(r.Minute, 0)), append(p.APIs, r.API)
		p.Statuses, p.Reasons = append(p.Statuses, int16(r.Status)), append(p.Reasons, r.Reason)
		p.Hits, p.Errors = append(p.Hits, r.Hits), append(p.Errors, errors)
		p.Totals, p.Upstreams = append(p.Totals, r.Total), append(p.Upstreams, r.Upstream)
	}
	return p
}

// latencyColumns is columns for how long calls took.
func latencyColumns(latencies []usage.Latency) (p db.AddLatencyHoursParams) {
	for i := range latencies {
		l := &latencies[i]
		for size, calls := range l.Counts {
			if calls == 0 {
				continue
			}
			p.Orgs, p.Buckets = append(p.Orgs, l.Org), append(p.Buckets, time.Unix(l.Minute, 0))
			p.APIs, p.Sizes, p.Calls = append(p.APIs, l.API), append(p.Sizes, int16(size)), append(p.Calls, calls)
		}
	}
	return p
}
