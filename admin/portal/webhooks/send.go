package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/deliveries"
	"github.com/sluicegate/sluice/admin/store/webhooks"
)

// hookSender sends to URLs of the configuration, which have no secret.
type hookSender struct{ *Service }

// Send makes one attempt.
func (s hookSender) Send(ctx context.Context, d delivery.Delivery) delivery.Outcome {
	return s.post(ctx, d.Target, d, nil)
}

// webhookSender sends to webhooks.
type webhookSender struct{ *Service }

// patience is how long a webhook may fail before it is disabled.
const patience = 5 * 24 * time.Hour

// Why messages to a webhook are given up.
const (
	isDisabled = "the webhook is disabled"
	wasDeleted = "the webhook was deleted"
)

// Send makes one attempt, and looks after the webhook by what comes of it.
func (s webhookSender) Send(ctx context.Context, d delivery.Delivery) delivery.Outcome {
	hook, err := webhooks.Get(ctx, s.deps.Store, d.Org, d.Target)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return delivery.Outcome{Result: delivery.Never, Error: wasDeleted}
	case err != nil:
		return delivery.Outcome{Result: delivery.Missed}
	case hook.DisabledAt != nil:
		return delivery.Outcome{Result: delivery.Never, Error: isDisabled}
	}
	secrets, err := s.secretsOf(&hook)
	if err != nil {
		s.deps.Log.Error("the secret of a webhook cannot be opened; admin.master_key is not what it was sealed with", "webhook", hook.ID, "err", err)
		return delivery.Outcome{Error: "its secret cannot be opened; the log of the admin has the cause"}
	}
	out := s.post(ctx, hook.URL, d, secrets)
	out.Note = func(ctx context.Context, tx *store.Tx, final bool) error { return s.note(ctx, tx, &hook, out, final) }
	return out
}

// note keeps since when a webhook fails, and disables one that is dead.
func (s *Service) note(ctx context.Context, tx *store.Tx, hook *webhooks.Row, out delivery.Outcome, final bool) error {
	switch {
	case out.Result == delivery.Done && hook.FailingSince == nil:
		return nil
	case out.Result == delivery.Done:
		return webhooks.NoteWorks(ctx, tx, hook.ID)
	case out.Result == delivery.Never:
		return s.giveUp(ctx, tx, hook, out.Error)
	// A message that used up all its attempts was tried for a day: an endpoint that
	// stumbles once after a quiet week is not dead.
	case final && hook.FailingSince != nil && s.deps.Now().Sub(*hook.FailingSince) > patience:
		return s.giveUp(ctx, tx, hook, "nothing could be delivered for five days; the last time "+out.Error)
	}
	return webhooks.NoteFails(ctx, tx, hook.ID)
}

// giveUp disables a webhook and tells whose it is.
func (s *Service) giveUp(ctx context.Context, tx *store.Tx, hook *webhooks.Row, why string) error {
	now, err := webhooks.Lock(ctx, tx, hook.OrgID, hook.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || now.DisabledAt != nil || now.URL != hook.URL {
		return err // done already, or it is another receiver by now
	}
	by := store.Author{Org: hook.OrgID, Name: "webhooks", Kind: "system"}
	if _, err := s.disable(ctx, tx, by, &now, why); err != nil {
		return err
	}
	s.deps.Log.Warn("a webhook was disabled", "webhook", hook.ID, "org", hook.OrgID, "reason", why)
	return s.writeTo(ctx, tx, hook, why)
}

// disable ends that a webhook is told of events, those included that wait.
func (s *Service) disable(ctx context.Context, tx *store.Tx, by store.Author, hook *webhooks.Row, why string) (webhooks.Row, error) {
	row, err := webhooks.Disable(ctx, tx, hook.ID, why)
	if err != nil {
		return row, err
	}
	if err := deliveries.Drop(ctx, tx, delivery.Webhook, hook.ID, isDisabled); err != nil {
		return row, err
	}
	return row, audit(ctx, tx, by, deed{"disabled", hook, &row})
}

// writeTo tells whose a webhook is that it was disabled.
func (s *Service) writeTo(ctx context.Context, tx *store.Tx, hook *webhooks.Row, why string) error {
	l := record.Letter{Org: hook.OrgID, Kind: record.EventLetter, Event: record.WebhookDisabled, Reason: hook.URL + ": " + why}
	if hook.DeveloperID != nil {
		email, err := webhooks.EmailOf(ctx, tx, hook.OrgID, *hook.DeveloperID)
		if err != nil {
			return err
		}
		l.Developer, l.To = *hook.DeveloperID, email
		return s.write(ctx, tx, l)
	}
	c, err := s.configuration(ctx, tx, hook.OrgID)
	if err != nil || c == nil || c.Email == "" {
		return err
	}
	l.To = c.Email
	return s.write(ctx, tx, l)
}

// secretsOf returns what messages to a webhook are signed with: its secret, and
// for a while the one before.
func (s *Service) secretsOf(hook *webhooks.Row) ([][]byte, error) {
	secret, err := s.deps.MasterKey.Open(hook.SealedSecret, place(hook.ID, secretColumn))
	if err != nil {
		return nil, err
	}
	secrets := [][]byte{secret}
	if hook.FormerUntil == nil || !s.deps.Now().Before(*hook.FormerUntil) {
		return secrets, nil
	}
	former, err := s.deps.MasterKey.Open(hook.SealedFormer, place(hook.ID, formerColumn))
	if err != nil {
		return nil, err
	}
	return append(secrets, former), nil
}

// Columns of sealed secrets.
const (
	secretColumn = "sealed_secret"
	formerColumn = "sealed_former"
)

// place is what a sealed secret belongs to.
func place(id, column string) []byte { return []byte("webhooks " + id + " " + column) }
