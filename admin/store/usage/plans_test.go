package usage

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
)

// fill writes 60,000 rows of three organisations, most of them of the others.
func fill(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	row := `(array['one','two','two','two','two','three','three','three','three','three','three','three'])[1 + n % 12], bucket, 'api' || n % 997, 'key' || n % 4999,
		(array[200,200,200,403,500])[1 + n % 5], (array['','','','quota_exceeded',''])[1 + n % 5], 5, 1, 100, 50`
	for _, statement := range []string{
		`insert into usage_minute select ` + row + ` from (select n, date_trunc('minute', now()) - (n % 1300) * interval '1 minute' as bucket from generate_series(1, 30000) n) s on conflict do nothing`,
		`insert into usage_hour select ` + row + ` from (select n, date_trunc('hour', now(), 'UTC') - (n % 700) * interval '1 hour' as bucket from generate_series(1, 30000) n) s on conflict do nothing`,
		`insert into usage_key_rank select org_id, 1, bucket, key_hash, reason <> '', sum(hits), 0, 0, 0 from usage_hour group by 1, 3, 4, 5`,
		`insert into usage_key_rank select org_id, 24, date_trunc('day', bucket, 'UTC'), key_hash, refused, sum(hits), 0, 0, 0 from usage_key_rank group by 1, 3, 4, 5`,
		`insert into usage_api_rank select org_id, 1, bucket, api_id, sum(hits), 0, 0, 0 from usage_hour group by org_id, bucket, api_id`,
		`insert into usage_api_rank select org_id, 24, date_trunc('day', bucket, 'UTC'), api_id, sum(hits), 0, 0, 0 from usage_hour group by 1, 3, 4`,
		`insert into usage_due select 'four', 1, now() - n * interval '1 hour' from generate_series(1, 8000) n`,
		`insert into usage_api_minute select org_id, bucket, api_id, status, reason, sum(hits), 0, 0, 0 from usage_minute group by 1, 2, 3, 4, 5`,
		`insert into usage_api_hour select org_id, bucket, api_id, status, reason, sum(hits), 0, 0, 0 from usage_hour group by 1, 2, 3, 4, 5`,
		`insert into usage_api_minute select org_id, bucket, '', status, reason, sum(hits), 0, 0, 0 from usage_minute group by 1, 2, 4, 5`,
		`insert into usage_api_hour select org_id, bucket, '', status, reason, sum(hits), 0, 0, 0 from usage_hour group by 1, 2, 4, 5`,
		`insert into latency_minute select org_id, bucket, api_id, 3, sum(hits) from usage_minute group by 1, 2, 3`,
		`insert into latency_hour select org_id, bucket, api_id, 3, sum(hits) from usage_hour group by 1, 2, 3`,
		`insert into usage_marks (hour) select date_trunc('hour', now(), 'UTC') from generate_series(1, 20)`,
		`analyze`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// scans counts the sequential scans of tables of usage that are worth an index.
func scans(t *testing.T, url string) int {
	t.Helper()
	return ask[int](t, url, `select coalesce(sum(seq_scan), 0)::int from pg_stat_user_tables where n_live_tup > 5000 and (relname ~ '^(usage|latency)_(api_)?(minute|hour|key_rank|rank|due|marks)')`)
}

func TestQueriesOfUsageUseIndexes(t *testing.T) {
	_, url := fresh(t)
	fill(t, url)
	st, err := store.Open(t.Context(), store.Options{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	key := ask[string](t, url, "select key_hash from usage_hour where org_id = 'one' and bucket between now() - interval '6 days' and now() - interval '1 day' limit 1")
	before := scans(t, url)
	var took []time.Duration
	for range 8 { // more often than plans are made for the values at hand
		for _, q := range []Query{
			{Step: "hour", By: Grouping{API: true}, Since: now.Add(-24 * time.Hour)},
			{Step: "minute", Minutes: true, Since: now.Add(-3 * time.Hour)},
			{By: Grouping{API: true, Status: true}, Since: now.Add(-24 * time.Hour), API: "api12"},
			{Step: "day", Since: now.Add(-7 * 24 * time.Hour), Key: &key},
			{By: Grouping{Reason: true}, Since: now.Add(-24 * time.Hour), Refused: true},
			{Step: "day", By: Grouping{API: true}, Since: now.Add(-28 * 24 * time.Hour), API: "api12"},
			{By: Grouping{API: true}, Since: now.Add(-28 * 24 * time.Hour)},
			{By: Grouping{Key: true}, Since: now.Add(-24 * time.Hour)},
			{By: Grouping{Key: true}, Since: now.Add(-28 * 24 * time.Hour)},
			{By: Grouping{Key: true}, Since: now.Add(-28 * 24 * time.Hour), Refused: true},
			{By: Grouping{Key: true}, Since: now.Add(-2 * time.Hour), Minutes: true},
		} {
			q.Org, q.Until, q.Status, q.Page = "one", now.Truncate(time.Hour).Add(time.Hour), -1, store.Page{Max: 50}
			if !q.Minutes {
				q.Since = q.Since.Truncate(time.Hour)
			}
			began := time.Now()
			a := read(t, st, &q)
			took = append(took, time.Since(began))
			if a.All.Hits == 0 {
				t.Errorf("%+v: nothing", q)
			}
		}
	}
	st.Close() // with its connections their statistics arrive
	if after := scans(t, url); after != before {
		t.Errorf("%d tables were read from end to end", after-before)
	}
	slices.Sort(took)
	t.Logf("median %v, slowest %v", took[len(took)/2], took[len(took)-1])
}
