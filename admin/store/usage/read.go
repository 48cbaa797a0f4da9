package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/usage"
)

// A Query selects calls of an organisation, and how they are summed up.
type Query struct {
	Org          string
	Since, Until time.Time // full minutes, or full hours unless Minutes
	Minutes      bool      // only minutes are read, which are there from Floor on
	Step         string    // minute, hour or day; "": all is one
	By           Grouping

	API     string  // "": all
	Key     *string // as in rows; nil: all
	Status  int     // less than 0: all
	Reason  string  // "": all
	Refused bool    // only what the gateway refused or failed

	Page store.Page
}

// TooMuchError means that an answer would take more than Most rows, which is what the
// database should read at once.
type TooMuchError struct{ Most int }

// Error returns the number of rows.
func (e *TooMuchError) Error() string {
	return fmt.Sprintf("more than %d rows would have to be added up", e.Most)
}

func isTooMuch(err error) bool {
	var much *TooMuchError
	return errors.As(err, &much)
}

// Limits of the rows that are read for an answer.
const (
	MostKeyed  = 150_000   // by key
	MostSums   = 1_000_000 // without keys
	MostRanked = 5_000_000 // of the ranks of keys: 160,000 keys on every day of a month
)

// keyed reports whether rows by key are needed.
func (q *Query) keyed() bool { return q.By.Key || q.Key != nil }

// Grouping is what calls are grouped by.
type Grouping struct{ API, Key, Status, Reason bool }

// Sums are the numbers of some calls.
type Sums struct {
	Hits, Errors    int64
	Total, Upstream int64 // microseconds; a time.Duration is too small for a busy year
}

// A Group is a row of an answer.
type Group struct {
	At       time.Time // beginning of the step
	API, Key string
	Status   int
	Reason   string
	Sums
	Latencies []int64 // see usage.Latencies; nil: not known for this grouping
}

// Answer is a page of groups, and the sums of all pages.
type Answer struct {
	Since, Until time.Time // of what was added up; see Read

	Groups []Group
	Count  int64 // of groups on all pages
	All    Sums
}

// Floor returns the time from which on minutes are complete.
func Floor(ctx context.Context, st *store.Store) (time.Time, error) {
	floor, err := st.Read().UsageFloor(ctx)
	return floor.UTC(), store.Translate(err)
}

// Names returns the names of APIs and the aliases of keys of an organisation, as far as
// they are there and have one.
func Names(ctx context.Context, st *store.Store, org string, apis, keys []string) (names, aliases map[string]string, err error) {
	names, aliases = make(map[string]string, len(apis)), make(map[string]string, len(keys))
	if len(apis) > 0 {
		rows, err := st.Read().UsageAPINames(ctx, db.UsageAPINamesParams{OrgID: org, IDs: apis})
		if err != nil {
			return nil, nil, store.Translate(err)
		}
		for _, r := range rows {
			names[r.ID] = r.Name
		}
	}
	if len(keys) > 0 {
		rows, err := st.Read().UsageKeyAliases(ctx, db.UsageKeyAliasesParams{OrgID: org, Hashes: keys})
		if err != nil {
			return nil, nil, store.Translate(err)
		}
		for _, r := range rows {
			aliases[r.KeyHash] = r.Alias
		}
	}
	return names, aliases, nil
}

// Read sums up calls. What was added before is in the answer, with one exception: if the
// keys that called most are asked for and very many rows have come since hours were
// summed up, the answer ends before those, and has full hours though minutes were asked
// for. The error is a *TooMuchError if too many rows would have to be read.
func Read(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	switch {
	case q.topAPIs():
		return readTopAPIs(ctx, st, q)
	case !q.topKeys():
		return readRows(ctx, st, q)
	}
	if !q.Minutes {
		if a, err := readTopKeys(ctx, st, q); !errors.Is(err, errUnranked) {
			return a, err
		}
	}
	a, err := readRows(ctx, st, q)
	if !isTooMuch(err) || !q.Minutes {
		return a, err
	}
	full := *q
	full.Minutes, full.Since, full.Until = false, q.Since.Truncate(time.Hour), q.Until.Add(time.Hour-1).Truncate(time.Hour)
	if a, err = readTopKeys(ctx, st, &full); errors.Is(err, errUnranked) {
		err = &TooMuchError{MostKeyed}
	}
	return a, err
}

// readRows is Read without ranks.
func readRows(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	p, err := q.params(ctx, st)
	if err != nil {
		return nil, err
	}
	rows, err := st.Read().ReadUsage(ctx, p)
	shown := len(rows)
	if err == nil && shown == 0 && p.Skip > 0 { // beyond the last page, whose totals are wanted
		first := p
		first.Skip, first.Max = 0, 1
		rows, err = st.Read().ReadUsage(ctx, first)
	}
	switch {
	case err != nil:
		return nil, store.Translate(err)
	case len(rows) > 0 && rows[0].AllRows >= int64(p.Most):
		return nil, &TooMuchError{int(p.Most) - 1}
	}
	a := answerOf(rows, shown)
	a.Since, a.Until = q.Since, q.Until
	if q.hasLatencies() && len(a.Groups) > 0 {
		err = readLatencies(ctx, st, &p, a.Groups)
	}
	return a, err
}

// params returns the parameters of the statement. Hours by key are read as far as they
// are summed up, and minutes from there on.
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
	var err error
	p.Split, err = splitOf(ctx, st, q.Since, q.Until)
	return p, err
}

// hasLatencies reports whether the latencies of each group are known.
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

// readLatencies sets the latencies of groups.
func readLatencies(ctx context.Context, st *store.Store, p *db.ReadUsageParams, groups []Group) error {
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
