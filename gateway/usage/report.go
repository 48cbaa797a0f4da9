package usage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/usage"
)

// FieldFilter selects the fields of a report.
type FieldFilter struct {
	Type, Field string  // "": all
	Key         *string // name in logs, "" for calls without a key; nil: all
	Skip, Max   int     // fields
	Keys        int     // limit of the keys of each field: those that read it most
}

// FieldReport is what a gateway and the admin report alike.
type FieldReport = usage.FieldReport

// Fields reports on an API. What was counted before the call is in the report. The
// report of an API without GraphQL traffic is empty, and its Since is zero.
func (u *Operations) Fields(api string, f FieldFilter) *FieldReport {
	r := &FieldReport{API: api, Fields: []usage.FieldUse{}}
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
	r.Dropped = a.totals.report(chosen, &f, func(one usage.FieldUse) { r.Fields = append(r.Fields, one) })
	for i := range r.Fields {
		r.Fields[i].RankKeys(f.Keys)
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
func (t *totals) report(chosen []coordinate, f *FieldFilter, out func(usage.FieldUse)) (dropped uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range chosen {
		one := t.fields[at]
		if one == nil {
			continue // the API was dropped meanwhile
		}
		shown := usage.FieldUse{Type: at.owner, Name: at.name, Count: one.all.count, LastUsed: moment(one.all.last), KeysTotal: len(one.keys)}
		shown.Keys = make([]usage.KeyUse, 0, len(one.keys))
		for number, by := range one.keys {
			if key := t.keys[number]; f.Key == nil || *f.Key == key {
				shown.Keys = append(shown.Keys, usage.KeyUse{Key: key, Count: by.count, LastUsed: moment(by.last)})
			}
		}
		if one.others.count > 0 {
			shown.Others = &usage.OtherUse{Count: one.others.count, LastUsed: moment(one.others.last)}
		}
		out(shown)
	}
	return t.dropped
}

func moment(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// droppedReads returns how many reads of fields were not counted for want of memory,
// as far as fields are worked out.
func (a *APIOperations) droppedReads() uint64 {
	a.totals.mu.Lock()
	defer a.totals.mu.Unlock()
	return a.totals.dropped
}

// Names returns how often the operations of an API ran since this gateway began to count.
// The time is zero for an API without GraphQL traffic.
func (u *Operations) Names(api string) (all []usage.OperationUse, since time.Time) {
	a := u.find(api)
	if a == nil {
		return nil, since
	}
	sums := make(map[operationID]*usage.OperationUse)
	a.names.each(func(id operationID, r Result, count uint64) {
		sum := sums[id]
		if sum == nil {
			sum = &usage.OperationUse{Kind: id.kind.String(), Name: id.name}
			sums[id] = sum
		}
		*[results]*uint64{&sum.OK, &sum.Failed, &sum.Refused}[r] = count
	})
	for _, one := range sums {
		all = append(all, *one)
	}
	return all, a.since.UTC().Truncate(time.Second)
}

// Answer answers a question of the admin as a gateway of a name, nil if it is not about
// GraphQL APIs.
func (u *Operations) Answer(question, gateway string) *usage.GraphQLAnswer {
	q, ok := usage.ParseGraphQLQuestion(question)
	if !ok {
		return nil
	}
	a := &usage.GraphQLAnswer{Gateway: gateway}
	if q.Fields > 0 {
		a.Fields = u.Fields(q.API, FieldFilter{Type: q.Type, Max: q.Fields, Keys: usage.MaxFieldKeys})
		a.Since = a.Fields.Since
		return a
	}
	a.Operations, a.Since = u.Names(q.API)
	return a
}
