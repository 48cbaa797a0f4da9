package store

import (
	"context"
	"math"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// An Origin is the change that gave a part of an object the value that it has.
type Origin struct {
	Revision int64 // 0: of a key
	Action   string
	Author   string
	Source   string // "": of a key
	Reason   string
	At       time.Time
}

// Bounds of the search for an origin.
const (
	mostOrigins  = 200 // changes of the object that are looked at
	originsAtOne = 20  // that one statement reads: definitions may have MiBs each
)

// A Part is a part of an API or of a policy.
type Part struct {
	Kind, ID string   // of the object
	Path     []string // names of the members that lead to the part; of arrays, indexes
}

// Origin returns the newest change up to a revision that set, changed or removed a part of an
// object, and whether the part is there. The change is nil if none of the newest 200 of the
// object did so.
func (s *Store) Origin(ctx context.Context, org string, of Part, until int64) (*Origin, bool, error) {
	search := originSearch{}
	if until <= 0 {
		until = math.MaxInt64
	}
	for search.wants() {
		rows, err := s.queries.ValueHistory(ctx, db.ValueHistoryParams{OrgID: org, Kind: of.Kind, ID: of.ID, Path: of.Path, Until: until, Max: originsAtOne})
		if err != nil {
			return nil, false, translate(err)
		}
		for _, r := range rows {
			search.add(Origin{Revision: r.Revision, Author: r.Author, Source: r.Source, Reason: r.Reason, At: r.CreatedAt}, r.Value)
			until = r.Revision - 1
		}
		if len(rows) < originsAtOne {
			search.first()
		}
	}
	return search.result()
}

// OriginInKey is Origin for a key, by the audit log: entries that were deleted by age are not
// looked at.
func (s *Store) OriginInKey(ctx context.Context, org, hash string, path []string) (*Origin, bool, error) {
	search := originSearch{}
	created := false
	for before := int64(math.MaxInt64); search.wants(); {
		rows, err := s.queries.KeyValueHistory(ctx, db.KeyValueHistoryParams{OrgID: org, KeyHash: hash, Path: path, Before: before, Max: originsAtOne})
		if err != nil {
			return nil, false, translate(err)
		}
		for _, r := range rows {
			search.add(Origin{Author: r.Actor, At: r.At}, r.Value)
			before, created = r.ID, r.Action == "created"
			if created {
				break // a former key with this hash was another one
			}
		}
		switch {
		case created:
			search.first()
		case len(rows) < originsAtOne:
			search.done = true
		}
	}
	return search.result()
}

// An originSearch goes back through the changes of an object, the newest first.
type originSearch struct {
	any    bool
	looked int
	value  string // digest of the part now; "": absent
	last   Origin // the oldest change so far with that value
	found  *Origin
	done   bool
}

// wants reports whether older changes are to be added.
func (o *originSearch) wants() bool { return !o.done && o.looked < mostOrigins }

func (o *originSearch) add(change Origin, value string) {
	if o.done {
		return
	}
	if o.any && value != o.value {
		o.find(value)
		return
	}
	o.any, o.value, o.last = true, value, change
	o.looked++
}

// first ends the search: there is no older change, so the last one made the object.
func (o *originSearch) first() {
	if !o.done && o.any && o.value != "" {
		o.find("")
	}
	o.done = true
}

func (o *originSearch) find(was string) {
	found := o.last
	found.Action = updated
	switch {
	case was == "":
		found.Action = created
	case o.value == "":
		found.Action = deleted
	}
	o.found, o.done = &found, true
}

func (o *originSearch) result() (change *Origin, set bool, err error) {
	if !o.any {
		return nil, false, ErrNotFound
	}
	return o.found, o.value != "", nil
}
