package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// maxWebhooks bounds the webhooks of a developer, and those of an organisation itself.
const maxWebhooks = 20

// invalid refuses a body with all its problems.
func invalid(problems []string) error {
	message := "Validation failed"
	if len(problems) == 1 {
		message += ": " + problems[0]
	}
	return rest.BadRequest(message, problems...)
}

func (s *Service) create(ctx context.Context, c *rest.Call) (any, error) {
	var w Wanted
	if err := c.Decode(&w); err != nil {
		return nil, err
	}
	if err := ownedBy(c, &w); err != nil {
		return nil, err
	}
	n := store.NewWebhook{ID: rest.NewID(), OrgID: c.Who.Org, Name: w.Name, URL: w.URL, Events: w.Events}
	if w.Developer != "" {
		n.DeveloperID = &w.Developer
	}
	known, err := s.typesFor(ctx, c.Who.Org, w.Developer)
	if err != nil {
		return nil, err
	}
	problems := append(check(w.Name, w.Events, known), s.reachOf(n.DeveloperID).urlProblems(w.URL)...)
	secret, err := secretOf(w.Secret)
	if err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	if n.SealedSecret, err = s.seal(secret, n.ID, secretColumn); err != nil {
		return nil, err
	}
	if err := s.deps.Store.InTx(ctx, func(tx *store.Tx) error { return s.add(ctx, tx, c, n) }); err != nil {
		return nil, err
	}
	return answerWith(n.ID, w.Secret, secret), nil
}

// ownedBy sets the owner of a new webhook.
func ownedBy(c *rest.Call, w *Wanted) error {
	if isDeveloper(c) {
		if w.Developer != "" && w.Developer != c.Who.ID {
			return invalid([]string{"developer_id: must be yours, or left out"})
		}
		w.Developer = c.Who.ID
		return nil
	}
	return checkOwner(c, w.Developer)
}

// checkOwner refuses changes of the organisation's own webhooks by callers below
// editor.
func checkOwner(c *rest.Call, developer string) error {
	if developer == "" && !isDeveloper(c) && !(&rest.Route{Role: rest.Editor}).Allows(c.Who.Role) {
		return rest.Refuse(fasthttp.StatusForbidden, "access denied: the organisation's own webhooks need the role editor; developer_id names whose a webhook is")
	}
	return nil
}

func (s *Service) add(ctx context.Context, tx *store.Tx, c *rest.Call, n store.NewWebhook) error {
	developer := ""
	if n.DeveloperID != nil {
		developer = *n.DeveloperID
	}
	count, err := tx.CountWebhooks(ctx, n.OrgID, developer)
	if errors.Is(err, store.ErrNotFound) {
		return invalid([]string{fmt.Sprintf("developer_id: there is no developer %.60q", developer)})
	}
	if err != nil {
		return err
	}
	if count >= maxWebhooks {
		return rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("There are %d webhooks, and no more are permitted; delete one first", count))
	}
	row, err := tx.CreateWebhook(ctx, n)
	if err != nil {
		return err
	}
	return audit(ctx, tx, c.Author(c.Source()), auditedChange{"created", nil, &row})
}

// secretOf returns the given secret, or a new one.
func secretOf(given string) ([]byte, error) {
	if given == "" {
		return newSecret(), nil
	}
	secret, err := parseSecret(given)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return secret, nil
}

// answerWith answers with a secret, unless the caller gave it.
func answerWith(id, given string, secret []byte) *rest.Envelope {
	var meta any
	if given == "" {
		meta = Shown{Secret: shown(secret)}
	}
	answer := rest.Done(id, meta)
	answer.ID = id
	return answer
}

func (s *Service) seal(secret []byte, id, column string) ([]byte, error) {
	sealed, err := s.deps.MasterKey.Seal(secret, place(id, column))
	if err != nil {
		s.deps.Log.Warn("a webhook's secret cannot be kept", "err", err)
		return nil, rest.Unavailable("admin.master_key is not set: the secret of a webhook cannot be kept without it")
	}
	return sealed, nil
}

// change changes the webhook in the path, at the version that the caller saw.
func (s *Service) change(ctx context.Context, c *rest.Call, do func(*store.Tx, store.Author, *store.Webhook) error) error {
	seen, err := c.IfMatch()
	if err != nil {
		return err
	}
	err = s.deps.Store.InTx(ctx, func(tx *store.Tx) error {
		row, err := tx.LockWebhook(ctx, c.Who.Org, c.Param("id"))
		switch {
		case err != nil:
			return err
		case !mayRead(c, &row):
			return store.ErrNotFound
		case c.Route.Match && seen != 0 && seen != row.Version:
			return &store.ConflictError{Kind: store.Stale, Current: row.Version}
		}
		if err := checkOwner(c, owner(&row)); err != nil {
			return err
		}
		return do(tx, c.Author(c.Source()), &row)
	})
	return rest.Missing(err, noWebhook)
}

func (s *Service) update(ctx context.Context, c *rest.Call) (any, error) {
	var w Webhook
	if err := c.Decode(&w); err != nil {
		return nil, err
	}
	found, err := s.find(ctx, c)
	if err != nil {
		return nil, err
	}
	known, err := s.typesFor(ctx, c.Who.Org, owner(&found))
	if err != nil {
		return nil, err
	}
	problems := check(w.Name, w.Events, known, found.Events...)
	err = s.change(ctx, c, func(tx *store.Tx, by store.Author, row *store.Webhook) error {
		if all := append(problems, s.reachOf(row.DeveloperID).urlProblems(w.URL)...); len(all) > 0 {
			return invalid(all)
		}
		now, err := tx.UpdateWebhook(ctx, store.WebhookChange{ID: row.ID, Name: w.Name, URL: w.URL, Events: w.Events})
		if err != nil {
			return err
		}
		c.SetVersion(now.Version)
		return audit(ctx, tx, by, auditedChange{"updated", row, &now})
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("Data updated", nil), nil
}

func (s *Service) remove(ctx context.Context, c *rest.Call) (any, error) {
	err := s.change(ctx, c, func(tx *store.Tx, by store.Author, row *store.Webhook) error {
		if err := tx.DeleteWebhook(ctx, row.ID); err != nil {
			return err
		}
		if err := tx.DropMessages(ctx, delivery.Webhook, row.ID, reasonDeleted); err != nil {
			return err
		}
		return audit(ctx, tx, by, auditedChange{"deleted", row, nil})
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("Data deleted", nil), nil
}

// How long messages are also signed with the former secret.
const (
	usualGrace = 24 * time.Hour
	maxGrace   = 7 * 24 * time.Hour
)

func (s *Service) rotate(ctx context.Context, c *rest.Call) (any, error) {
	var want Rotation
	if len(c.HTTP.Request.Body()) > 0 {
		if err := c.Decode(&want); err != nil {
			return nil, err
		}
	}
	grace := usualGrace
	var err error
	if want.Grace != "" {
		if grace, err = time.ParseDuration(want.Grace); err != nil || grace < 0 || grace > maxGrace {
			return nil, invalid([]string{`grace: must be a duration from 0s to 168h, such as "24h"`})
		}
	}
	secret, err := secretOf(want.Secret)
	if err != nil {
		return nil, invalid([]string{err.Error()})
	}
	id := ""
	err = s.change(ctx, c, func(tx *store.Tx, by store.Author, row *store.Webhook) error {
		id = row.ID
		return s.replace(ctx, tx, by, row, replacementSecret{secret, grace})
	})
	if err != nil {
		return nil, err
	}
	return answerWith(id, want.Secret, secret), nil
}

// A replacementSecret is a new secret, and how long the former one stays valid.
type replacementSecret struct {
	secret []byte
	grace  time.Duration
}

// replace sets a new secret, and keeps the former one for a while.
func (s *Service) replace(ctx context.Context, tx *store.Tx, by store.Author, row *store.Webhook, next replacementSecret) error {
	sealed, err := s.seal(next.secret, row.ID, secretColumn)
	if err != nil {
		return err
	}
	former := []byte{}
	if present, err := s.deps.MasterKey.Open(row.SealedSecret, place(row.ID, secretColumn)); err != nil {
		// It cannot sign any more, which may be why it is replaced.
		s.deps.Log.Warn("the former secret of a webhook cannot be opened and is forgotten", "webhook", row.ID, "err", err)
		next.grace = 0
	} else if former, err = s.seal(present, row.ID, formerColumn); err != nil {
		return err
	}
	now, err := tx.RotateWebhookSecret(ctx, store.WebhookSecrets{
		ID: row.ID, SealedSecret: sealed, SealedFormer: former, GraceSeconds: next.grace.Seconds(),
	})
	if err != nil {
		return err
	}
	return audit(ctx, tx, by, auditedChange{"rotated", row, &now})
}

// pinged is the data of a test message.
type pinged struct {
	Webhook string `json:"webhook_id"`
}

func (s *Service) ping(ctx context.Context, c *rest.Call) (any, error) {
	answer := rest.Done("Message queued", nil)
	err := s.change(ctx, c, func(tx *store.Tx, _ store.Author, row *store.Webhook) error {
		if row.DisabledAt != nil {
			return rest.Refuse(fasthttp.StatusConflict, "The webhook is disabled; enable it first")
		}
		data, err := rest.Encode(pinged{row.ID})
		if err != nil {
			return err
		}
		body, err := rest.Encode(message{Type: model.WebhookPing, Timestamp: s.deps.Now().UTC().Format(time.RFC3339Nano), Data: data})
		if err != nil {
			return err
		}
		m := delivery.Message{Org: row.OrgID, Kind: delivery.Webhook, Target: row.ID, Developer: owner(row), Event: model.WebhookPing, Payload: body}
		answer.ID, err = s.deps.Queue.Put(ctx, tx, m)
		if errors.Is(err, delivery.ErrFull) {
			return rest.Refuse(fasthttp.StatusConflict, "Too many messages wait for the webhook already")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (s *Service) enable(ctx context.Context, c *rest.Call) (any, error) {
	err := s.change(ctx, c, func(tx *store.Tx, by store.Author, row *store.Webhook) error {
		now, err := tx.EnableWebhook(ctx, row.ID)
		if err != nil {
			return err
		}
		return audit(ctx, tx, by, auditedChange{"enabled", row, &now})
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("Webhook enabled", nil), nil
}

func (s *Service) disableByCall(ctx context.Context, c *rest.Call) (any, error) {
	err := s.change(ctx, c, func(tx *store.Tx, by store.Author, row *store.Webhook) error {
		if row.DisabledAt != nil {
			return nil
		}
		why := "by " + c.Who.Name
		if row.DeveloperID != nil && !isDeveloper(c) {
			why = "by an operator of the portal" // developers do not see names of operators
		}
		_, err := s.disable(ctx, tx, by, row, why)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("Webhook disabled", nil), nil
}
