package usage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// maxTail is how many rows that have no ranks yet are added up with those that
// have: more would take longer than all the rest. They are left out of the answer.
const maxTail = 20_000

// errUnranked says that ranks have nothing of what is asked.
var errUnranked = errors.New("not ranked")

// ranked tells whether the ranks of keys have the answer.
func (q *Query) ranked() bool {
	return q.By == Grouping{Key: true} && q.Step == "" && q.API == "" && q.Key == nil && q.Status < 0 && q.Reason == ""
}

// ranking is a question that ranks answer.
type ranking struct {
	q     *Query
	days  []time.Time // that are read whole
	hours []time.Time // that are read beside them
	from  time.Time   // where rows are read from, hours until split, minutes from there
	split time.Time
	until time.Time

	calls tally            // of all keys
	late  map[string]int64 // of keys without a number
}

// readRanked answers which keys called most. The answer ends where ranks end, when
// too much has come after them.
func readRanked(ctx context.Context, st *store.Store, q *Query) (*Answer, error) {
	r := &ranking{q: q, until: q.Until, late: make(map[string]int64)}
	if err := r.plan(ctx, st); err != nil {
		return nil, err
	}
	packed, err := st.Read().Ranks(ctx, db.RanksParams{OrgID: q.Org, Refused: q.Refused, Days: r.days, Hours: r.hours})
	if err != nil {
		return nil, store.Translate(err)
	}
	for i := range packed {
		if err := r.calls.unpack(packed[i]); err != nil {
			return nil, err
		}
	}
	a := &Answer{Since: q.Since, Until: r.until, Count: int64(len(r.late))}
	for _, n := range r.calls {
		if n > 0 {
			a.Count++
		}
	}
	if a.Groups, err = r.groups(ctx, st); err != nil {
		return nil, err
	}
	a.All, err = totals(ctx, st, q, r.until)
	return a, err
}

// plan finds out what is read of what. Best is what has changed since is read from
// rows; when these are too many, ranks that lack it are taken.
func (r *ranking) plan(ctx context.Context, st *store.Store) error {
	q := r.q
	due, err := st.Read().DueRanks(ctx, db.DueRanksParams{OrgID: q.Org, Since: dayOf(q.Since), Until: q.Until})
	if err != nil {
		return store.Translate(err)
	}
	p, err := q.params(ctx, st)
	if err != nil {
		return err
	}
	exact, there := p.Split, q.Until
	changed := make(map[time.Time]bool) // days
	for _, d := range due {
		switch at := d.Bucket.UTC(); {
		case d.Hours == 24:
			changed[at] = true
		case at.Before(q.Since):
		default:
			exact = earlier(exact, at)
			if d.Missing {
				there = earlier(there, at)
			}
		}
	}
	r.split = p.Split
	enough, err := r.tail(ctx, st, exact)
	if err == nil && !enough {
		if there, err = firstWithout(ctx, st, q, there); err == nil && there.After(exact) {
			enough, err = r.tail(ctx, st, there)
		}
	}
	switch {
	case err != nil:
		return err
	case !enough && !there.After(q.Since):
		return errUnranked
	case !enough:
		r.from, r.split, r.until = there, there, there
	}
	r.days, r.hours, _ = spread(q.Since, r.from, changed, nil)
	return nil
}

// spread divides a range into the days and hours whose ranks are read, and live
// hours, which are read as rows. Days that have changed are read by hours.
func spread(since, until time.Time, changed, live map[time.Time]bool) (days, hours, rows []time.Time) {
	for at := since.UTC(); at.Before(until); {
		switch {
		case dayOf(at).Equal(at) && !at.Add(day).After(until) && !changed[at]:
			days = append(days, at)
			at = at.Add(day)
			continue
		case live[at]:
			rows = append(rows, at)
		default:
			hours = append(hours, at)
		}
		at = at.Add(time.Hour)
	}
	return days, hours, rows
}

// earlier returns the first of two moments.
func earlier(x, y time.Time) time.Time {
	if y.Before(x) {
		return y
	}
	return x
}

// firstWithout returns the first hour without ranks, which is known to be no later
// than one.
func firstWithout(ctx context.Context, st *store.Store, q *Query, known time.Time) (time.Time, error) {
	floor, err := Floor(ctx, st)
	if err != nil {
		return known, err
	}
	if floor.Before(q.Since) {
		floor = q.Since
	}
	first, err := st.Read().FirstUnranked(ctx, db.FirstUnrankedParams{OrgID: q.Org, Since: floor, Until: known})
	if err = store.Translate(err); errors.Is(err, store.ErrNotFound) {
		return known, nil
	}
	return first.UTC(), err
}

// tail adds up rows from a moment on, and tells whether these were few enough to.
func (r *ranking) tail(ctx context.Context, st *store.Store, from time.Time) (enough bool, err error) {
	if r.from = from; r.split.Before(from) {
		r.split = from
	}
	if !from.Before(r.until) {
		return true, nil
	}
	q := r.q
	rows, err := st.Read().TailByKey(ctx, db.TailByKeyParams{
		OrgID: q.Org, Since: from, Split: r.split, Until: r.until, Refused: q.Refused, Most: maxTail + 1,
	})
	if err != nil || len(rows) > 0 && rows[0].AllRows > maxTail {
		return false, store.Translate(err)
	}
	keys := make([]string, len(rows))
	for i := range rows {
		keys[i] = rows[i].KeyHash
		r.late[rows[i].KeyHash] = rows[i].Hits
	}
	numbers, err := st.Read().NumbersOf(ctx, db.NumbersOfParams{OrgID: q.Org, Keys: keys})
	if err != nil {
		return false, store.Translate(err)
	}
	for _, n := range numbers {
		r.calls.add(int(n.Number), r.late[n.KeyHash])
		delete(r.late, n.KeyHash)
	}
	return true, nil
}

// A caller is a key and how often it called.
type caller struct {
	number int    // less than 0: it has none
	key    string // of one without a number; others are named later
	calls  int64
}

// byCalls is the order of an answer.
func byCalls(x, y caller) int {
	return cmp.Or(cmp.Compare(y.calls, x.calls), cmp.Compare(x.number, y.number), cmp.Compare(x.key, y.key))
}

// page returns the callers of the page that is asked for.
func (r *ranking) page() []caller {
	first := int(r.q.Page.Offset())
	wanted := first + int(r.q.Page.Limit())
	var top []caller
	least := int64(0) // what a key must have more of
	take := func(c caller) {
		if c.calls <= least {
			return
		}
		if top = append(top, c); len(top) >= 2*wanted+1000 {
			slices.SortFunc(top, byCalls)
			top = top[:wanted]
			least = top[wanted-1].calls
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.late)) { // in the order of equals, as numbers are below
		take(caller{number: -1, key: key, calls: r.late[key]})
	}
	for number, calls := range r.calls {
		take(caller{number: number, calls: calls})
	}
	slices.SortFunc(top, byCalls)
	return top[min(first, len(top)):min(wanted, len(top))]
}

// groups tells all about the callers of the page.
func (r *ranking) groups(ctx context.Context, st *store.Store) ([]Group, error) {
	callers := r.page()
	if len(callers) == 0 {
		return []Group{}, nil
	}
	keys, err := r.name(ctx, st, callers)
	if err != nil {
		return nil, err
	}
	rows, err := st.Read().SumsOfKeys(ctx, db.SumsOfKeysParams{
		OrgID: r.q.Org, Keys: keys, Days: r.days, Hours: r.hours, Since: r.from, Split: r.split, Until: r.until, Refused: r.q.Refused,
	})
	if err != nil {
		return nil, store.Translate(err)
	}
	sums := make(map[string]Sums, len(rows))
	for _, s := range rows {
		sums[s.KeyHash] = sumsOf(s.Hits, s.Errors, s.TotalUs, s.UpstreamUs)
	}
	groups := make([]Group, len(callers))
	for i, key := range keys {
		groups[i] = Group{At: r.q.Since, Key: key, Sums: sums[key]}
	}
	return groups, nil
}

// name returns the keys of callers.
func (r *ranking) name(ctx context.Context, st *store.Store, callers []caller) ([]string, error) {
	numbers := make([]int32, 0, len(callers))
	places := make(map[int32]int, len(callers))
	keys := make([]string, len(callers))
	for i, c := range callers {
		if c.number < 0 {
			keys[i] = c.key
			continue
		}
		numbers = append(numbers, int32(c.number))
		places[int32(c.number)] = i
	}
	rows, err := st.Read().KeysOf(ctx, db.KeysOfParams{OrgID: r.q.Org, Numbers: numbers})
	for _, n := range rows {
		keys[places[n.Number]] = n.KeyHash
	}
	return keys, store.Translate(err)
}

// totals is what the calls of all keys and APIs come to, which is known without
// them.
func totals(ctx context.Context, st *store.Store, q *Query, until time.Time) (Sums, error) {
	a, err := readRows(ctx, st, &Query{
		Org: q.Org, Since: q.Since, Until: until, Status: -1, Refused: q.Refused, Page: store.Page{Max: 1},
	})
	if err != nil {
		return Sums{}, err
	}
	return a.All, nil
}
