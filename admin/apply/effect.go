package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/diff"
)

// An Effect is what a batch would change, and which keys the change concerns. Nothing
// is stored.
type Effect struct {
	Outcome
	// Revision in force; 0: none was made yet.
	Base int64 `json:"base_revision"`
	// APIs and policies that would differ.
	Objects []Object `json:"objects"`
	// Rights that callers would lose or gain; what differs beside them is in objects.
	Rights []Right `json:"rights"`
	// Keys that name a changed API, or have a policy that differs or names one.
	Whom Whom `json:"concerned"`
}

// An Object is an API or a policy that would differ.
type Object struct {
	// Kind of the object.
	Kind string `json:"kind" enum:"api,policy"`
	// Id of the object.
	ID string `json:"id"`
	// What would become of the object.
	Action string `json:"action" enum:"created,updated,deleted"`
	// Members that would differ; secrets are masked for users below editor.
	Changes []diff.Member `json:"changes"`
}

// Whom are the keys that an effect concerns. At most 10,000 are counted.
type Whom struct {
	// Number of the keys; 10000 stands for more.
	Keys int `json:"keys"`
	// Number of those keys that were called in the last 24 hours.
	Called int `json:"called"`
	// First 20 of the keys, those first that were called.
	Some []ConcernedKey `json:"some"`
}

// A ConcernedKey is one of them.
type ConcernedKey struct {
	// Hash of the key.
	Hash string `json:"key_hash"`
	// Alias of the key; left out if it has none.
	Alias string `json:"alias,omitempty"`
	// Whether the key was called in the last 24 hours.
	Called bool `json:"called"`
}

// Bounds of the keys of an effect.
const (
	mostConcerned  = 10_000
	shownConcerned = 20
)

// Effect returns what a batch would change. The errors are those of Apply. after is the
// organisation's whole configuration with the changes.
func (a *Applier) Effect(ctx context.Context, by store.Author, b *Batch) (e *Effect, after []store.Object, err error) {
	r, err := a.read(ctx, by, b)
	if err != nil {
		return nil, nil, err
	}
	e = &Effect{Outcome: Outcome{DryRun: true, Keys: len(r.batch.Keys), Warnings: r.warnings}, Objects: []Object{}, Rights: []Right{}}
	var differing []store.Difference
	_, err = a.Store.Publish(ctx, by, func(ctx context.Context, change *store.Change) error {
		if err := change.Apply(ctx, &r.batch); err != nil {
			return err
		}
		e.Changes, e.Revision = change.Made(), change.Revision()
		if e.Base, differing, err = change.Differences(ctx); err != nil {
			return err
		}
		if after, err = change.Objects(ctx); err != nil {
			return err
		}
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return nil, nil, explained(err)
	}
	for i := range differing {
		if err := e.add(&differing[i]); err != nil {
			return nil, nil, err
		}
	}
	e.Whom, err = a.Concerned(ctx, by.Org, differing)
	return e, after, err
}

// add adds an object that would differ.
func (e *Effect) add(d *store.Difference) error {
	one := Object{Kind: d.Kind, ID: d.ID, Action: "updated"}
	switch {
	case d.Before == nil:
		one.Action = "created"
	case d.After == nil:
		one.Action = "deleted"
	}
	changes, err := diff.JSON(d.Before, d.After)
	if err != nil {
		return fmt.Errorf("comparing %s %s: %w", d.Kind, d.ID, err)
	}
	one.Changes = changes
	e.Objects = append(e.Objects, one)
	rights, err := rightsOf(d)
	if err != nil {
		return fmt.Errorf("comparing the rights of %s %s: %w", d.Kind, d.ID, err)
	}
	e.Rights = append(e.Rights, rights...)
	return nil
}

// Concerned returns the keys of an organisation that differing objects concern, as they
// are now.
func (a *Applier) Concerned(ctx context.Context, org string, differing []store.Difference) (w Whom, err error) {
	rows, err := a.Store.ConcernedKeys(ctx, org, differing, time.Now().Add(-24*time.Hour), mostConcerned)
	if err != nil {
		return w, err
	}
	w.Keys, w.Some = len(rows), []ConcernedKey{}
	slices.SortStableFunc(rows, func(x, y store.ConcernedKey) int {
		switch {
		case x.Called == y.Called:
			return 0
		case x.Called:
			return -1
		}
		return 1
	})
	for i := range rows {
		if rows[i].Called {
			w.Called++
		}
		if i < shownConcerned {
			w.Some = append(w.Some, ConcernedKey{rows[i].KeyHash, rows[i].Alias, rows[i].Called})
		}
	}
	return w, nil
}
