package usage

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Filter says which part of what is known a report has.
type Filter struct {
	Type, Field string  // "": all
	Key         *string // as logs call it, "" for calls without one; nil: all
	Skip, Max   int     // fields
	Keys        int     // of each field: those that read it most
}

// Report is which fields of an API were read, by whom.
type Report struct {
	API   string    `json:"api_id"`
	Since time.Time `json:"since"` // when this gateway began to count

	// Fields are those that were read, ordered by type and name.
	Fields []Field `json:"fields"`

	// Total is how many fields there are, of which Fields may be a part.
	Total int `json:"total"`

	// Dropped is how often fields were read that there was no room for.
	Dropped uint64 `json:"dropped"`
}

// Field is how a field was read. An operation counts once, however often it has
// the field.
type Field struct {
	Type     string    `json:"type"`
	Name     string    `json:"field"`
	Count    uint64    `json:"count"`
	LastUsed time.Time `json:"last_used"`

	// Keys are those that read the field, the busiest first. There may be more:
	// KeysTotal is how many are known.
	Keys      []Key `json:"keys"`
	KeysTotal int   `json:"keys_total"`

	// Others is how it was read by keys that there was no room for; nil: never.
	Others *Others `json:"others,omitempty"`
}

// Key is how a field was read by a key.
type Key struct {
	Key      string    `json:"key"` // as logs call it; "" without one
	Count    uint64    `json:"count"`
	LastUsed time.Time `json:"last_used"`
}

// Others is how a field was read by keys without names.
type Others struct {
	Count    uint64    `json:"count"`
	LastUsed time.Time `json:"last_used"`
}

// Fields reports on an API. What was counted before the call is in the report.
// An API without GraphQL traffic has an empty one, whose Since is zero.
func (u *Usage) Fields(api string, f Filter) *Report {
	r := &Report{API: api, Fields: []Field{}}
	a := u.find(api)
	if a == nil {
		return r
	}
	u.drain(a)
	r.Since = a.since.UTC().Truncate(time.Second)
	chosen := a.totals.chosen(&f)
	r.Total = len(chosen)
	chosen = chosen[min(max(f.Skip, 0), len(chosen)):]
	chosen = chosen[:min(max(f.Max, 0), len(chosen))]
	r.Dropped = a.totals.report(chosen, &f, func(one Field) { r.Fields = append(r.Fields, one) })
	for i := range r.Fields {
		r.Fields[i].rank(f.Keys)
	}
	return r
}

// chosen returns the fields that a filter asks for, in order.
func (t *totals) chosen(f *Filter) []coordinate {
	all := t.matching(f)
	slices.SortFunc(all, func(x, y coordinate) int {
		return cmp.Or(strings.Compare(x.owner, y.owner), strings.Compare(x.name, y.name))
	})
	return all
}

func (t *totals) matching(f *Filter) (all []coordinate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, one := range t.fields {
		if f.Type != "" && at.owner != f.Type || f.Field != "" && at.name != f.Field {
			continue
		}
		if f.Key != nil && !t.readBy(one, *f.Key) {
			continue
		}
		all = append(all, at)
	}
	return all
}

func (t *totals) readBy(f *field, key string) bool {
	number, known := t.numbers[key]
	if !known {
		return false
	}
	_, ok := f.keys[number]
	return ok
}

// report hands out fields with their keys in no order, and returns what was
// dropped. Keys are put in order later: that takes time, for which requests
// would have to wait.
func (t *totals) report(chosen []coordinate, f *Filter, out func(Field)) (dropped uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range chosen {
		one := t.fields[at]
		if one == nil {
			continue // the API is gone by now
		}
		shown := Field{Type: at.owner, Name: at.name, Count: one.all.count, LastUsed: moment(one.all.last), KeysTotal: len(one.keys)}
		shown.Keys = make([]Key, 0, len(one.keys))
		for number, by := range one.keys {
			if key := t.keys[number]; f.Key == nil || *f.Key == key {
				shown.Keys = append(shown.Keys, Key{Key: key, Count: by.count, LastUsed: moment(by.last)})
			}
		}
		if one.others.count > 0 {
			shown.Others = &Others{Count: one.others.count, LastUsed: moment(one.others.last)}
		}
		out(shown)
	}
	return t.dropped
}

// rank leaves the busiest keys.
func (f *Field) rank(most int) {
	slices.SortFunc(f.Keys, func(x, y Key) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), strings.Compare(x.Key, y.Key))
	})
	f.Keys = slices.Clip(f.Keys[:min(max(most, 0), len(f.Keys))])
}

func moment(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// Dropped returns how often fields were read that there was no room for, as far
// as that is worked out already.
func (a *API) Dropped() uint64 {
	a.totals.mu.Lock()
	defer a.totals.mu.Unlock()
	return a.totals.dropped
}
