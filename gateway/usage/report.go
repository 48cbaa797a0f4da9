package usage

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// FieldFilter selects the fields of a report.
type FieldFilter struct {
	Type, Field string  // "": all
	Key         *string // name in logs, "" for calls without a key; nil: all
	Skip, Max   int     // fields
	Keys        int     // limit of the keys of each field: those that read it most
}

// FieldReport lists which fields of an API were read by which keys.
type FieldReport struct {
	API   string    `json:"api_id"`
	Since time.Time `json:"since"` // when this gateway began to count

	// Fields are those that were read, ordered by type and name.
	Fields []FieldUse `json:"fields"`

	// Total is the number of fields on all pages.
	Total int `json:"total"`

	// Dropped is how many reads of fields were not counted for want of memory.
	Dropped uint64 `json:"dropped"`
}

// FieldUse counts the reads of a field. An operation counts once, however often it
// has the field.
type FieldUse struct {
	Type     string    `json:"type"`
	Name     string    `json:"field"`
	Count    uint64    `json:"count"`
	LastUsed time.Time `json:"last_used"`

	// Keys are those that read the field most often, in descending order. KeysTotal
	// is the number of all keys that did.
	Keys      []KeyUse `json:"keys"`
	KeysTotal int      `json:"keys_total"`

	// Others counts the reads by keys without a row; nil: none.
	Others *OtherUse `json:"others,omitempty"`
}

// KeyUse counts the reads of a field by one key.
type KeyUse struct {
	Key      string    `json:"key"` // name in logs; "" without a key
	Count    uint64    `json:"count"`
	LastUsed time.Time `json:"last_used"`
}

// OtherUse counts the reads of a field by keys that are not told apart.
type OtherUse struct {
	Count    uint64    `json:"count"`
	LastUsed time.Time `json:"last_used"`
}

// Fields reports on an API. What was counted before the call is in the report. The
// report of an API without GraphQL traffic is empty, and its Since is zero.
func (u *Operations) Fields(api string, f FieldFilter) *FieldReport {
	r := &FieldReport{API: api, Fields: []FieldUse{}}
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
	r.Dropped = a.totals.report(chosen, &f, func(one FieldUse) { r.Fields = append(r.Fields, one) })
	for i := range r.Fields {
		r.Fields[i].rank(f.Keys)
	}
	return r
}

// chosen returns the fields that match a filter, in order.
func (t *totals) chosen(f *FieldFilter) []coordinate {
	all := t.matching(f)
	slices.SortFunc(all, func(x, y coordinate) int {
		return cmp.Or(strings.Compare(x.owner, y.owner), strings.Compare(x.name, y.name))
	})
	return all
}

func (t *totals) matching(f *FieldFilter) (all []coordinate) {
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

// report hands out fields with their keys in no order, and returns how many reads were
// dropped. Keys are sorted later, since requests wait for the lock.
func (t *totals) report(chosen []coordinate, f *FieldFilter, out func(FieldUse)) (dropped uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range chosen {
		one := t.fields[at]
		if one == nil {
			continue // the API was dropped meanwhile
		}
		shown := FieldUse{Type: at.owner, Name: at.name, Count: one.all.count, LastUsed: moment(one.all.last), KeysTotal: len(one.keys)}
		shown.Keys = make([]KeyUse, 0, len(one.keys))
		for number, by := range one.keys {
			if key := t.keys[number]; f.Key == nil || *f.Key == key {
				shown.Keys = append(shown.Keys, KeyUse{Key: key, Count: by.count, LastUsed: moment(by.last)})
			}
		}
		if one.others.count > 0 {
			shown.Others = &OtherUse{Count: one.others.count, LastUsed: moment(one.others.last)}
		}
		out(shown)
	}
	return t.dropped
}

// rank keeps the keys that read the field most.
func (f *FieldUse) rank(most int) {
	slices.SortFunc(f.Keys, func(x, y KeyUse) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), strings.Compare(x.Key, y.Key))
	})
	f.Keys = slices.Clip(f.Keys[:min(max(most, 0), len(f.Keys))])
}

func moment(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// droppedReads returns how many reads of fields were not counted for want of memory,
// as far as fields are worked out.
func (a *APIOperations) droppedReads() uint64 {
	a.totals.mu.Lock()
	defer a.totals.mu.Unlock()
	return a.totals.dropped
}
