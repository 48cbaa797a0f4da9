// Package webhooks keeps where developers and organisations want to be told of
// events.
package webhooks

import (
	"context"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Row is a stored webhook.
type Row = db.Webhook

// New is a webhook that is to be stored.
type New = db.InsertWebhookParams

// Change is what can be changed of a webhook.
type Change = db.UpdateWebhookParams

// Add stores a webhook.
func Add(ctx context.Context, tx *store.Tx, n New) (Row, error) { return tx.InsertWebhook(ctx, n) }

// Count tells how many webhooks a developer has, or, without one, how many an
// organisation has for itself, and keeps others from adding to them until the
// transaction ends. Without such an owner the error is store.ErrNotFound.
func Count(ctx context.Context, tx *store.Tx, org, developer string) (int64, error) {
	if developer == "" {
		if _, err := tx.WebhookOrg(ctx, org); err != nil {
			return 0, store.Translate(err)
		}
		return tx.CountWebhooksOfOrg(ctx, org)
	}
	if _, err := tx.WebhookOwner(ctx, db.WebhookOwnerParams{OrgID: org, ID: developer}); err != nil {
		return 0, store.Translate(err)
	}
	return tx.CountWebhooksFor(ctx, db.CountWebhooksForParams{OrgID: org, DeveloperID: developer})
}

// Get returns a webhook of an organisation, or store.ErrNotFound.
func Get(ctx context.Context, st *store.Store, org, id string) (Row, error) {
	row, err := st.Read().WebhookByID(ctx, db.WebhookByIDParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Lock is Get, and keeps others from the webhook until the transaction ends.
func Lock(ctx context.Context, tx *store.Tx, org, id string) (Row, error) {
	row, err := tx.LockWebhook(ctx, db.LockWebhookParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Update changes a webhook.
func Update(ctx context.Context, tx *store.Tx, c Change) (Row, error) {
	return tx.UpdateWebhook(ctx, c)
}

// Secrets are those that a webhook is to have: both are sealed, and the former is
// valid for a while.
type Secrets = db.RotateWebhookParams

// Rotate gives a webhook another secret.
func Rotate(ctx context.Context, tx *store.Tx, s Secrets) (Row, error) {
	return tx.RotateWebhook(ctx, s)
}

// Enable has a webhook told of events again, as if it had never failed.
func Enable(ctx context.Context, tx *store.Tx, id string) (Row, error) {
	return tx.EnableWebhook(ctx, id)
}

// Disable ends that a webhook is told of events.
func Disable(ctx context.Context, tx *store.Tx, id, why string) (Row, error) {
	return tx.DisableWebhook(ctx, db.DisableWebhookParams{ID: id, DisabledFor: why})
}

// Delete removes a webhook.
func Delete(ctx context.Context, tx *store.Tx, id string) error { return tx.DeleteWebhook(ctx, id) }

// NoteWorks forgets that a webhook failed.
func NoteWorks(ctx context.Context, tx *store.Tx, id string) error {
	return tx.NoteWebhookWorks(ctx, id)
}

// NoteFails notes that a webhook fails from now on, unless it did before.
func NoteFails(ctx context.Context, tx *store.Tx, id string) error {
	return tx.NoteWebhookFails(ctx, id)
}

// EmailOf returns a developer's address, or store.ErrNotFound.
func EmailOf(ctx context.Context, tx *store.Tx, org, developer string) (string, error) {
	email, err := tx.WebhookEmail(ctx, db.WebhookEmailParams{OrgID: org, ID: developer})
	return email, store.Translate(err)
}

// Listener is a webhook that is to be told of an event. DeveloperID is nil for
// those of the organisation.
type Listener = db.WebhooksHearingRow

// Hearing lists the webhooks that are to be told of an event: the organisation's,
// and those of one developer.
func Hearing(ctx context.Context, tx *store.Tx, org, developer, event string) ([]Listener, error) {
	return tx.WebhooksHearing(ctx, db.WebhooksHearingParams{OrgID: org, DeveloperID: developer, Event: event})
}

// ConfigurationOf returns what an organisation's portal is configured with, as
// JSON, or store.ErrNotFound. It reads by the transaction's own connection: a
// second one could be waited for by all who hold a first.
func ConfigurationOf(ctx context.Context, tx *store.Tx, org string) ([]byte, error) {
	body, err := tx.PortalEvents(ctx, org)
	return body, store.Translate(err)
}

// Filter says which webhooks a list holds: those of a developer, or those whose
// name begins with Prefix in any case, or all.
type Filter struct{ Developer, Prefix string }

// List returns one page of an organisation's webhooks, and how many there are in
// all.
func List(ctx context.Context, st *store.Store, org string, f Filter, page store.Page) (rows []Row, total int64, err error) {
	q, skip, limit := st.Read(), page.Offset(), page.Limit()
	switch {
	case f.Developer != "":
		if total, err = q.CountWebhooksFor(ctx, db.CountWebhooksForParams{OrgID: org, DeveloperID: f.Developer}); err == nil {
			rows, err = q.ListWebhooksFor(ctx, db.ListWebhooksForParams{OrgID: org, DeveloperID: f.Developer, Skip: skip, Max: limit})
		}
	case f.Prefix != "":
		last := f.Prefix + "\U0010FFFF" // which no name holds: beyond all that begin so
		if total, err = q.CountWebhooksNamed(ctx, db.CountWebhooksNamedParams{OrgID: org, First: f.Prefix, Last: last}); err == nil {
			rows, err = q.ListWebhooksNamed(ctx, db.ListWebhooksNamedParams{OrgID: org, First: f.Prefix, Last: last, Skip: skip, Max: limit})
		}
	default:
		if total, err = q.CountWebhooks(ctx, org); err == nil {
			rows, err = q.ListWebhooks(ctx, db.ListWebhooksParams{OrgID: org, Skip: skip, Max: limit})
		}
	}
	return rows, total, store.Translate(err)
}
