// Package usage keeps the statements of usage: counts of calls in minutes, which
// are summed up to hours.
package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition/usage"
)

// ahead is how far the clock of a gateway may be ahead of now: what comes from
// farther in the future counts for now.
const ahead = 5 * time.Minute

// Add adds what a gateway counted, or nothing when it has been added before, and
// tells which. The batch must be one that Check has nothing to say about.
func Add(ctx context.Context, st *store.Store, b *usage.Batch, now time.Time) (added bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		claimed, err := tx.ClaimUsage(ctx, db.ClaimUsageParams{Gateway: b.Gateway, Boot: b.Boot, Sequence: b.Sequence})
		if added = claimed > 0; err != nil || !added {
			return err
		}
		rows, latencies := merged(b.Rows, now), mergedLatencies(b.Latencies, now)
		// First, because who keeps partitions waits for those who have marked an hour,
		// and lets nobody else begin.
		if err := tx.MarkUsage(ctx, hoursOf(rows, latencies)); err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := tx.AddUsage(ctx, columns(rows)); err != nil {
				return err
			}
		}
		if len(latencies) == 0 {
			return nil
		}
		return tx.AddLatencies(ctx, latencyColumns(latencies))
	})
	return added, err
}

// bucketOf returns the minute that counts for one.
func bucketOf(minute int64, now time.Time) int64 {
	if latest := now.Add(ahead).Unix(); minute > latest {
		return now.Truncate(time.Minute).Unix()
	}
	return minute
}

// order is that of the key of usage_minute.
func order(x, y *usage.Row) int {
	return cmp.Or(
		cmp.Compare(x.Org, y.Org), cmp.Compare(x.Minute, y.Minute), cmp.Compare(x.API, y.API), cmp.Compare(x.Key, y.Key),
		cmp.Compare(x.Status, y.Status), cmp.Compare(x.Reason, y.Reason),
	)
}

// merged returns rows in order, those that are alike as one.
func merged(rows []usage.Row, now time.Time) []usage.Row {
	sorted := slices.Clone(rows)
	for i := range sorted {
		sorted[i].Minute = bucketOf(sorted[i].Minute, now)
	}
	slices.SortFunc(sorted, func(x, y usage.Row) int { return order(&x, &y) })
	all := sorted[:0]
	for _, r := range sorted {
		if n := len(all); n > 0 && order(&all[n-1], &r) == 0 {
			last := &all[n-1]
			last.Hits, last.Total, last.Upstream = last.Hits+r.Hits, last.Total+r.Total, last.Upstream+r.Upstream
			continue
		}
		all = append(all, r)
	}
	return all
}

// mergedLatencies is merged for how long calls took.
func mergedLatencies(latencies []usage.Latency, now time.Time) []usage.Latency {
	same := func(x, y *usage.Latency) int {
		return cmp.Or(cmp.Compare(x.Org, y.Org), cmp.Compare(x.Minute, y.Minute), cmp.Compare(x.API, y.API))
	}
	sorted := slices.Clone(latencies)
	for i := range sorted {
		sorted[i].Minute = bucketOf(sorted[i].Minute, now)
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
func hoursOf(rows []usage.Row, latencies []usage.Latency) (hours []time.Time) {
	var known []int64
	note := func(minute int64) {
		if hour := minute - minute%3600; !slices.Contains(known, hour) {
			known = append(known, hour)
			hours = append(hours, time.Unix(hour, 0))
		}
	}
	for i := range rows {
		note(rows[i].Minute)
	}
	for i := range latencies {
		note(latencies[i].Minute)
	}
	return hours
}

// columns turns rows into what a statement takes.
func columns(rows []usage.Row) (p db.AddUsageParams) {
	for i := range rows {
		r := &rows[i]
		errors := int64(0)
		if r.IsError() {
			errors = r.Hits
		}
		p.Orgs, p.Buckets = append(p.Orgs, r.Org), append(p.Buckets, time.Unix(r.Minute, 0))
		p.APIs, p.Keys = append(p.APIs, r.API), append(p.Keys, r.Key)
		p.Statuses, p.Reasons = append(p.Statuses, int16(r.Status)), append(p.Reasons, r.Reason)
		p.Hits, p.Errors = append(p.Hits, r.Hits), append(p.Errors, errors)
		p.Totals, p.Upstreams = append(p.Totals, r.Total), append(p.Upstreams, r.Upstream)
	}
	return p
}

// latencyColumns is columns for how long calls took.
func latencyColumns(latencies []usage.Latency) (p db.AddLatenciesParams) {
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
