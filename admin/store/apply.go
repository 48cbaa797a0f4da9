package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// Batch is a change of many objects. Objects that it does not name stay as they are.
type Batch struct {
	Expect         int64 // revision that must be in force; negative: any
	APIs           []*definition.API
	Policies       []*definition.Policy
	DeleteAPIs     []string
	DeletePolicies []string
	Keys           []KeyChange
}

// Apply makes a batch of changes. Objects may exchange unique values, such as two APIs
// their listen paths: only the result must be consistent.
func (c *Change) Apply(ctx context.Context, b *Batch) error {
	if b.Expect >= 0 {
		have, err := c.q.RevisionBefore(ctx, db.RevisionBeforeParams{OrgID: c.by.Org, Revision: c.revision})
		if err != nil {
			return err
		}
		if have != b.Expect {
			return &ConflictError{Kind: StaleRevision, Current: have}
		}
	}
	if err := c.applyAPIs(ctx, b); err != nil {
		return err
	}
	if err := c.applyPolicies(ctx, b); err != nil {
		return err
	}
	for _, api := range b.APIs {
		if err := c.checkPolicies(ctx, api, nil); err != nil {
			return err
		}
		if err := c.checkMembers(ctx, api, nil); err != nil {
			return err
		}
	}
	if err := c.checkComposable(ctx, b.APIs...); err != nil {
		return err
	}
	for _, id := range b.DeleteAPIs {
		if err := c.checkUnused(ctx, id); err != nil {
			return err
		}
		if err := c.forgetSchemas(ctx, id); err != nil {
			return err
		}
	}
	if err := c.checkReferences(ctx); err != nil { // before conclude, which a dry run does without
		return err
	}
	for i := range b.Keys {
		if err := commitKey(ctx, c.q, c.by, &b.Keys[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) applyAPIs(ctx context.Context, b *Batch) error {
	if len(b.APIs)+len(b.DeleteAPIs) == 0 {
		return nil
	}
	rows, err := c.q.APIsOf(ctx, c.by.Org)
	if err != nil {
		return err
	}
	wanted := make(map[string][]byte, len(rows)+len(b.APIs))
	for _, row := range rows {
		wanted[row.ID] = row.Definition
	}
	for _, api := range b.APIs {
		row, err := c.apiRow(api)
		if err != nil {
			return err
		}
		wanted[api.ID] = row.Definition
	}
	return c.without(wanted, b.DeleteAPIs, func() error { return c.restoreAPIs(ctx, wanted) })
}

func (c *Change) applyPolicies(ctx context.Context, b *Batch) error {
	if len(b.Policies)+len(b.DeletePolicies) == 0 {
		return nil
	}
	rows, err := c.q.PoliciesOf(ctx, c.by.Org)
	if err != nil {
		return err
	}
	wanted := make(map[string][]byte, len(rows)+len(b.Policies))
	for _, row := range rows {
		wanted[row.ID] = row.Body
	}
	for _, p := range b.Policies {
		row, err := c.policyRow(ctx, p)
		if unknown, ok := errors.AsType[*UnknownAPIsError](err); ok {
			unknown.Policy = p.Key()
		}
		if err != nil {
			return err
		}
		wanted[p.Key()] = row.Body
	}
	return c.without(wanted, b.DeletePolicies, func() error { return c.restorePolicies(ctx, wanted) })
}

// without removes the deleted objects from the wanted ones, and calls then. They must
// exist.
func (*Change) without(wanted map[string][]byte, gone []string, then func() error) error {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(gone))) {
		if _, ok := wanted[id]; !ok {
			return fmt.Errorf("%s: %w", id, ErrNotFound)
		}
		delete(wanted, id)
	}
	return then()
}

// Made returns what the change did so far.
func (c *Change) Made() []ObjectChange { return slices.Clone(c.made) }

// Differences returns the author's revision before the change, and the objects that the
// change has made different from it so far.
func (c *Change) Differences(ctx context.Context) (base int64, all []Difference, err error) {
	base, err = c.q.RevisionBefore(ctx, db.RevisionBeforeParams{OrgID: c.by.Org, Revision: c.revision})
	if err != nil {
		return 0, nil, err
	}
	rows, err := c.q.ChangedBetween(ctx, db.ChangedBetweenParams{OrgID: c.by.Org, First: base, Last: c.revision})
	if err != nil {
		return 0, nil, err
	}
	return base, slices.DeleteFunc(rows, func(d Difference) bool { return bytes.Equal(d.Before, d.After) }), nil
}

// Objects returns the author's configuration with the change as it is so far.
func (c *Change) Objects(ctx context.Context) ([]Object, error) {
	return c.q.ObjectsAt(ctx, db.ObjectsAtParams{OrgID: c.by.Org, Revision: c.revision})
}

// ConcernedKey is a key that a change concerns, and whether it was called of late.
type ConcernedKey = db.ConcernedKeysRow

// ConcernedKeys returns at most max of an organisation's keys that name one of some APIs,
// have one of some policies, or have a policy that names one of the APIs.
func (s *Store) ConcernedKeys(ctx context.Context, org string, of []Difference, since time.Time, max int32) ([]ConcernedKey, error) {
	p := db.ConcernedKeysParams{OrgID: org, Since: since, APIs: []string{}, Policies: []string{}, Max: max}
	for i := range of {
		d := &of[i]
		if d.Kind == kindPolicy {
			p.Policies = append(p.Policies, d.ID)
			continue
		}
		p.APIs = append(p.APIs, d.ID)
		naming, err := s.queries.PoliciesNaming(ctx, db.PoliciesNamingParams{OrgID: org, API: d.ID})
		if err != nil {
			return nil, translate(err)
		}
		for _, one := range naming {
			p.Policies = append(p.Policies, one.ID)
		}
	}
	rows, err := s.queries.ConcernedKeys(ctx, p)
	return rows, translate(err)
}
