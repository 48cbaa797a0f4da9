package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	rows "github.com/sluicegate/sluice/admin/store/usage"
	"github.com/sluicegate/sluice/internal/usage"
)

// Report is a page of usage.
type Report struct {
	// Beginning of the range, at a full minute or hour.
	From time.Time `json:"from"`
	// End of the range, which is not part of it; the end of the last hour that is summed up where keys
	// are ranked and too much has come since.
	To time.Time `json:"to"`
	// Length of time that a row is of: minute, hour, day or none.
	Step string `json:"step" enum:"minute,hour,day,none"`

	// Sums and means of all pages.
	Totals Numbers `json:"totals"`
	// Rows of the page.
	Data []Row `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// Row is a group of calls. Members that calls are not grouped by are left out.
type Row struct {
	// Beginning of the step.
	At *time.Time `json:"at,omitempty"`
	// Id of the API.
	API *string `json:"api_id,omitempty"`
	// Name of the API; left out for an API that is gone, and for developers.
	Name string `json:"api_name,omitempty"`
	// Hash of the key; empty: without a known key; other: keys that there was no room for.
	Key *string `json:"key,omitempty"`
	// Alias of the key; left out for a key that is gone or has none, and for developers.
	Alias string `json:"key_alias,omitempty"`
	// HTTP status of the answers; 0: nothing was answered.
	Status *int `json:"status,omitempty"`
	// Reason for which the gateway refused or failed the calls; empty: it did not.
	Reason *string `json:"reason,omitempty"`
	Numbers
}

// Numbers are the sums and means of calls. Times are in milliseconds.
type Numbers struct {
	// Number of the calls.
	Hits int64 `json:"hits"`
	// Those of hits that were refused, failed, or were answered with a status from 400 on.
	Errors int64 `json:"errors"`
	// Mean time from arrival to answer, in milliseconds.
	Mean float64 `json:"mean_ms"`
	// Mean time of the upstream's part, in milliseconds.
	Upstream float64 `json:"upstream_mean_ms"`
	// Median time from arrival to answer, in milliseconds, estimated from buckets; left out unless
	// grouped by nothing but api, without filters but api.
	P50 *float64 `json:"p50_ms,omitempty"`
	// Time that 95 of 100 calls did not exceed, in milliseconds, estimated from buckets; left out as
	// p50_ms is.
	P95 *float64 `json:"p95_ms,omitempty"`
	// Time that 99 of 100 calls did not exceed, in milliseconds, estimated from buckets; left out as
	// p50_ms is.
	P99 *float64 `json:"p99_ms,omitempty"`
}

// report answers a request.
func (s *Service) report(ctx context.Context, org string, r *request) (*Report, error) {
	floor, err := rows.Floor(ctx, s.deps.Store)
	if err != nil {
		return nil, err
	}
	q, err := r.query(org, floor)
	if err != nil {
		return nil, err
	}
	a, err := rows.Read(ctx, s.deps.Store, q)
	var much *rows.TooMuchError
	switch {
	case errors.As(err, &much):
		return nil, tooMuch(q, much.Most)
	case err != nil:
		return nil, err
	}
	report := &Report{
		From: a.Since, To: a.Until, Step: r.step, Totals: numbersOf(&a.All, nil),
		Data: make([]Row, 0, len(a.Groups)), Pages: rest.Pages(a.Count, q.Page),
	}
	for i := range a.Groups {
		report.Data = append(report.Data, r.row(&a.Groups[i]))
	}
	return report, nil
}

// named is report with the names of APIs and the aliases of keys.
func (s *Service) named(ctx context.Context, org string, r *request) (*Report, error) {
	report, err := s.report(ctx, org, r)
	if err != nil {
		return nil, err
	}
	var apis, keys []string
	for i := range report.Data {
		if id := report.Data[i].API; id != nil {
			apis = append(apis, *id)
		}
		if hash := report.Data[i].Key; hash != nil {
			keys = append(keys, *hash)
		}
	}
	names, aliases, err := rows.Names(ctx, s.deps.Store, org, apis, keys)
	if err != nil {
		return nil, err
	}
	for i := range report.Data {
		row := &report.Data[i]
		if row.API != nil {
			row.Name = names[*row.API]
		}
		if row.Key != nil {
			row.Alias = aliases[*row.Key]
		}
	}
	return report, nil
}

// tooMuch returns the error for a query that would read more than most rows, with
// alternatives.
func tooMuch(q *rows.Query, most int) error {
	if q.By.Key || q.Key != nil {
		return rest.BadRequest(fmt.Sprintf("More than %d rows of keys would have to be added up; ask for a shorter time, or for one api", most))
	}
	return rest.BadRequest(fmt.Sprintf("More than %d rows of APIs would have to be added up; ask for a shorter time, for one api, or without group_by=api", most))
}

// row returns a group in JSON.
func (r *request) row(g *rows.Group) Row {
	row := Row{Numbers: numbersOf(&g.Sums, g.Latencies)}
	if r.step != "none" {
		row.At = &g.At
	}
	if r.by.API {
		row.API = &g.API
	}
	if r.by.Key {
		row.Key = &g.Key
	}
	if r.by.Status {
		row.Status = &g.Status
	}
	if r.by.Reason {
		row.Reason = &g.Reason
	}
	return row
}

func numbersOf(sums *rows.Sums, latencies []int64) Numbers {
	n := Numbers{Hits: sums.Hits, Errors: sums.Errors}
	if n.Hits > 0 {
		n.Mean = mean(sums.Total, n.Hits)
		n.Upstream = mean(sums.Upstream, n.Hits)
	}
	if latencies != nil {
		quantile := func(q float64) *float64 {
			ms := milliseconds(usage.Quantile(latencies, q))
			return &ms
		}
		n.P50, n.P95, n.P99 = quantile(0.5), quantile(0.95), quantile(0.99)
	}
	return n
}

// mean returns the milliseconds per call of a sum of microseconds.
func mean(microseconds, calls int64) float64 {
	return math.Round(float64(microseconds)/float64(calls)) / 1000
}

// milliseconds returns a duration with three decimals.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}
