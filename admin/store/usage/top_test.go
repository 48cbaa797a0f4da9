package usage

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/usage"
)

// execute runs statements without answers.
func execute(t testing.TB, url string, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// topKeys asks which keys of organisation one called most.
func topKeys(since, until time.Time) *Query {
	return &Query{Org: "one", Since: since, Until: until, By: Grouping{Key: true}, Status: -1, Page: store.Page{Max: 1000}}
}

// sameTopAPIs is sameTopKeys for APIs.
func sameTopAPIs(t *testing.T, st *store.Store, since, until time.Time) {
	t.Helper()
	q := &Query{Org: "one", Since: since, Until: until, By: Grouping{API: true}, Status: -1, Page: store.Page{Max: 3}}
	for range 2 { // a page, and what is beyond the last one
		got, err := readTopAPIs(t.Context(), st, q)
		if err != nil {
			t.Fatal(err)
		}
		want, err := readRows(t.Context(), st, q)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%v to %v:\nranks %+v\nrows  %+v", since, until, got, want)
		}
		q.Page.Skip = 50
	}
}

// sameTopKeys reports where an answer from ranks differs from one from rows.
func sameTopKeys(t *testing.T, st *store.Store, url string, q *Query) {
	t.Helper()
	got, err := readTopKeys(t.Context(), st, q)
	if err != nil {
		t.Fatal(err)
	}
	want, err := readRows(t.Context(), st, q)
	if err != nil {
		t.Fatal(err)
	}
	byKey := func(a *Answer) map[string]Sums {
		all := make(map[string]Sums)
		for _, g := range a.Groups {
			all[g.Key] = g.Sums
		}
		return all
	}
	// Hours without keys are up to date at once; hours by key before the floor are when
	// they are summed up.
	if marked := ask[int](t, url, "select count(*) from usage_marks"); marked == 0 && got.All != want.All {
		t.Fatalf("%v to %v, refused %t: ranks come to %+v, rows to %+v", q.Since, q.Until, q.Refused, got.All, want.All)
	}
	if got.Count != want.Count || len(got.Groups) != len(want.Groups) || !maps.Equal(byKey(got), byKey(want)) {
		t.Fatalf("%v to %v, refused %t:\nranks %+v\nrows  %+v", q.Since, q.Until, q.Refused, got, want)
	}
	if !slices.IsSortedFunc(got.Groups, func(x, y Group) int { return int(y.Hits - x.Hits) }) {
		t.Fatalf("not in order: %+v", got.Groups)
	}
	page := *q
	page.Page = store.Page{Skip: 3, Max: 4}
	some, err := readTopKeys(t.Context(), st, &page)
	if err != nil || some.Count != got.Count || some.All != got.All || !slices.EqualFunc(some.Groups, got.Groups[min(3, len(got.Groups)):min(7, len(got.Groups))], func(x, y Group) bool { return x.Key == y.Key && x.Sums == y.Sums }) {
		t.Fatalf("a page: %+v, %v", some, err)
	}
}

func TestRanksAndRowsGiveTheSameAnswers(t *testing.T) {
	st, url := fresh(t)
	now := time.Now().UTC()
	random := rand.New(rand.NewPCG(21, 4))
	hour := now.Truncate(time.Hour)
	sequence := int64(0)
	addSome := func(from time.Time, hours int64, keys int) {
		for range 4 {
			sequence++
			b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: sequence}
			for range 500 {
				status := []int{200, 200, 429, 500}[random.IntN(4)]
				b.Rows = append(b.Rows, usage.Row{
					Minute: from.Unix() + 60*random.Int64N(60*hours), Org: []string{"one", "one", "two"}[random.IntN(3)], API: []string{"a", "b"}[random.IntN(2)],
					Key: []string{"", usage.Other, fmt.Sprint("k", random.IntN(keys))}[min(random.IntN(20), 2)], Status: status, Reason: map[int]string{429: "rate_limit"}[status],
					Hits: 1 + random.Int64N(300), Total: random.Int64N(100), Upstream: random.Int64N(100),
				})
			}
			add(t, st, b)
		}
	}
	check := func() {
		t.Helper()
		for n := range 25 {
			since := hour.Add(-time.Duration(random.IntN(80)) * time.Hour)
			q := topKeys(since, since.Add(time.Duration(1+random.IntN(70))*time.Hour))
			q.Refused = n%3 == 0
			sameTopKeys(t, st, url, q)
			sameTopAPIs(t, st, q.Since, q.Until)
		}
		sameTopKeys(t, st, url, topKeys(dayOf(hour).Add(-3*day), hour.Add(time.Hour)))
		sameTopAPIs(t, st, dayOf(hour).Add(-3*day), hour.Add(time.Hour))
	}
	addSome(hour.Add(-75*time.Hour), 75, 20)
	check() // nothing is summed up
	for range 40 {
		if _, err := Sum(t.Context(), st, now); err != nil {
			t.Fatal(err)
		}
	}
	check() // some hours are
	sumAll(t, st, now)
	check()
	addSome(hour.Add(-50*time.Hour), 40, 40) // late, and of keys that are new
	check()
	sumAll(t, st, now)
	check()
	later := now.AddDate(0, 0, 20)
	sumAll(t, st, later)
	if !keep(t, st, later, long) {
		t.Fatal("the minutes are not dropped")
	}
	check()
	addSome(hour.Add(-50*time.Hour), 40, 10) // when the minutes are gone
	sumAll(t, st, later)
	check()
}

func TestTooManyRowsAfterTheLastRanksAreLeftOut(t *testing.T) {
	st, url := fresh(t)
	now := time.Now().UTC()
	hour := now.Truncate(time.Hour)
	add(t, st, batch(1, hour.Add(-3*time.Hour), 5))
	sumAll(t, st, now)
	add(t, st, batch(2, now, 7))
	q := topKeys(hour.Add(-5*time.Hour), hour.Add(time.Hour))
	if a := read(t, st, q); a.All.Hits != 12 || !a.Until.Equal(q.Until) {
		t.Errorf("with little: %+v", a)
	}
	insert := `insert into usage_minute select 'one', $1, 'a', 'key' || n, 200, '', 9, 0, 0, 0 from generate_series(1, $2::int) n on conflict do nothing`
	execute(t, url, insert, now.Truncate(time.Minute), MostKeyed)
	execute(t, url, `insert into usage_api_hour select 'one', $1, 'a', 200, '', 9 * $2::int, 0, 0, 0 on conflict do nothing`, hour, MostKeyed)
	a := read(t, st, q)
	if a.All.Hits != 5 || a.Count != 1 || a.Groups[0].Key != "k" || a.Groups[0].Hits != 5 || !a.Until.Equal(hour) || !a.Since.Equal(q.Since) {
		t.Errorf("with much: %+v", a)
	}
	late := batch(3, hour.Add(-4*time.Hour), 2) // an hour that has no ranks yet, long before
	add(t, st, late)
	if a := read(t, st, q); a.All.Hits != 0 || !a.Until.Equal(hour.Add(-4*time.Hour)) {
		t.Errorf("with an hour without ranks: %+v", a)
	}
	again := batch(4, hour.Add(-3*time.Hour), 2) // one that has some
	sumAll(t, st, now)
	add(t, st, again)
	if a := read(t, st, q); !a.Until.Equal(hour) || a.Count != 1 {
		t.Errorf("with an hour that has changed: %+v", a)
	}
	execute(t, url, insert, now.Truncate(time.Minute), MostKeyed+1)
	q.Since, q.Minutes = hour.Add(-2*time.Hour-time.Minute), true
	if a := read(t, st, q); !a.Until.Equal(hour) || !a.Since.Equal(hour.Add(-3*time.Hour)) || a.Count != 1 {
		t.Errorf("by minutes: %+v", a)
	}
}

func TestPartitionsOfRanksAreDroppedWithTheirHours(t *testing.T) {
	st, url := fresh(t)
	keep(t, st, time.Now().UTC().AddDate(0, 18, 0), long)
	for _, table := range []string{"usage_key_rank", "usage_api_rank"} {
		if got, want := partitions(t, url, table), partitions(t, url, "usage_hour"); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
}
