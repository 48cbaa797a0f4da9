package usage

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/usage"
)

// What a large organisation has: its keys each call one API, on each of 30 days, of
// which the first and the last are there by hours too, and in every fourth minute of
// the last hour that is over.
const (
	largeKeys = 100_000
	largeAPIs = 1000
)

// large writes it: 5 million rows of hours by key and 1.5 million of minutes.
func large(b *testing.B, url string, now time.Time) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	hour := now.Truncate(time.Hour)
	begin := hour.Add(-30 * day)
	for _, s := range []struct {
		statement string
		args      []any
	}{
		{`create temp table keys as select n, 'org' || md5('k' || n) || md5('l' || n) as key, 'api' || lpad((n % $1)::text, 29, '0') as api,
			(array[200, 200, 200, 429, 404])[1 + n / $1 % 5]::smallint as status, (array['', '', '', 'rate_limit', ''])[1 + n / $1 % 5] as reason
			from generate_series(1, $2::int) n`, []any{largeAPIs, largeKeys}},
		{`insert into usage_hour select 'org', h, api, key, status, reason, 1 + n % 90, 0, 5000, 2000
			from generate_series($1::timestamptz, $2, '1 hour') h, keys order by h, key`, []any{hour.Add(-24 * time.Hour), hour.Add(-time.Hour)}},
		{`insert into usage_hour select 'org', h, api, key, status, reason, 1 + n * 7 % 90, 0, 5000, 2000
			from generate_series($1::timestamptz, $2, '1 hour') h, keys order by h, key`, []any{begin, dayOf(begin).Add(day - time.Hour)}},
		{`insert into usage_due select distinct 'org', 1, bucket from usage_hour`, nil},
		{`insert into usage_minute select 'org', m, api, key, status, reason, 1 + n % 3, 0, 5000, 2000
			from generate_series($1::timestamptz, $2, '1 minute') m, keys where n % 4 = extract(minute from m)::int % 4 order by m, key`, []any{hour.Add(-time.Hour), hour.Add(-time.Minute)}},
	} {
		if _, err := conn.Exec(b.Context(), s.statement, s.args...); err != nil {
			b.Fatalf("%s: %v", s.statement, err)
		}
	}
	for _, unit := range []string{"hour", "minute"} {
		for _, api := range []string{"api_id", "''"} {
			sums := `insert into usage_api_` + unit + ` select org_id, bucket, ` + api + `, status, reason, sum(hits), 0, sum(total_us), sum(upstream_us) from usage_` + unit + ` group by 1, 2, 3, 4, 5`
			latencies := `insert into latency_` + unit + ` select org_id, bucket, ` + api + `, size, sum(hits) from usage_` + unit + `, generate_series(2, 6) size group by 1, 2, 3, 4`
			for _, statement := range []string{sums, latencies} {
				if _, err := conn.Exec(b.Context(), statement); err != nil {
					b.Fatalf("%s: %v", statement, err)
				}
			}
		}
	}
	if _, err := conn.Exec(b.Context(), "vacuum analyze"); err != nil {
		b.Fatal(err)
	}
}

// rankLarge makes the ranks of the hours that large wrote, of the last day that is over
// and, without its hours, of the days before it.
func rankLarge(b *testing.B, st *store.Store, url string, now time.Time) {
	b.Helper()
	b.Run("ranking hours", func(b *testing.B) { steps(b, st, now) })
	yesterday := dayOf(now).Add(-day)
	execute(b, url, "insert into usage_due values ('org', 24, $1)", yesterday)
	b.Run("ranking a day", func(b *testing.B) { steps(b, st, now) })
	execute(b, url, `insert into usage_key_rank select org_id, 24, d, key_hash, refused, hits, errors, total_us, upstream_us
		from generate_series($1::timestamptz, $2, '1 day') d, usage_key_rank where hours = 24 and bucket = $3`, dayOf(now.Add(-29*day)), yesterday.Add(-day), yesterday)
	execute(b, url, `insert into usage_api_rank select org_id, 24, d, api_id, hits, errors, total_us, upstream_us
		from generate_series($1::timestamptz, $2, '1 day') d, usage_api_rank where hours = 24 and bucket = $3`, dayOf(now.Add(-29*day)), yesterday.Add(-day), yesterday)
	execute(b, url, "vacuum analyze")
}

// steps does all that there is to sum up, once, and reports how long that took.
func steps(b *testing.B, st *store.Store, now time.Time) {
	var took []time.Duration
	for b.Loop() { // there is nothing left to do after the first time
		for {
			began := time.Now()
			more, err := Sum(b.Context(), st, now.Truncate(time.Hour).Add(10*time.Minute))
			if err != nil {
				b.Fatal(err)
			}
			if !more {
				break
			}
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(slices.Max(took).Microseconds())/1000, "longest-ms")
	b.ReportMetric(float64(len(took)), "steps")
}

// BenchmarkLargeOrganisation asks what a large organisation wants to know, and
// adds to what it has.
func BenchmarkLargeOrganisation(b *testing.B) {
	st, url := fresh(b)
	now := time.Now().UTC()
	large(b, url, now)
	rankLarge(b, st, url, now)
	b.Run("questions", func(b *testing.B) { benchmarkQuestions(b, st, url, now.Truncate(time.Hour)) })
	b.Run("adding", func(b *testing.B) { benchmarkAdding(b, st, now) })
	b.Run("summing", func(b *testing.B) { benchmarkSumming(b, st, url, now) })
}

func benchmarkQuestions(b *testing.B, st *store.Store, url string, hour time.Time) {
	key := ask[string](b, url, "select key_hash from usage_hour limit 1")
	api := "api" + fmt.Sprintf("%029d", 12)
	for _, c := range []struct {
		name string
		Query
	}{
		{"all of a day", Query{Since: hour.Add(-day)}},
		{"all of a day by hours", Query{Since: hour.Add(-day), Step: "hour"}},
		{"statuses and reasons of a day", Query{Since: hour.Add(-day), By: Grouping{Status: true, Reason: true}}},
		{"rejections of a day", Query{Since: hour.Add(-day), By: Grouping{Reason: true}, Refused: true}},
		{"rejections of a day by API", Query{Since: hour.Add(-day), By: Grouping{API: true, Reason: true}, Refused: true}},
		{"top APIs of a day", Query{Since: hour.Add(-day), By: Grouping{API: true}}},
		{"APIs of a day by hours", Query{Since: hour.Add(-day), By: Grouping{API: true}, Step: "hour"}},
		{"an API of a day by hours", Query{Since: hour.Add(-day), API: api, Step: "hour"}},
		{"minutes of an hour", Query{Since: hour.Add(-time.Hour), Step: "minute", Minutes: true}},
		{"top APIs of an hour by minutes read", Query{Since: hour.Add(-time.Hour), By: Grouping{API: true}, Minutes: true}},
		{"a key of a week by days", Query{Since: hour.Add(-7 * day), Key: &key, Step: "day"}},
		{"a key of a day by API and reason", Query{Since: hour.Add(-day), Key: &key, By: Grouping{API: true, Reason: true}}},
		{"a key of an hour by minutes", Query{Since: hour.Add(-time.Hour), Key: &key, Step: "minute", Minutes: true}},
		{"top keys of an API of a day", Query{Since: hour.Add(-day), API: api, By: Grouping{Key: true}}},
		{"top keys of an hour", Query{Since: hour.Add(-2 * time.Hour), Until: hour.Add(-time.Hour), By: Grouping{Key: true}}},
		{"rejections of an hour by key", Query{Since: hour.Add(-2 * time.Hour), Until: hour.Add(-time.Hour), By: Grouping{Key: true}, Refused: true}},
		{"top keys of a day", Query{Since: hour.Add(-day), By: Grouping{Key: true}}},
		{"a late page of top keys of a day", Query{Since: hour.Add(-day), By: Grouping{Key: true}, Page: store.Page{Skip: 70_000}}},
		{"rejections of a day by key", Query{Since: hour.Add(-day), By: Grouping{Key: true}, Refused: true}},
		{"top APIs of 30 days", Query{Since: hour.Add(-30 * day), By: Grouping{API: true}}},
		{"top keys of 30 days", Query{Since: hour.Add(-30 * day), By: Grouping{Key: true}}},
		{"top keys of an hour by minutes", Query{Since: hour.Add(-time.Hour), By: Grouping{Key: true}, Minutes: true}},
	} {
		q := c.Query
		q.Org, q.Status, q.Page.Max = "org", -1, 50
		if q.Until.IsZero() {
			q.Until = hour
		}
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				a, err := Read(b.Context(), st, &q)
				took = append(took, time.Since(began))
				if err != nil || a.All.Hits == 0 || len(a.Groups) == 0 || a.Groups[0].Hits == 0 {
					b.Fatalf("%+v, %v", a, err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
		})
	}
}

// benchmarkAdding adds a row of each key, in as many batches as that takes.
func benchmarkAdding(b *testing.B, st *store.Store, now time.Time) {
	sequence := int64(0)
	for b.Loop() {
		for first := 0; first < largeKeys; first += usage.MaxRows {
			sequence++
			batch := &usage.Batch{Gateway: "gw", Boot: b.Name(), Sequence: sequence}
			for i := range usage.MaxRows {
				batch.Rows = append(batch.Rows, usage.Row{
					Minute: now.Unix() / 60 * 60, Org: "org", API: fmt.Sprintf("api%029d", (first+i)%largeAPIs), Key: fmt.Sprintf("org%064x", first+i),
					Status: 200, Hits: 3, Total: 30, Upstream: 20,
				})
			}
			add(b, st, batch)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(sequence), "ms/batch")
}

// benchmarkSumming sums up the hour of minutes.
func benchmarkSumming(b *testing.B, st *store.Store, url string, now time.Time) {
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	var took []time.Duration
	for b.Loop() {
		if _, err := conn.Exec(b.Context(), "insert into usage_marks (hour) values ($1)", now.Truncate(time.Hour).Add(-time.Hour)); err != nil {
			b.Fatal(err)
		}
		for more := true; more; {
			began := time.Now()
			if more, err = Sum(b.Context(), st, now.Truncate(time.Hour).Add(10*time.Minute)); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
	}
	b.ReportMetric(float64(slices.Max(took).Microseconds())/1000, "longest-ms")
}
