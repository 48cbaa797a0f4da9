package usage

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition/usage"
)

// A Query says which calls of an organisation are summed up, and how.
type Query struct {
	Org          string
	Since, Until time.Time // full minutes, or full hours unless Minutes
	Minutes      bool      // only minutes are asked, which are there from Floor on
	Step         string    // minute, hour or day; "": all is one
	By           Grouping

	API     string  // "": all
	Key     *string // what rows call it; nil: all
	Status  int     // less than 0: all
	Reason  string  // "": all
	Refused bool    // only what the gateway refused or failed

	Page store.Page
}

// ErrTooMuch says that more would have to be read for an answer than is good for
// the database.
var ErrTooMuch = errors.New("too many rows to add up")

// What is read for an answer at most: either takes less than a second of a
// processor.
const (
	MostKeyed = 150_000   // rows by key
	MostSums  = 1_000_000 // rows of sums
)

// keyed tells whether only rows by key have the answer.
func (q *Query) keyed() bool { return q.By.Key || q.Key != nil }

// Grouping says what calls are told apart by.
type Grouping struct{ API, Key, Status, Reason bool }

// Sums are the numbers of some calls.
type Sums struct {
	Hits, Errors    int64
	Total, Upstream int64 // microseconds summed up, which time.Duration does not hold of a busy year
}

// A Group is a row of an answer.
type Group struct {
	At       time.Time // beginning of the step
	API, Key string
	Status   int
	Reason   string
	Sums
	Latencies []int64 // see usage.Latencies; nil: not known for such a group
}

// Answer is a page of groups, and what all of them come to.
type Answer struct {
	Since, Until time.Time // what was added up; see Read

	Groups []Group
	Count  int64 // of groups on all pages
	All    Sums
}

// Floor returns where the minutes begin that are all there.
func Floor(ctx context.Context, st *store.Store) (time.Time, error) {
	floor, err := st.Read().UsageFloor(ctx)
	return floor.UTC(), store.Translate(err)
}

// Read sums up calls. What was added before is in the answer. Only where it is asked
// which keys called most, and very many rows have come since hours were summed up,
// the answer ends before those; and it is one of full hours, though minutes were
// asked, when these are too many. The error is ErrTooMuch when too many rows would
// have to be read.
func Read(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	switch {
	case q.topAPIs():
		return readAPIs(ctx, st, q)
	case !q.ranked():
		return readRows(ctx, st, q)
	}
	if !q.Minutes {
		if a, err := readRanked(ctx, st, q); !errors.Is(err, errUnranked) {
			return a, err
		}
	}
	a, err := readRows(ctx, st, q)
	if !errors.Is(err, ErrTooMuch) || !q.Minutes {
		return a, err
	}
	full := *q
	full.Minutes, full.Since, full.Until = false, q.Since.Truncate(time.Hour), q.Until.Add(time.Hour-1).Truncate(time.Hour)
	if a, err = readRanked(ctx, st, &full); errors.Is(err, errUnranked) {
		err = ErrTooMuch
	}
	return a, err
}

// readRows is Read of the rows that there are.
func readRows(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	p, err := q.params(ctx, st)
	if err != nil {
		return nil, err
	}
	rows, err := st.Read().ReadUsage(ctx, p)
	shown := len(rows)
	if err == nil && shown == 0 && p.Skip > 0 { // beyond the last page: the totals are wanted all the same
		first := p
		first.Skip, first.Max = 0, 1
		rows, err = st.Read().ReadUsage(ctx, first)
	}
	switch {
	case err != nil:
		return nil, store.Translate(err)
	case len(rows) > 0 && rows[0].AllRows >= int64(p.Most):
		return nil, ErrTooMuch
	}
	a := answerOf(rows, shown)
	a.Since, a.Until = q.Since, q.Until
	if q.hasLatencies() && len(a.Groups) > 0 {
		err = tellLatencies(ctx, st, &p, a.Groups)
	}
	return a, err
}

// params turns a query into what the statement takes. Hours by key are asked as far
// as they are summed up, and minutes from there on.
func (q *Query) params(ctx context.Context, st *store.Store) (db.ReadUsageParams, error) {
	p := db.ReadUsageParams{
		Step: q.Step, Since: q.Since, Until: q.Until, Split: q.Since, OrgID: q.Org,
		ByAPI: q.By.API, ByKey: q.By.Key, ByStatus: q.By.Status, ByReason: q.By.Reason,
		APIID: q.API, Status: int32(q.Status), Reason: q.Reason, Refused: q.Refused,
		Max: q.Page.Limit(), Skip: q.Page.Offset(), Most: MostSums + 1,
	}
	if q.Key != nil {
		p.OfKey, p.KeyHash = true, *q.Key
	}
	if p.Keyed = q.keyed(); p.Keyed {
		p.Most = MostKeyed + 1
	}
	p.EachAPI = q.By.API && q.API == ""
	switch {
	case q.Minutes:
		return p, nil
	case !p.Keyed:
		p.Split = q.Until
		return p, nil
	}
	floor, err := Floor(ctx, st)
	if err != nil {
		return p, err
	}
	if floor.Before(q.Since) {
		floor = q.Since
	}
	p.Split, err = st.Read().FirstMarkedHour(ctx, db.FirstMarkedHourParams{Since: floor, Until: q.Until})
	if err = store.Translate(err); errors.Is(err, store.ErrNotFound) {
		p.Split, err = q.Until, nil
	}
	return p, err
}

// hasLatencies tells whether it is known how long the calls of each group took.
func (q *Query) hasLatencies() bool {
	return !q.By.Key && !q.By.Status && !q.By.Reason && q.Key == nil && q.Status < 0 && q.Reason == "" && !q.Refused
}

func answerOf(rows []db.ReadUsageRow, shown int) *Answer {
	a := &Answer{Groups: make([]Group, 0, shown)}
	if len(rows) > 0 {
		r := &rows[0]
		a.Count, a.All = r.Groups, sumsOf(r.AllHits, r.AllErrors, r.AllTotalUs, r.AllUpstreamUs)
	}
	for i := range rows[:shown] {
		r := &rows[i]
		a.Groups = append(a.Groups, Group{
			At: r.StepAt.UTC(), API: r.APIID, Key: r.KeyHash, Status: int(r.Status), Reason: r.Reason,
			Sums: sumsOf(r.Hits, r.Errors, r.TotalUs, r.UpstreamUs),
		})
	}
	return a
}

func sumsOf(hits, errors, total, upstream int64) Sums {
	return Sums{Hits: hits, Errors: errors, Total: total, Upstream: upstream}
}

// tellLatencies tells of each group how long its calls took.
func tellLatencies(ctx context.Context, st *store.Store, p *db.ReadUsageParams, groups []Group) error {
	type group struct {
		at  int64
		api string
	}
	l := db.ReadLatenciesParams{Step: p.Step, Since: p.Since, Split: p.Split, Until: p.Until, OrgID: p.OrgID}
	places := make(map[group]*Group, len(groups))
	for i := range groups {
		g := &groups[i]
		api := g.API
		if !p.ByAPI {
			api = p.APIID
		}
		places[group{g.At.Unix(), api}] = g
		l.Steps, l.APIs = append(l.Steps, g.At), append(l.APIs, api)
	}
	rows, err := st.Read().ReadLatencies(ctx, l)
	for _, r := range rows {
		g := places[group{r.StepAt.Unix(), r.APIID}]
		if g == nil || r.Size < 0 || int(r.Size) >= usage.Buckets {
			continue
		}
		if g.Latencies == nil {
			g.Latencies = make([]int64, usage.Buckets)
		}
		g.Latencies[r.Size] += r.Calls
	}
	return store.Translate(err)
}
