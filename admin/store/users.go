package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/admin/store/db"
)

// User is a person or machine that may use the admin. Of its access key only
// the SHA-256 is stored.
type User = db.User

// UserByKey returns the active user whose access key has a SHA-256.
func (s *Store) UserByKey(ctx context.Context, keyHash []byte) (User, error) {
	row, err := s.queries.UserByKey(ctx, keyHash)
	return row, translate(err)
}

// GatewayUsers returns the active users with the role gateway, of all organisations.
func (s *Store) GatewayUsers(ctx context.Context) ([]User, error) {
	rows, err := s.queries.GatewayUsers(ctx)
	return rows, translate(err)
}

// UserByID returns an organisation's user.
func (s *Store) UserByID(ctx context.Context, org, id string) (User, error) {
	row, err := s.queries.UserByID(ctx, db.UserByIDParams{OrgID: org, ID: id})
	return row, translate(err)
}

// ListUsers returns one page of an organisation's users, by e-mail address, and
// how many there are in all. Search finds part of an address in any case.
func (s *Store) ListUsers(ctx context.Context, org, search string, page Page) ([]User, int64, error) {
	total, err := s.queries.CountUsers(ctx, db.CountUsersParams{OrgID: org, Search: search})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListUsers(ctx, db.ListUsersParams{OrgID: org, Search: search, Skip: page.offset(), Max: page.limit()})
	return rows, total, translate(err)
}

// FirstOrg returns the id of the oldest organisation.
func (s *Store) FirstOrg(ctx context.Context) (string, error) {
	id, err := s.queries.FirstOrg(ctx)
	return id, translate(err)
}

// IsEmpty reports whether there is no organisation yet.
func (s *Store) IsEmpty(ctx context.Context) (bool, error) {
	orgs, err := s.queries.CountOrgs(ctx)
	return orgs == 0, translate(err)
}

// Bootstrap creates the first organisation and its first user, unless an organisation
// exists. Done reports whether it did.
func (s *Store) Bootstrap(ctx context.Context, orgName string, first User) (done bool, err error) {
	err = s.inTx(ctx, func(q *db.Queries) error {
		done = false
		if err := q.LockBootstrap(ctx); err != nil {
			return err
		}
		orgs, err := q.CountOrgs(ctx)
		if err != nil || orgs > 0 {
			return err
		}
		if err := q.InsertOrg(ctx, db.InsertOrgParams{ID: first.OrgID, Name: orgName}); err != nil {
			return err
		}
		done = true
		by := Author{Org: first.OrgID, Name: "first start", Kind: "system"}
		return insertUser(ctx, q, by, &first)
	})
	return done && err == nil, err
}

// CreateUser adds a user to the author's organisation and fills in what the
// store decides.
func (s *Store) CreateUser(ctx context.Context, by Author, u *User) error {
	u.OrgID = by.Org
	return s.inTx(ctx, func(q *db.Queries) error { return insertUser(ctx, q, by, u) })
}

func insertUser(ctx context.Context, q *db.Queries, by Author, u *User) error {
	row, err := q.InsertUser(ctx, db.InsertUserParams{
		ID: u.ID, OrgID: u.OrgID, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		Role: u.Role, Active: u.Active, AccessKeyHash: u.AccessKeyHash,
	})
	if err != nil {
		return err
	}
	*u = row
	return auditUser(ctx, q, by, nil, u)
}

// UpdateUser replaces a user's names, address, role and state, at version have
// or at any when have is 0. The last active admin stays one. Sessions and links of a user
// whose address, role or state changes end.
func (s *Store) UpdateUser(ctx context.Context, by Author, u *User, have int64) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		old, err := lockUser(ctx, q, by.Org, u.ID, isAdmin(u))
		if err != nil {
			return err
		}
		if err := CheckVersion(have, old.Version); err != nil {
			return err
		}
		row, err := q.UpdateUser(ctx, db.UpdateUserParams{
			OrgID: by.Org, ID: u.ID, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
			Role: u.Role, Active: u.Active,
		})
		if err != nil {
			return err
		}
		*u = row
		if u.Email != old.Email || u.Role != old.Role || u.Active != old.Active {
			if err := q.DeleteUserTokens(ctx, u.ID); err != nil {
				return err
			}
		}
		return auditUser(ctx, q, by, &old, u)
	})
}

// ResetUserKey gives a user another access key; the old one ends at once, and with it
// sessions and links, which it may have begun.
func (s *Store) ResetUserKey(ctx context.Context, by Author, id string, keyHash []byte) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		if _, err := q.LockUser(ctx, db.LockUserParams{OrgID: by.Org, ID: id}); err != nil {
			return err
		}
		if err := q.UpdateUserKey(ctx, db.UpdateUserKeyParams{OrgID: by.Org, ID: id, AccessKeyHash: keyHash}); err != nil {
			return err
		}
		if err := q.DeleteUserTokens(ctx, id); err != nil {
			return err
		}
		return audit(ctx, q, by, AuditEntry{Action: "key reset", Kind: kindUser, ID: id})
	})
}

// DeleteUser removes a user, but not the last active admin.
func (s *Store) DeleteUser(ctx context.Context, by Author, id string) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		old, err := lockUser(ctx, q, by.Org, id, false)
		if err != nil {
			return err
		}
		if err := q.DeleteUser(ctx, db.DeleteUserParams{OrgID: by.Org, ID: id}); err != nil {
			return err
		}
		return auditUser(ctx, q, by, &old, nil)
	})
}

func isAdmin(u *User) bool { return u.Role == "admin" && u.Active }

// lockUser returns a user for a change after which it is an active admin or
// not, and refuses to let go of the organisation's only one. The admins come
// first: two changes that each lock one of them would wait for each other.
func lockUser(ctx context.Context, q *db.Queries, org, id string, staysAdmin bool) (db.User, error) {
	admins, err := q.LockAdmins(ctx, org)
	if err != nil {
		return db.User{}, err
	}
	old, err := q.LockUser(ctx, db.LockUserParams{OrgID: org, ID: id})
	if err == nil && isAdmin(&old) && !staysAdmin && len(admins) < 2 {
		err = &ConflictError{Kind: LastAdmin}
	}
	return old, err
}

// auditUser writes what people may see of a user into the audit log. Nil is a
// user that is not there.
func auditUser(ctx context.Context, q *db.Queries, by Author, before, after *User) error {
	entry := AuditEntry{Action: updated, Kind: kindUser}
	switch {
	case before == nil:
		entry.Action = created
	case after == nil:
		entry.Action = deleted
	}
	var err error
	if entry.Before, err = userFacts(&entry, before); err != nil {
		return err
	}
	if entry.After, err = userFacts(&entry, after); err != nil {
		return err
	}
	return audit(ctx, q, by, entry)
}

func userFacts(entry *AuditEntry, u *User) ([]byte, error) {
	if u == nil {
		return nil, nil
	}
	entry.ID = u.ID
	facts, err := json.Marshal(map[string]any{
		"email_address": u.Email, "first_name": u.FirstName, "last_name": u.LastName, "role": u.Role, "active": u.Active,
	})
	if err != nil {
		return nil, fmt.Errorf("writing user %s for the audit log: %w", u.ID, err)
	}
	return facts, nil
}
