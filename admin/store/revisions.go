package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// Revision is one change of configuration.
type Revision = db.ConfigRevision

// Object is an API or a policy as it was at a revision.
type Object = db.ObjectsAtRow

// Difference is an object at two revisions; nil is absent.
type Difference = db.ChangedBetweenRow

// ListRevisions returns one page of an organisation's revisions, newest first,
// and how many there are in all. A page has at most 1,000.
func (s *Store) ListRevisions(ctx context.Context, org string, page Page) ([]Revision, int64, error) {
	total, err := s.queries.CountRevisions(ctx, org)
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListRevisions(ctx, db.ListRevisionsParams{OrgID: org, Skip: page.offset(), Max: page.bounded()})
	return rows, total, translate(err)
}

// RevisionByNumber returns a revision that the organisation made.
func (s *Store) RevisionByNumber(ctx context.Context, org string, number int64) (Revision, error) {
	row, err := s.queries.RevisionByNumber(ctx, db.RevisionByNumberParams{OrgID: org, Revision: number})
	return row, translate(err)
}

// RevisionBefore returns the organisation's revision before another, or 0.
func (s *Store) RevisionBefore(ctx context.Context, org string, number int64) (int64, error) {
	before, err := s.queries.RevisionBefore(ctx, db.RevisionBeforeParams{OrgID: org, Revision: number})
	return before, translate(err)
}

// ObjectsAt returns an organisation's whole configuration as of a revision.
func (s *Store) ObjectsAt(ctx context.Context, org string, revision int64) ([]Object, error) {
	rows, err := s.queries.ObjectsAt(ctx, db.ObjectsAtParams{OrgID: org, Revision: revision})
	return rows, translate(err)
}

// Differences returns the objects that differ between two revisions, at both.
func (s *Store) Differences(ctx context.Context, org string, from, to int64) ([]Difference, error) {
	low, high := min(from, to), max(from, to)
	rows, err := s.queries.ChangedBetween(ctx, db.ChangedBetweenParams{OrgID: org, First: low, Last: high})
	if err != nil {
		return nil, translate(err)
	}
	differing := rows[:0]
	for _, d := range rows {
		if bytes.Equal(d.Before, d.After) {
			continue // changed, and changed back
		}
		if from > to {
			d.Before, d.After = d.After, d.Before
		}
		differing = append(differing, d)
	}
	return differing, nil
}

// ObjectChangeRow is a revision that touched an object, with what the object was before and
// after it; nil is absent.
type ObjectChangeRow = db.ObjectHistoryRow

// ObjectHistory returns one page of the revisions that touched an API or a policy, newest
// first, and how many there are in all.
func (s *Store) ObjectHistory(ctx context.Context, org, kind, id string, page Page) ([]ObjectChangeRow, int64, error) {
	total, err := s.queries.CountObjectHistory(ctx, db.CountObjectHistoryParams{OrgID: org, Kind: kind, ID: id})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ObjectHistory(ctx, db.ObjectHistoryParams{OrgID: org, Kind: kind, ID: id, Skip: page.offset(), Max: page.bounded()})
	return rows, total, translate(err)
}

// Rollback makes the author's organisation's configuration what it was at one
// of its revisions. Keys are not part of it.
func (c *Change) Rollback(ctx context.Context, to int64) error {
	if _, err := c.q.RevisionByNumber(ctx, db.RevisionByNumberParams{OrgID: c.by.Org, Revision: to}); err != nil {
		return err
	}
	objects, err := c.q.ObjectsAt(ctx, db.ObjectsAtParams{OrgID: c.by.Org, Revision: to})
	if err != nil {
		return err
	}
	if err := c.restoreAPIs(ctx, pick(objects, kindAPI)); err != nil {
		return err
	}
	return c.restorePolicies(ctx, pick(objects, kindPolicy))
}

// pick returns the bodies of one kind of object by id.
func pick(objects []db.ObjectsAtRow, kind string) map[string][]byte {
	bodies := make(map[string][]byte)
	for _, o := range objects {
		if o.Kind == kind {
			bodies[o.ID] = o.Body
		}
	}
	return bodies
}

// restoreAPIs first takes away all that differ and then puts back: two APIs may
// have exchanged their listen paths, and neither could move first.
func (c *Change) restoreAPIs(ctx context.Context, wanted map[string][]byte) error {
	rows, err := c.q.APIsOf(ctx, c.by.Org)
	if err != nil {
		return err
	}
	replaced := make(map[string]*db.API)
	var gone []noted
	for i := range rows {
		row := &rows[i]
		body, keep := wanted[row.ID]
		if keep && bytes.Equal(body, row.Definition) {
			delete(wanted, row.ID)
			continue
		}
		replaced[row.ID] = row
		if err := c.q.DeleteAPI(ctx, db.DeleteAPIParams{OrgID: c.by.Org, ID: row.ID}); err != nil {
			return err
		}
		if !keep {
			gone = append(gone, noted{did: ObjectChange{kindAPI, row.ID, row.Name, deleted}, before: row.Definition})
		}
	}
	if err := c.noteAll(ctx, gone); err != nil {
		return err
	}
	put := new(putting)
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if err := put.add(c, id, wanted[id], replaced[id]); err != nil {
			return err
		}
	}
	return put.put(ctx, c)
}

// restorePolicies does for policies, whose names may have been exchanged, what
// restoreAPIs does for APIs.
func (c *Change) restorePolicies(ctx context.Context, wanted map[string][]byte) error {
	rows, err := c.q.PoliciesOf(ctx, c.by.Org)
	if err != nil {
		return err
	}
	replaced := make(map[string]db.Policy)
	for _, row := range rows {
		body, keep := wanted[row.ID]
		if keep && bytes.Equal(body, row.Body) {
			delete(wanted, row.ID)
			continue
		}
		replaced[row.ID] = row
		if err := c.q.DeletePolicy(ctx, db.DeletePolicyParams{OrgID: c.by.Org, ID: row.ID}); err != nil {
			return err
		}
		if !keep {
			if err := c.note(ctx, ObjectChange{kindPolicy, row.ID, row.Name, deleted}, row.Body, nil); err != nil {
				return err
			}
		}
	}
	for id, body := range wanted {
		if err := c.restorePolicy(ctx, id, body, replaced); err != nil {
			return fmt.Errorf("restoring policy %s: %w", id, err)
		}
	}
	return nil
}

func (c *Change) restorePolicy(ctx context.Context, id string, body []byte, replaced map[string]db.Policy) error {
	var p definition.Policy
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	row, err := c.plainPolicyRow(&p)
	if err != nil {
		return err
	}
	old, was := replaced[id]
	restore := db.RestorePolicyParams{
		ID: id, OrgID: c.by.Org, Name: row.Name, State: row.State, APIs: row.APIs,
		Body: body, Version: old.Version + 1, CreatedAt: old.CreatedAt,
	}
	action := updated
	if !was {
		action, restore.CreatedAt = created, now()
	}
	if err := c.q.RestorePolicy(ctx, restore); err != nil {
		return err
	}
	return c.note(ctx, ObjectChange{kindPolicy, id, row.Name, action}, old.Body, body)
}
