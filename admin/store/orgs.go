package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Org is an organisation: the owner of APIs, policies, keys, users and developers.
type Org = db.Org

// The kinds of objects that OrgOf finds.
const (
	APIObject    = kindAPI
	PolicyObject = kindPolicy
)

// orgKind is the kind of organisations in the audit log.
const orgKind = "org"

// OrgByID returns an organisation that has not ended.
func (s *Store) OrgByID(ctx context.Context, id string) (Org, error) {
	row, err := s.queries.OrgByID(ctx, id)
	return row, translate(err)
}

// ListOrgs returns one page of the organisations that have not ended, the oldest first,
// and their total number. Search matches part of a name in any case, or a whole id.
func (s *Store) ListOrgs(ctx context.Context, search string, page Page) ([]Org, int64, error) {
	total, err := s.queries.CountLiveOrgs(ctx, search)
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListOrgs(ctx, db.ListOrgsParams{Search: search, Skip: page.offset(), Max: page.limit()})
	return rows, total, translate(err)
}

// OrgOf returns the organisation of an API or a policy, or ErrNotFound.
func (s *Store) OrgOf(ctx context.Context, kind, id string) (string, error) {
	org, err := s.queries.OrgOf(ctx, db.OrgOfParams{Kind: kind, ID: id})
	return org, translate(err)
}

// OrgOfKey returns the organisation of the first of some hashes that a key has, or
// ErrNotFound.
func (s *Store) OrgOfKey(ctx context.Context, hashes []string) (string, error) {
	org, err := s.queries.OrgOfKey(ctx, hashes)
	return org, translate(err)
}

// CreateOrg adds an organisation, and its first user unless that is nil. An id that an
// organisation has or had is a TakenID conflict.
func (s *Store) CreateOrg(ctx context.Context, by Author, o *Org, first *User) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		if err := q.InsertOrg(ctx, db.InsertOrgParams{ID: o.ID, Name: o.Name}); err != nil {
			return err
		}
		row, err := q.OrgByID(ctx, o.ID)
		if err != nil {
			return err
		}
		*o = row
		if err := auditOrg(ctx, q, by, nil, o); err != nil || first == nil {
			return err
		}
		first.OrgID, by.Org = o.ID, o.ID
		return insertUser(ctx, q, by, first)
	})
}

// RenameOrg changes the name of an organisation at version have, or at any if have is 0.
func (s *Store) RenameOrg(ctx context.Context, by Author, o *Org, have int64) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		old, err := q.LockOrg(ctx, o.ID)
		if err != nil {
			return err
		}
		if err := CheckVersion(have, old.Version); err != nil {
			return err
		}
		if *o, err = q.RenameOrg(ctx, db.RenameOrgParams{ID: o.ID, Name: o.Name}); err != nil {
			return err
		}
		return auditOrg(ctx, q, by, &old, o)
	})
}

// EndOrg ends the author's organisation: everything that it has is deleted, its keys are
// refused, and its id is never used again. Its history and its usage stay. The first
// organisation cannot end. Without force, neither can one that has APIs, policies, keys,
// developers or certificates. The entry in the audit log is written for the
// organisation home, which goes on.
func (c *Change) EndOrg(ctx context.Context, home string, force bool) error {
	old, err := c.q.LockOrg(ctx, c.by.Org)
	if err != nil {
		return err
	}
	first, err := c.q.FirstOrg(ctx)
	if err != nil {
		return err
	}
	if first == old.ID {
		return &ConflictError{Kind: FirstOrg}
	}
	if !force {
		if err := c.checkEmpty(ctx); err != nil {
			return err
		}
	}
	if err := c.restoreAPIs(ctx, nil); err != nil {
		return err
	}
	if err := c.restorePolicies(ctx, nil); err != nil {
		return err
	}
	if err := c.empty(ctx); err != nil {
		return err
	}
	if err := c.q.EndOrg(ctx, old.ID); err != nil {
		return err
	}
	by := c.by
	by.Org = home
	return auditOrg(ctx, c.q, by, &old, nil)
}

// checkEmpty returns a conflict that counts what the organisation has.
func (c *Change) checkEmpty(ctx context.Context) error {
	has, err := c.q.OrgHoldings(ctx, c.by.Org)
	if err != nil {
		return err
	}
	conflict := &ConflictError{Kind: NotEmpty}
	for _, one := range []struct {
		count          int64
		single, plural string
	}{
		{has.APIs, "API", "APIs"},
		{has.Policies, "policy", "policies"},
		{has.Keys, "key", "keys"},
		{has.Developers, "developer", "developers"},
		{has.Certificates, "certificate", "certificates"},
		{has.Secrets, "secret", "secrets"},
	} {
		switch {
		case one.count == 1:
			conflict.With = append(conflict.With, "1 "+one.single)
		case one.count > 1:
			conflict.With = append(conflict.With, fmt.Sprintf("%d %s", one.count, one.plural))
		}
	}
	if conflict.With == nil {
		return nil
	}
	return conflict
}

// empty deletes all that an organisation has besides APIs and policies. What refers to
// others comes first.
func (c *Change) empty(ctx context.Context) error {
	for _, statement := range []func(context.Context, string) error{
		c.q.PutOutboxOfOrg, c.q.DeleteDeliveriesOfOrg, c.q.DeleteWebhooksOfOrg, c.q.DeleteRequestsOfOrg, c.q.DeleteClientsOfOrg,
		c.q.DeleteDeveloperKeysOfOrg, c.q.DeleteKeysOfOrg, c.q.DeleteDevelopersOfOrg, c.q.DeleteEntriesOfOrg, c.q.DeleteDocumentsOfOrg,
		c.q.DeletePortalObjectsOfOrg, c.q.DeleteCertificatesOfOrg, c.q.DeleteSecretsOfOrg, c.q.DeleteSchemasOfOrg, c.q.DeleteSyncsOfOrg, c.q.DeleteCallsOfOrg, c.q.DeleteUsersOfOrg,
	} {
		if err := statement(ctx, c.by.Org); err != nil {
			return err
		}
	}
	return nil
}

// auditOrg writes a change of an organisation into the audit log. Nil is an organisation
// that is not there.
func auditOrg(ctx context.Context, q *db.Queries, by Author, before, after *Org) error {
	entry := AuditEntry{Action: updated, Kind: orgKind}
	switch {
	case before == nil:
		entry.Action = created
	case after == nil:
		entry.Action = "ended"
	}
	var err error
	if entry.Before, err = orgFacts(&entry, before); err != nil {
		return err
	}
	if entry.After, err = orgFacts(&entry, after); err != nil {
		return err
	}
	return audit(ctx, q, by, entry)
}

func orgFacts(entry *AuditEntry, o *Org) ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	entry.ID = o.ID
	facts, err := json.Marshal(map[string]any{"id": o.ID, "name": o.Name})
	if err != nil {
		return nil, fmt.Errorf("writing organisation %s for the audit log: %w", o.ID, err)
	}
	return facts, nil
}

// IsFirstOrg reports whether an organisation is the first one, whose admins act for all.
func (s *Store) IsFirstOrg(ctx context.Context, org string) (bool, error) {
	first, err := s.queries.FirstOrg(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil && first == org, translate(err)
}
