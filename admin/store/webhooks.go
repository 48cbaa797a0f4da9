package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Webhook is a stored webhook.
type Webhook = db.Webhook

// NewWebhook is a webhook that is to be stored.
type NewWebhook = db.InsertWebhookParams

// WebhookChange is what can be changed of a webhook.
type WebhookChange = db.UpdateWebhookParams

// CreateWebhook stores a webhook.
func (tx *Tx) CreateWebhook(ctx context.Context, n NewWebhook) (Webhook, error) {
	return tx.Queries.InsertWebhook(ctx, n)
}

// CountWebhooks returns the number of webhooks of a developer, or of the organisation
// itself without one, and locks the owner until the transaction ends. Without such an
// owner it returns ErrNotFound.
func (tx *Tx) CountWebhooks(ctx context.Context, org, developer string) (int64, error) {
	if developer == "" {
		if _, err := tx.Queries.WebhookOrg(ctx, org); err != nil {
			return 0, translate(err)
		}
		return tx.Queries.CountWebhooksOfOrg(ctx, org)
	}
	if _, err := tx.Queries.WebhookOwner(ctx, db.WebhookOwnerParams{OrgID: org, ID: developer}); err != nil {
		return 0, translate(err)
	}
	return tx.Queries.CountWebhooksFor(ctx, db.CountWebhooksForParams{OrgID: org, DeveloperID: developer})
}

// WebhookByID returns a webhook of an organisation, or ErrNotFound.
func (s *Store) WebhookByID(ctx context.Context, org, id string) (Webhook, error) {
	row, err := s.queries.WebhookByID(ctx, db.WebhookByIDParams{OrgID: org, ID: id})
	return row, translate(err)
}

// LockWebhook is WebhookByID, with the webhook locked until the transaction ends.
func (tx *Tx) LockWebhook(ctx context.Context, org, id string) (Webhook, error) {
	row, err := tx.Queries.LockWebhook(ctx, db.LockWebhookParams{OrgID: org, ID: id})
	return row, translate(err)
}

// UpdateWebhook changes a webhook.
func (tx *Tx) UpdateWebhook(ctx context.Context, c WebhookChange) (Webhook, error) {
	return tx.Queries.UpdateWebhook(ctx, c)
}

// WebhookSecrets are those that a webhook is to have: both are sealed, and the former is
// valid for a while.
type WebhookSecrets = db.RotateWebhookParams

// RotateWebhookSecret gives a webhook another secret.
func (tx *Tx) RotateWebhookSecret(ctx context.Context, s WebhookSecrets) (Webhook, error) {
	return tx.Queries.RotateWebhook(ctx, s)
}

// EnableWebhook enables a webhook and clears its failures.
func (tx *Tx) EnableWebhook(ctx context.Context, id string) (Webhook, error) {
	return tx.Queries.EnableWebhook(ctx, id)
}

// DisableWebhook disables a webhook.
func (tx *Tx) DisableWebhook(ctx context.Context, id, why string) (Webhook, error) {
	return tx.Queries.DisableWebhook(ctx, db.DisableWebhookParams{ID: id, DisabledFor: why})
}

// DeleteWebhook removes a webhook.
func (tx *Tx) DeleteWebhook(ctx context.Context, id string) error {
	return tx.Queries.DeleteWebhook(ctx, id)
}

// NoteWebhookWorks clears the failures of a webhook.
func (tx *Tx) NoteWebhookWorks(ctx context.Context, id string) error {
	return tx.Queries.NoteWebhookWorks(ctx, id)
}

// NoteWebhookFails records that a webhook fails from now on, unless it failed before.
func (tx *Tx) NoteWebhookFails(ctx context.Context, id string) error {
	return tx.Queries.NoteWebhookFails(ctx, id)
}

// DeveloperEmail returns a developer's address, or ErrNotFound.
func (tx *Tx) DeveloperEmail(ctx context.Context, org, developer string) (string, error) {
	email, err := tx.Queries.WebhookEmail(ctx, db.WebhookEmailParams{OrgID: org, ID: developer})
	return email, translate(err)
}

// WebhookListener is a webhook that subscribes to an event. DeveloperID is nil for those of
// the organisation.
type WebhookListener = db.WebhooksHearingRow

// WebhooksHearing returns the webhooks that subscribe to an event: the organisation's,
// and those of one developer.
func (tx *Tx) WebhooksHearing(ctx context.Context, org, developer, event string) ([]WebhookListener, error) {
	return tx.Queries.WebhooksHearing(ctx, db.WebhooksHearingParams{OrgID: org, DeveloperID: developer, Event: event})
}

// PortalConfigurationBody returns the configuration of an organisation's portal as
// JSON, or ErrNotFound. It reads within the transaction: a second connection could
// cause a deadlock on the pool.
func (tx *Tx) PortalConfigurationBody(ctx context.Context, org string) ([]byte, error) {
	body, err := tx.Queries.PortalEvents(ctx, org)
	return body, translate(err)
}

// WebhookFilter says which webhooks a list holds: those of a developer, or those whose
// name begins with Prefix in any case, or all.
type WebhookFilter struct{ Developer, Prefix string }

// ListWebhooks returns one page of an organisation's webhooks, and their total number.
func (s *Store) ListWebhooks(ctx context.Context, org string, f WebhookFilter, page Page) (rows []Webhook, total int64, err error) {
	q, skip, limit := s.queries, page.Offset(), page.Limit()
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
	return rows, total, translate(err)
}
