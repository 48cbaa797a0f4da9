package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/usage"
)

// fresh returns a database of the test's own, and its address.
func fresh(t testing.TB) (*store.Store, string) {
	t.Helper()
	url := testenv.Database(t, func(ctx context.Context, url string) error {
		_, err := store.Migrate(ctx, url)
		return err
	}, "usage")
	return open(t, url), url
}

func open(t testing.TB, url string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{URL: url, MaxConns: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// ask returns the only value of the only row of a statement.
func ask[T any](t testing.TB, url, statement string, args ...any) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), statement, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// batch returns a batch of a gateway with one row and one histogram.
func batch(sequence int64, minute time.Time, hits int64) *usage.Batch {
	return &usage.Batch{
		Gateway: "gw", Boot: "b", Sequence: sequence,
		Rows:      []usage.Row{{Minute: minute.Unix() / 60 * 60, Org: "one", API: "a", Key: "k", Status: 200, Hits: hits, Total: 10 * hits, Upstream: 5 * hits}},
		Latencies: []usage.Latency{{Minute: minute.Unix() / 60 * 60, Org: "one", API: "a", Counts: usage.Latencies{2: hits}}},
	}
}

func add(t testing.TB, st *store.Store, b *usage.Batch) {
	t.Helper()
	if _, refused, err := b.Sift(); err != nil || refused.Refused > 0 {
		t.Fatalf("%+v, %v", refused, err)
	}
	if _, err := Add(t.Context(), st, b, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// sumAll sums up every hour that is over, in as many steps as it returns.
func sumAll(t testing.TB, st *store.Store, now time.Time) (steps int) {
	t.Helper()
	for {
		more, err := Sum(t.Context(), st, now)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return steps
		}
		steps++
	}
}

// callsIn adds up a table that has the sums of all APIs, and returns those.
func callsIn(t testing.TB, url, table string) int64 {
	t.Helper()
	column := "hits"
	if strings.HasPrefix(table, "latency") {
		column = "calls"
	}
	sums := ask[[]int64](t, url, `select array_agg(coalesce(n, 0)::bigint order by of_all) from (values (false), (true)) v (of_all)
		left join (select api_id = '' as of_all, sum(`+column+`) as n from `+table+` group by 1) s using (of_all)`)
	if sums[0] != sums[1] {
		t.Errorf("%s: APIs have %d calls, all of them %d", table, sums[0], sums[1])
	}
	return sums[1]
}

// everything is a query for all calls of an organisation around now.
func everything(org string) *Query {
	now := time.Now().Truncate(time.Hour)
	return &Query{Org: org, Since: now.Add(-1000 * 24 * time.Hour), Until: now.Add(48 * time.Hour), Status: -1, Page: store.Page{Max: 100}}
}

func read(t testing.TB, st *store.Store, q *Query) *Answer {
	t.Helper()
	a, err := Read(t.Context(), st, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestABatchCountsOnce(t *testing.T) {
	st, url := fresh(t)
	now := time.Now()
	add(t, st, batch(1, now, 3))
	add(t, st, batch(1, now, 3))
	add(t, st, batch(2, now, 4))
	for range 3 {
		add(t, st, batch(1, now, 3)) // one that was on its way for long
		add(t, st, batch(2, now, 4))
	}
	other := batch(1, now, 100)
	other.Boot = "another start"
	add(t, st, other)
	if got := read(t, st, everything("one")).All; got != (Sums{Hits: 107, Total: 1070, Upstream: 535}) {
		t.Errorf("%+v", got)
	}
	if n := ask[int](t, url, "select count(*) from usage_senders"); n != 2 {
		t.Errorf("%d senders", n)
	}
	if got := read(t, st, everything("two")).All.Hits; got != 0 {
		t.Errorf("another organisation sees %d", got)
	}
}

func TestABatchSentToTwoAdminsAtOnceCountsOnce(t *testing.T) {
	st, url := fresh(t)
	admins := []*store.Store{st, open(t, url)}
	now := time.Now()
	var adding sync.WaitGroup
	for sequence := range int64(20) {
		for i := range 6 {
			adding.Go(func() {
				if _, err := Add(t.Context(), admins[i%2], batch(sequence+1, now, 1), now); err != nil {
					t.Error(err)
				}
			})
		}
		adding.Wait()
	}
	if got := read(t, st, everything("one")).All.Hits; got != 20 {
		t.Errorf("%d calls, want 20", got)
	}
}

func TestARowThatComesTwiceInABatchIsOne(t *testing.T) {
	st, _ := fresh(t)
	b := batch(1, time.Now(), 3)
	b.Rows = append(b.Rows, b.Rows[0], usage.Row{Minute: b.Rows[0].Minute, Org: "one", API: "a", Status: 502, Reason: "upstream_reset", Hits: 2})
	b.Latencies = append(b.Latencies, b.Latencies[0])
	add(t, st, b)
	q := everything("one")
	q.By.API = true
	if got := read(t, st, q); got.All.Hits != 8 || got.All.Errors != 2 || got.Count != 1 || got.Groups[0].Latencies[2] != 6 {
		t.Errorf("%+v", got)
	}
}

func TestHoursAreTheSumsOfTheirMinutesHoweverOftenTheyAreSummedUp(t *testing.T) {
	st, url := fresh(t)
	now := time.Now()
	hour := now.Truncate(time.Hour).Add(-3 * time.Hour)
	add(t, st, batch(1, hour.Add(5*time.Minute), 3))
	add(t, st, batch(2, hour.Add(50*time.Minute), 4))
	add(t, st, batch(3, now, 1))
	check := func(minutes, hours int64) {
		t.Helper()
		if got := read(t, st, everything("one")).All.Hits; got != minutes+1 {
			t.Errorf("%d calls, want %d", got, minutes+1)
		}
		if got := ask[int64](t, url, "select coalesce(sum(hits), 0)::bigint from usage_hour"); got != hours {
			t.Errorf("%d calls in hours, want %d", got, hours)
		}
		for _, table := range []string{"latency_hour", "usage_api_hour"} { // without keys they are there at once
			if got := callsIn(t, url, table); got != minutes+1 {
				t.Errorf("%s: %d calls, want %d", table, got, minutes+1)
			}
		}
	}
	check(7, 0)
	want := 3 // the first lists the APIs, and the last makes the ranks of the hour
	if !dayOf(hour).Add(day).After(now.Add(-settled).Truncate(time.Hour)) {
		want = 4 // and those of the day, which is over, too
	}
	if n := sumAll(t, st, now); n != want {
		t.Errorf("an hour of one API was summed up in %d steps, want %d", n, want)
	}
	check(7, 7)
	if n := sumAll(t, st, now); n != 0 {
		t.Errorf("%d steps were taken without a change", n)
	}
	add(t, st, batch(4, hour.Add(5*time.Minute), 10)) // late
	check(17, 7)
	sumAll(t, st, now)
	check(17, 17)
}

func TestSumsAreRightWhileBatchesAreAdded(t *testing.T) {
	st, url := fresh(t)
	admins := []*store.Store{st, open(t, url)}
	now := time.Now()
	hour := now.Truncate(time.Hour).Add(-5 * time.Hour)
	const gateways, batches = 4, 40
	var want [gateways]int64
	var adding sync.WaitGroup
	for g := range gateways {
		adding.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(g)))
			for i := range int64(batches) {
				b := &usage.Batch{Gateway: fmt.Sprint("gw", g), Boot: "b", Sequence: i + 1}
				for range 20 {
					r := usage.Row{
						Minute: hour.Unix() + 60*random.Int64N(180), Org: "one", API: fmt.Sprint("api", random.IntN(3)),
						Key: fmt.Sprint("key", random.IntN(5)), Status: 200 + random.IntN(2), Hits: 1 + random.Int64N(9),
					}
					want[g] += r.Hits
					b.Rows = append(b.Rows, r)
				}
				for range 1 + random.IntN(2) { // some are handed over again
					if _, err := Add(t.Context(), admins[random.IntN(2)], b, now); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { adding.Wait(); close(done) }()
	var summing sync.WaitGroup
	for _, admin := range admins {
		summing.Go(func() {
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				if _, err := Sum(t.Context(), admin, now); err != nil && !errors.Is(err, ErrBusy) {
					t.Error(err)
				}
				if _, err := Keep(t.Context(), admin, now, long); err != nil && !errors.Is(err, ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	summing.Wait()
	sumAll(t, st, now)
	all := int64(0)
	for _, n := range want {
		all += n
	}
	if got := read(t, st, everything("one")).All.Hits; got != all {
		t.Errorf("%d calls, want %d", got, all)
	}
	for _, table := range []string{"usage_minute", "usage_hour"} {
		if got := ask[int64](t, url, "select sum(hits)::bigint from "+table); got != all {
			t.Errorf("%s: %d calls, want %d", table, got, all)
		}
	}
	for _, table := range []string{"usage_api_minute", "usage_api_hour"} {
		if got := callsIn(t, url, table); got != all {
			t.Errorf("%s: %d calls, want %d", table, got, all)
		}
	}
}

// group is the grouping of a Group without its key.
type group struct {
	at          int64
	api, reason string
	status      int
}

// withoutKeys adds up groups of all keys.
func withoutKeys(groups []Group) map[group]Sums {
	all := make(map[group]Sums)
	for i := range groups {
		g := &groups[i]
		at := group{g.At.Unix(), g.API, g.Reason, g.Status}
		sum := all[at]
		all[at] = Sums{sum.Hits + g.Hits, sum.Errors + g.Errors, sum.Total + g.Total, sum.Upstream + g.Upstream}
	}
	return all
}

func TestSumsWithoutKeysAreThoseOfAllKeys(t *testing.T) {
	st, _ := fresh(t)
	now := time.Now().UTC()
	random := rand.New(rand.NewPCG(5, 8))
	hour := now.Truncate(time.Hour)
	sequence := int64(0)
	addSome := func(at time.Time, minutes int) {
		for range 5 {
			sequence++
			b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: sequence}
			for range 60 {
				status := []int{0, 200, 200, 403, 500}[random.IntN(5)]
				b.Rows = append(b.Rows, usage.Row{
					Minute: at.Unix() + 60*random.Int64N(int64(minutes)), Org: []string{"one", "two"}[random.IntN(2)], API: []string{"a", "b", "c"}[random.IntN(3)],
					Key: []string{"", "k", "l", "m"}[random.IntN(4)], Status: status, Reason: map[int]string{403: "quota_exceeded"}[status],
					Hits: 1 + random.Int64N(5), Total: random.Int64N(100), Upstream: random.Int64N(100),
				})
			}
			add(t, st, b)
		}
	}
	check := func(minutes bool) {
		t.Helper()
		for n := range 60 {
			q := everything("one")
			q.Page.Max = 1000
			q.By = Grouping{API: n&1 != 0, Status: n&2 != 0, Reason: n&4 != 0}
			q.Step = []string{"", "hour", "day"}[n%3]
			q.API, q.Refused = []string{"", "b"}[n/8%2], n%5 == 0
			if n%7 == 0 {
				q.Status = 403
			}
			if minutes {
				q.Minutes, q.Step, q.Since = true, "minute", hour.Add(-5*time.Hour)
			}
			keyless := read(t, st, q)
			q.By.Key = true
			keyed := read(t, st, q)
			if len(keyless.Groups) == 0 || int(keyed.Count) != len(keyed.Groups) {
				t.Fatalf("%+v: %d groups, %d of %d with keys", q, len(keyless.Groups), len(keyed.Groups), keyed.Count)
			}
			if keyless.All != keyed.All || !maps.Equal(withoutKeys(keyless.Groups), withoutKeys(keyed.Groups)) {
				t.Fatalf("%+v:\nwithout keys %+v\nwith keys    %+v", q, keyless, keyed)
			}
		}
	}
	addSome(hour.Add(-4*time.Hour), 180)
	check(true)
	sumAll(t, st, now)
	check(false)
	addSome(hour.Add(-3*time.Hour), 60) // late
	check(true)
	check(false)
	keep(t, st, now.AddDate(0, 0, 20), long)
	sumAll(t, st, now.AddDate(0, 0, 20))
	if !keep(t, st, now.AddDate(0, 0, 20), long) {
		t.Fatal("the minutes are not dropped")
	}
	check(false)
	addSome(hour.Add(-4*time.Hour), 60) // when the minutes are gone
	sumAll(t, st, now)
	check(false)
}

func TestAQueryThatReadsTooMuchIsRefused(t *testing.T) {
	st, url := fresh(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	insert := `insert into usage_hour select 'one', date_trunc('hour', now(), 'UTC') - interval '30 hours', 'api' || n % 2, n, 200, '', 1, 0, 0, 0 from generate_series($1::int, $2::int) n`
	if _, err := conn.Exec(t.Context(), insert, 1, MostKeyed); err != nil {
		t.Fatal(err)
	}
	q := everything("one")
	q.By.Key, q.By.Status = true, true
	if got := read(t, st, q); got.All.Hits != MostKeyed || got.Count != MostKeyed {
		t.Errorf("%+v, %d groups", got.All, got.Count)
	}
	if _, err := conn.Exec(t.Context(), insert, MostKeyed+1, MostKeyed+1); err != nil {
		t.Fatal(err)
	}
	for _, page := range []store.Page{{Max: 10}, {Skip: 900_000, Max: 10}} {
		q.Page = page
		if _, err := Read(t.Context(), st, q); !isTooMuch(err) {
			t.Errorf("%+v: %v", page, err)
		}
	}
	q.API = "api1"
	if got := read(t, st, q); got.All.Hits != MostKeyed/2+1 {
		t.Errorf("of one API: %+v", got.All)
	}
}

func TestOneAdminSumsUpAtATime(t *testing.T) {
	st, url := fresh(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "select pg_advisory_lock(7209771)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Sum(t.Context(), st, time.Now()); !errors.Is(err, ErrBusy) {
		t.Errorf("Sum: %v", err)
	}
	if _, err := Keep(t.Context(), st, time.Now(), Retention{Minutes: time.Hour, Hours: time.Hour}); !errors.Is(err, ErrBusy) {
		t.Errorf("Keep: %v", err)
	}
}

// partitions lists the partitions of a table by the end of their names.
func partitions(t testing.TB, url, table string) string {
	t.Helper()
	return ask[string](t, url, `select coalesce(string_agg(substring(inhrelid::regclass::text from length($1) + 2), ' ' order by inhrelid::regclass::text), '')
		from pg_inherits where inhparent = $1::regclass`, table)
}

var long = Retention{Minutes: 8 * 24 * time.Hour, Hours: 400 * 24 * time.Hour}

func keep(t testing.TB, st *store.Store, at time.Time, r Retention) bool {
	t.Helper()
	done, err := Keep(t.Context(), st, at, r)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestPartitionsAreMadeAheadAndDroppedAfterTheirTime(t *testing.T) {
	st, url := fresh(t)
	day := func(n int) time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, n) }
	names := func(from, to int) (all []string) {
		for n := from; n <= to; n++ {
			all = append(all, day(n).Format("20060102"))
		}
		return append(all, "default")
	}
	if got, want := partitions(t, url, "usage_minute"), strings.Join(names(-1, 3), " "); got != want {
		t.Errorf("at first: %s, want %s", got, want)
	}
	for n := 1; n <= 12; n++ {
		if !keep(t, st, day(n).Add(time.Hour), long) {
			t.Errorf("day %d: nothing was dropped", n)
		}
	}
	for _, table := range []string{"usage_minute", "usage_api_minute", "latency_minute"} {
		if got, want := partitions(t, url, table), strings.Join(names(12-8-0, 15), " "); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
	later := time.Now().UTC().AddDate(0, 18, 0)
	keep(t, st, later, long)
	first := later.Add(-long.Hours).Format("200601") + "01"
	for _, table := range []string{"usage_hour", "usage_api_hour", "latency_hour"} {
		for name := range strings.FieldsSeq(partitions(t, url, table)) {
			if name != "default" && name < first {
				t.Errorf("%s: %s is older than %s", table, name, first)
			}
		}
	}
	if floor, err := Floor(t.Context(), st); err != nil || !floor.Equal(later.Add(-long.Minutes).Truncate(24*time.Hour)) {
		t.Errorf("floor %v, %v", floor, err)
	}
}

func TestRowsOfADayWithoutAPartitionMoveIntoIt(t *testing.T) {
	st, url := fresh(t)
	now := time.Now().UTC()
	b := batch(1, now.AddDate(0, 0, -5), 7)
	add(t, st, b)
	if n := ask[int](t, url, "select count(*) from usage_minute_default"); n != 1 {
		t.Fatalf("%d rows in the default partition", n)
	}
	past := now.AddDate(0, 0, -5)
	keep(t, st, past, long)
	if n := ask[int](t, url, "select count(*) from usage_minute_default"); n != 0 {
		t.Errorf("%d rows stayed in the default partition", n)
	}
	if got := ask[int](t, url, "select hits from usage_minute_"+past.Format("20060102")); got != 7 {
		t.Errorf("%d calls moved", got)
	}
	if got := read(t, st, everything("one")).All.Hits; got != 7 {
		// Their hour was before the floor, so that only a sum shows them.
		sumAll(t, st, now)
		if got = read(t, st, everything("one")).All.Hits; got != 7 {
			t.Errorf("%d calls", got)
		}
	}
}

func TestMinutesThatComeAfterTheirTimeAreAddedToTheirHour(t *testing.T) {
	st, url := fresh(t)
	now := time.Now().UTC()
	hour := now.Truncate(time.Hour).Add(-3 * time.Hour)
	add(t, st, batch(1, hour, 5))
	later := now.AddDate(0, 0, 20)
	if keep(t, st, later, long) {
		t.Error("minutes were dropped that are not summed up")
	}
	sumAll(t, st, later)
	if !keep(t, st, later, long) {
		t.Error("nothing was dropped")
	}
	if n := ask[int](t, url, "select count(*) from usage_minute"); n != 0 {
		t.Errorf("%d rows of minutes are left", n)
	}
	for i := range int64(3) {
		add(t, st, batch(2+i, hour, 5))
		if i < 2 {
			sumAll(t, st, later)
			sumAll(t, st, later)
		}
	}
	sumAll(t, st, later)
	if got := read(t, st, everything("one")); got.All.Hits != 20 {
		t.Errorf("%d calls, want 20", got.All.Hits)
	}
	if n := ask[int](t, url, "select sum(calls)::int from latency_hour where api_id <> ''"); n != 20 {
		t.Errorf("%d latencies, want 20", n)
	}
	if n := ask[int](t, url, "select count(*) from usage_minute"); n != 0 {
		t.Errorf("%d rows of minutes are left", n)
	}
}

func TestAClockThatIsAheadCountsForNow(t *testing.T) {
	st, _ := fresh(t)
	now := time.Now()
	add(t, st, batch(1, now.AddDate(1, 0, 0), 5))
	q := everything("one")
	q.Step = "minute"
	q.Minutes, q.Since = true, now.Add(-time.Hour)
	if got := read(t, st, q); len(got.Groups) != 1 || !got.Groups[0].At.Equal(now.UTC().Truncate(time.Minute)) {
		t.Errorf("%+v", got)
	}
}

func TestCallsAreGroupedAndFiltered(t *testing.T) {
	st, _ := fresh(t)
	now := time.Now().UTC()
	this := now.Truncate(time.Hour)
	b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: 1}
	for i, at := range []time.Time{this.Add(-50 * time.Hour), this.Add(-50*time.Hour + time.Minute), now.Truncate(time.Minute)} {
		for _, r := range []usage.Row{
			{API: "a", Key: "k1", Status: 200, Hits: 10},
			{API: "a", Key: "k2", Status: 200, Hits: 20},
			{API: "a", Key: "k2", Status: 403, Reason: "quota_exceeded", Hits: 3},
			{API: "b", Status: 401, Reason: "auth_missing", Hits: 2},
			{API: "b", Status: 500, Hits: 1},
		} {
			r.Org, r.Minute, r.Hits = "one", at.Unix(), r.Hits*int64(i+1)
			b.Rows = append(b.Rows, r)
		}
	}
	add(t, st, b)
	sumAll(t, st, now)
	k2, nobody := "k2", ""
	for name, c := range map[string]struct {
		change func(*Query)
		want   string
	}{
		"nothing":        {func(*Query) {}, "    216/36"},
		"apis":           {func(q *Query) { q.By.API = true }, "a    198/18, b    18/18"},
		"keys":           {func(q *Query) { q.By.Key = true }, " k2   138/18,  k1   60/0,     18/18"},
		"statuses":       {func(q *Query) { q.By.Status = true }, "  200  180/0,   403  18/18,   401  12/12,   500  6/6"},
		"reasons of a":   {func(q *Query) { q.By.Reason, q.API = true, "a" }, "    180/0,    quota_exceeded 18/18"},
		"refusals":       {func(q *Query) { q.By.Reason, q.Refused = true, true }, "   quota_exceeded 18/18,    auth_missing 12/12"},
		"a key":          {func(q *Query) { q.Key = &k2 }, "    138/18"},
		"nobody":         {func(q *Query) { q.Key, q.By.API = &nobody, true }, "b    18/18"},
		"a status":       {func(q *Query) { q.Status = 500 }, "    6/6"},
		"a reason":       {func(q *Query) { q.Reason, q.By.API = "auth_missing", true }, "b    12/12"},
		"days":           {func(q *Query) { q.Step, q.API, q.Status = "day", "a", 200 }, "    90/0,     90/0"},
		"hours":          {func(q *Query) { q.Step, q.Key = "hour", &k2 }, "    69/9,     69/9"},
		"the second api": {func(q *Query) { q.By.API, q.Page = true, store.Page{Skip: 1, Max: 1} }, "b    18/18"},
		"nothing at all": {func(q *Query) { q.API = "'; drop table usage_hour; --" }, ""},
	} {
		q := everything("one")
		c.change(q)
		var got []string
		for _, g := range read(t, st, q).Groups {
			status := ""
			if g.Status != 0 {
				status = fmt.Sprint(g.Status)
			}
			got = append(got, fmt.Sprintf("%s %s %s %s %d/%d", g.API, g.Key, status, g.Reason, g.Hits, g.Errors))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
	q := everything("one")
	q.By.API, q.Page = true, store.Page{Skip: 50, Max: 10}
	if got := read(t, st, q); len(got.Groups) != 0 || got.Count != 2 || got.All.Hits != 216 {
		t.Errorf("beyond the last page: %+v", got)
	}
}
