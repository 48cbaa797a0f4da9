package webhooks

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
)

// hookSender sends to URLs of the configuration, without signatures.
type hookSender struct{ *Service }

// Send makes one attempt.
func (s hookSender) Send(ctx context.Context, d delivery.Delivery) delivery.Outcome {
	return s.post(ctx, s.operators, posting{d.Target, d, nil})
}

// webhookSender sends to webhooks.
type webhookSender struct{ *Service }

// maxFailing is the time of failing after which a webhook is disabled.
const maxFailing = 5 * 24 * time.Hour

// lastTime leads to the last cause, which developers do not learn.
const lastTime = "; the last time "

// forDeveloper returns why a webhook was disabled, as its developer may see it: causes
// would show which names and addresses there are in the operator's network.
func forDeveloper(why string) string {
	why, _, _ = strings.Cut(why, lastTime)
	return why
}

// Why messages to a webhook are dropped.
const (
	reasonDisabled = "the webhook is disabled"
	reasonDeleted  = "the webhook was deleted"
)

// Send makes one attempt. Its outcome may disable the webhook.
func (s webhookSender) Send(ctx context.Context, d delivery.Delivery) delivery.Outcome {
	hook, err := s.deps.Store.WebhookByID(ctx, d.Org, d.Target)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return delivery.Outcome{Result: delivery.Never, Error: reasonDeleted}
	case err != nil:
		return delivery.Outcome{Result: delivery.Missed}
	case hook.DisabledAt != nil:
		return delivery.Outcome{Result: delivery.Never, Error: reasonDisabled}
	}
	secrets, err := s.secretsOf(&hook)
	if err != nil {
		s.deps.Log.Error("the secret of a webhook cannot be opened; admin.master_key is not what it was sealed with", "webhook", hook.ID, "err", err)
		return delivery.Outcome{Error: "its secret cannot be opened; the log of the admin has the cause"}
	}
	out := s.post(ctx, s.reachOf(hook.DeveloperID), posting{hook.URL, d, secrets})
	out.Note = func(ctx context.Context, tx *store.Tx, final bool) error {
		return s.recordOutcome(ctx, tx, &hook, out, final)
	}
	return out
}

// recordOutcome records since when a webhook fails, and disables one that fails too long.
func (s *Service) recordOutcome(ctx context.Context, tx *store.Tx, hook *store.Webhook, out delivery.Outcome, final bool) error {
	switch {
	case out.Result == delivery.Done && hook.FailingSince == nil:
		return nil
	case out.Result == delivery.Done:
		return tx.NoteWebhookWorks(ctx, hook.ID)
	case out.Result == delivery.Never:
		return s.disableFailing(ctx, tx, hook, out.Error)
	// A message that used up all its attempts was tried for a day: an endpoint that
	// stumbles once after a quiet week is not dead.
	case final && hook.FailingSince != nil && s.deps.Now().Sub(*hook.FailingSince) > maxFailing:
		return s.disableFailing(ctx, tx, hook, "nothing could be delivered for five days"+lastTime+out.Error)
	}
	return tx.NoteWebhookFails(ctx, hook.ID)
}

// disableFailing disables a webhook and notifies its owner.
func (s *Service) disableFailing(ctx context.Context, tx *store.Tx, hook *store.Webhook, why string) error {
	now, err := tx.LockWebhook(ctx, hook.OrgID, hook.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || now.DisabledAt != nil || now.URL != hook.URL {
		return err // disabled already, or the URL was changed
	}
	by := store.Author{Org: hook.OrgID, Name: "webhooks", Kind: "system"}
	if _, err := s.disable(ctx, tx, by, &now, why); err != nil {
		return err
	}
	s.deps.Log.Warn("a webhook was disabled", "webhook", hook.ID, "org", hook.OrgID, "reason", why)
	return s.notifyOwner(ctx, tx, hook, notice{model.WebhookDisabled, why})
}

// disable disables a webhook and drops its waiting messages.
func (s *Service) disable(ctx context.Context, tx *store.Tx, by store.Author, hook *store.Webhook, why string) (store.Webhook, error) {
	row, err := tx.DisableWebhook(ctx, hook.ID, why)
	if err != nil {
		return row, err
	}
	if err := tx.DropMessages(ctx, delivery.Webhook, hook.ID, reasonDisabled); err != nil {
		return row, err
	}
	return row, audit(ctx, tx, by, auditedChange{"disabled", hook, &row})
}

// A notice is what happened to a webhook, and why.
type notice struct{ event, why string }

// notifyOwner queues a letter to the owner of a webhook.
func (s *Service) notifyOwner(ctx context.Context, tx *store.Tx, hook *store.Webhook, n notice) error {
	l := model.Letter{Org: hook.OrgID, Kind: model.EventLetter, Event: n.event, Reason: hook.URL + ": " + n.why}
	if hook.DeveloperID != nil {
		email, err := tx.DeveloperEmail(ctx, hook.OrgID, *hook.DeveloperID)
		if err != nil {
			return err
		}
		l.Developer, l.To, l.Reason = *hook.DeveloperID, email, hook.URL+": "+forDeveloper(n.why)
		return s.queueLetter(ctx, tx, l)
	}
	c, err := s.configuration(ctx, tx, hook.OrgID)
	if err != nil || c == nil || c.Email == "" {
		return err
	}
	l.To = c.Email
	return s.queueLetter(ctx, tx, l)
}

// secretsOf returns the secrets that messages to a webhook are signed with: its secret,
// and for a while the former one.
func (s *Service) secretsOf(hook *store.Webhook) ([][]byte, error) {
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

// place is the additional data that a secret is sealed with.
func place(id, column string) []byte { return []byte("webhooks " + id + " " + column) }
