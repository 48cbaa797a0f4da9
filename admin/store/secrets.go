package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// kindSecret names secrets in the audit log and in summaries of revisions. They have no
// history: a rollback leaves them as they are.
const kindSecret = "secret"

// maxSecrets bounds the secrets of an organisation.
const maxSecrets = 1000

// A Secret is a stored secret without its value.
type Secret = db.ListSecretsRow

// A SecretUser is an API that refers to secrets.
type SecretUser = db.SecretUsesRow

// ListSecrets returns an organisation's secrets by name, and the APIs that refer to
// secrets.
func (s *Store) ListSecrets(ctx context.Context, org string) (all []Secret, users []SecretUser, err error) {
	err = s.atOneMoment(ctx, func(q *db.Queries) (err error) {
		if all, err = q.ListSecrets(ctx, org); err != nil {
			return err
		}
		users, err = q.SecretUses(ctx, org)
		return err
	})
	return all, users, err
}

// SealedSecret returns the sealed value of an organisation's secret.
func (s *Store) SealedSecret(ctx context.Context, org, name string) ([]byte, error) {
	sealed, err := s.queries.SealedSecret(ctx, db.SealedSecretParams{OrgID: org, Name: name})
	return sealed, translate(err)
}

// SecretPlace is the additional data that a secret is sealed with.
func SecretPlace(org, name string) []byte {
	return (&SealedValue{Table: "secrets", ID: org + " " + name, Column: "sealed_value"}).Place()
}

// A SecretName is the name of a secret and the organisation that it belongs to.
type SecretName struct{ Org, Name string }

// PutSecret sets a secret of the author's organisation, and reports whether it is a new
// one.
func (c *Change) PutSecret(ctx context.Context, name string, sealed []byte) (isNew bool, err error) {
	isNew, err = c.q.PutSecret(ctx, db.PutSecretParams{OrgID: c.by.Org, Name: name, SealedValue: sealed, UpdatedBy: c.by.Name})
	if err != nil {
		return false, err
	}
	if isNew {
		count, err := c.q.CountSecrets(ctx, c.by.Org)
		if err != nil {
			return false, err
		}
		if count > maxSecrets {
			return false, &ConflictError{Kind: TooMany, With: []string{fmt.Sprintf("%d secrets", maxSecrets)}}
		}
		return true, c.noteSecret(ctx, created, name)
	}
	return false, c.noteSecret(ctx, updated, name)
}

// DeleteSecret deletes a secret of the author's organisation that no API refers to.
func (c *Change) DeleteSecret(ctx context.Context, name string) error {
	gone, err := c.q.DeleteSecret(ctx, db.DeleteSecretParams{OrgID: c.by.Org, Name: name})
	if err != nil {
		return err
	}
	if gone == 0 {
		return ErrNotFound
	}
	users, err := c.q.APIsWithSecret(ctx, db.APIsWithSecretParams{OrgID: c.by.Org, Secret: name})
	if err != nil {
		return err
	}
	hooks, err := c.hooksWithSecret(ctx, name)
	if err != nil {
		return err
	}
	if users = append(users, hooks...); len(users) > 0 {
		return &ConflictError{Kind: InUse, With: users}
	}
	return c.noteSecret(ctx, deleted, name)
}

// noteSecret counts a change of a secret, and adds it to the audit log and the summary.
func (c *Change) noteSecret(ctx context.Context, action, name string) error {
	if err := c.q.BumpSecrets(ctx); err != nil {
		return err
	}
	c.made = append(c.made, ObjectChange{kindSecret, name, name, action})
	return audit(ctx, c.q, c.by, AuditEntry{Action: action, Kind: kindSecret, ID: name, Revision: c.revision})
}

// checkSecrets refuses APIs that refer to secrets that do not exist.
func (c *Change) checkSecrets(ctx context.Context) error {
	if len(c.refer) == 0 {
		return nil
	}
	var names []string
	for _, uses := range c.refer {
		for _, use := range uses {
			names = append(names, use.Ref.Name)
		}
	}
	known, err := c.q.KnownSecrets(ctx, db.KnownSecretsParams{OrgID: c.by.Org, Names: names})
	if err != nil {
		return err
	}
	wrong := new(NamesError)
	for _, id := range slices.Sorted(maps.Keys(c.refer)) {
		for _, use := range c.refer[id] {
			if slices.Contains(known, use.Ref.Name) || wrong.ID != "" && wrong.ID != id {
				continue
			}
			wrong.Kind, wrong.ID = kindAPI, id
			wrong.Problems = append(wrong.Problems, definition.Problem{
				Path: use.Path, Message: fmt.Sprintf("refers to the secret %q, which does not exist; set it first (sluice secret set %s), or say disable_secret_references if this is literal text", use.Ref.Name, use.Ref.Name),
			})
		}
	}
	if wrong.ID == "" {
		return nil
	}
	return wrong
}

// refers notes the sealed secrets and the webhooks that an API refers to, which are looked
// for in the end, and returns the names of the secrets.
func (c *Change) refers(api *definition.API) []string {
	names := api.SealedSecrets()
	delete(c.refer, api.ID)
	delete(c.hooked, api.ID)
	if uses := api.WebhookUses(); len(uses) > 0 {
		if c.hooked == nil {
			c.hooked = make(map[string][]definition.WebhookUse)
		}
		c.hooked[api.ID] = uses
	}
	if len(names) == 0 {
		return names
	}
	if c.refer == nil {
		c.refer = make(map[string][]definition.SecretUse)
	}
	for _, use := range api.SecretUses() {
		if use.Ref.Kind == definition.SealedSecret {
			c.refer[api.ID] = append(c.refer[api.ID], use)
		}
	}
	return names
}

// allSecrets returns the sealed secrets of all organisations.
func allSecrets(ctx context.Context, q *db.Queries) (map[SecretName][]byte, error) {
	rows, err := q.AllSecrets(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[SecretName][]byte, len(rows))
	for _, row := range rows {
		all[SecretName{row.OrgID, row.Name}] = row.SealedValue
	}
	return all, nil
}
