package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// kindHook names webhooks that definitions refer to in the audit log and in summaries of
// revisions. They have no history: a rollback leaves them as they are.
const kindHook = "hook"

// maxHooks bounds the webhooks of an organisation that definitions refer to.
const maxHooks = 200

// A Hook is a webhook that event handlers of definitions refer to by its id.
type Hook struct {
	Version int64              `json:"version"`
	Webhook definition.Webhook `json:"webhook"`
}

// hookList is the object that holds those of an organisation, ordered by name and id.
type hookList struct {
	Hooks []Hook `json:"hooks"`
}

func (l *hookList) find(id string) int {
	return slices.IndexFunc(l.Hooks, func(h Hook) bool { return h.Webhook.ID == id })
}

func (l *hookList) read(body []byte) error {
	if err := json.Unmarshal(body, l); err != nil {
		return fmt.Errorf("reading the webhooks that definitions refer to: %w", err)
	}
	return nil
}

// Hooks returns an organisation's webhooks that definitions refer to, by name.
func (s *Store) Hooks(ctx context.Context, org string) ([]Hook, error) {
	list, _, err := hooksOf(ctx, s.queries, org)
	return list.Hooks, translate(err)
}

// HookByID returns one of them, or ErrNotFound.
func (s *Store) HookByID(ctx context.Context, org, id string) (Hook, error) {
	all, err := s.Hooks(ctx, org)
	if err != nil {
		return Hook{}, err
	}
	list := hookList{all}
	if at := list.find(id); at >= 0 {
		return all[at], nil
	}
	return Hook{}, ErrNotFound
}

// CheckHooks refuses an API whose handlers refer to webhooks that the organisation does not
// have, with a *NamesError.
func (s *Store) CheckHooks(ctx context.Context, org string, api *definition.API) error {
	uses := api.WebhookUses()
	if len(uses) == 0 {
		return nil
	}
	return translate(checkHooks(ctx, s.queries, org, map[string][]definition.WebhookUse{api.ID: uses}))
}

func hooksOf(ctx context.Context, q *db.Queries, org string) (list hookList, there bool, err error) {
	row, err := q.PortalObject(ctx, db.PortalObjectParams{OrgID: org, Kind: string(webhookObjects)})
	if errors.Is(translate(err), ErrNotFound) {
		return list, false, nil
	}
	if err != nil {
		return list, false, err
	}
	return list, true, list.read(row.Body)
}

func checkHooks(ctx context.Context, q *db.Queries, org string, of map[string][]definition.WebhookUse) error {
	if len(of) == 0 {
		return nil
	}
	list, _, err := hooksOf(ctx, q, org)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		wrong := &NamesError{Kind: kindAPI, ID: id}
		for _, use := range of[id] {
			if list.find(use.ID) < 0 {
				wrong.Problems = append(wrong.Problems, definition.Problem{
					Path: use.Path, Message: fmt.Sprintf("names the webhook %q, which does not exist; create it first (POST /api/hooks), or give the handler a target_path", use.ID),
				})
			}
		}
		if len(wrong.Problems) > 0 {
			return wrong
		}
	}
	return nil
}

// CreateHook adds a webhook to the author's organisation.
func (c *Change) CreateHook(ctx context.Context, w *definition.Webhook) error {
	list, there, err := hooksOf(ctx, c.q, c.by.Org)
	switch {
	case err != nil:
		return err
	case list.find(w.ID) >= 0:
		return &ConflictError{Kind: TakenID, With: []string{w.ID}}
	case len(list.Hooks) >= maxHooks:
		return &ConflictError{Kind: TooMany, With: []string{fmt.Sprintf("%d webhooks", maxHooks)}}
	}
	if err := c.checkHookSecrets(ctx, w); err != nil {
		return err
	}
	list.Hooks = append(list.Hooks, Hook{1, *w})
	if err := c.putHooks(ctx, &list, there); err != nil {
		return err
	}
	return c.noteHook(ctx, created, nil, w)
}

// UpdateHook replaces a webhook that is at version have, or at any if have is 0, and
// returns its new version. The APIs that refer to it belong to the revision.
func (c *Change) UpdateHook(ctx context.Context, w *definition.Webhook, have int64) (version int64, err error) {
	list, _, err := hooksOf(ctx, c.q, c.by.Org)
	if err != nil {
		return 0, err
	}
	at := list.find(w.ID)
	if at < 0 {
		return 0, ErrNotFound
	}
	old := list.Hooks[at]
	if err := CheckVersion(have, old.Version); err != nil {
		return 0, err
	}
	if err := c.checkHookSecrets(ctx, w); err != nil {
		return 0, err
	}
	list.Hooks[at] = Hook{old.Version + 1, *w}
	if err := c.putHooks(ctx, &list, true); err != nil {
		return 0, err
	}
	users, err := c.usersOfHook(ctx, w.ID)
	if err != nil {
		return 0, err
	}
	for _, user := range users { // the history of revisions names what gateways load anew
		err := c.q.InsertHistory(ctx, db.InsertHistoryParams{OrgID: c.by.Org, Kind: kindAPI, ID: user.ID, Revision: c.revision, Body: user.Definition})
		if err != nil {
			return 0, err
		}
	}
	return old.Version + 1, c.noteHook(ctx, updated, &old.Webhook, w)
}

// DeleteHook deletes a webhook at version have, or at any if have is 0, that no API refers
// to.
func (c *Change) DeleteHook(ctx context.Context, id string, have int64) error {
	list, _, err := hooksOf(ctx, c.q, c.by.Org)
	if err != nil {
		return err
	}
	at := list.find(id)
	if at < 0 {
		return ErrNotFound
	}
	old := list.Hooks[at]
	if err := CheckVersion(have, old.Version); err != nil {
		return err
	}
	users, err := c.usersOfHook(ctx, id)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		conflict := &ConflictError{Kind: InUse}
		for _, user := range users {
			conflict.With = append(conflict.With, user.ID)
		}
		return conflict
	}
	list.Hooks = slices.Delete(list.Hooks, at, at+1)
	if err := c.putHooks(ctx, &list, true); err != nil {
		return err
	}
	return c.noteHook(ctx, deleted, &old.Webhook, nil)
}

// putHooks stores the webhooks of the author's organisation.
func (c *Change) putHooks(ctx context.Context, list *hookList, there bool) error {
	slices.SortFunc(list.Hooks, func(a, b Hook) int {
		return strings.Compare(a.Webhook.Name+"\x00"+a.Webhook.ID, b.Webhook.Name+"\x00"+b.Webhook.ID)
	})
	body, err := encode(list)
	if err != nil {
		return err
	}
	kind := string(webhookObjects)
	if !there {
		return c.q.InsertPortalObject(ctx, db.InsertPortalObjectParams{OrgID: c.by.Org, Kind: kind, ID: kind + "-" + c.by.Org, Body: body})
	}
	_, err = c.q.UpdatePortalObject(ctx, db.UpdatePortalObjectParams{OrgID: c.by.Org, Kind: kind, Body: body})
	return err
}

// noteHook adds a change of a webhook, nil where it is absent, to the audit log and the
// summary.
func (c *Change) noteHook(ctx context.Context, action string, before, after *definition.Webhook) (err error) {
	entry := AuditEntry{Action: action, Kind: kindHook, Revision: c.revision}
	of := after
	if of == nil {
		of = before
	}
	entry.ID = of.ID
	if before != nil {
		if entry.Before, err = encode(before); err != nil {
			return err
		}
	}
	if after != nil {
		if entry.After, err = encode(after); err != nil {
			return err
		}
	}
	c.made = append(c.made, ObjectChange{kindHook, of.ID, of.Name, action})
	return audit(ctx, c.q, c.by, entry)
}

// checkHookSecrets refuses a webhook that refers to secrets that do not exist.
func (c *Change) checkHookSecrets(ctx context.Context, w *definition.Webhook) error {
	names := w.SealedSecrets()
	if len(names) == 0 {
		return nil
	}
	known, err := c.q.KnownSecrets(ctx, db.KnownSecretsParams{OrgID: c.by.Org, Names: names})
	if err != nil {
		return err
	}
	var p definition.Problems
	for _, name := range names {
		if !slices.Contains(known, name) {
			p = append(p, definition.Problem{Message: fmt.Sprintf("refers to the secret %q, which does not exist; set it first (sluice secret set %s)", name, name)})
		}
	}
	if len(p) == 0 {
		return nil
	}
	return &p
}

// hooksWithSecret returns the webhooks of the author's organisation that refer to a secret.
func (c *Change) hooksWithSecret(ctx context.Context, name string) (ids []string, err error) {
	list, _, err := hooksOf(ctx, c.q, c.by.Org)
	for i := range list.Hooks {
		if slices.Contains(list.Hooks[i].Webhook.SealedSecrets(), name) {
			ids = append(ids, "webhook "+list.Hooks[i].Webhook.ID)
		}
	}
	return ids, err
}

// usersOfHook returns the APIs of the author's organisation that refer to a webhook.
func (c *Change) usersOfHook(ctx context.Context, id string) (users []db.APIsWithTextRow, err error) {
	rows, err := c.q.APIsWithText(ctx, db.APIsWithTextParams{OrgID: c.by.Org, Text: `"` + id + `"`})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		var api definition.API
		if err := json.Unmarshal(row.Definition, &api); err != nil {
			return nil, fmt.Errorf("reading API %s: %w", row.ID, err)
		}
		if slices.ContainsFunc(api.WebhookUses(), func(u definition.WebhookUse) bool { return u.ID == id }) {
			users = append(users, row)
		}
	}
	return users, nil
}

// allHooks are the webhooks that definitions refer to, by organisation.
type allHooks map[string]*hookList

func readHooks(ctx context.Context, q *db.Queries) (allHooks, error) {
	rows, err := q.AllHooks(ctx)
	if err != nil {
		return nil, err
	}
	all := make(allHooks, len(rows))
	for _, row := range rows {
		all[row.OrgID] = new(hookList)
		if err := all[row.OrgID].read(row.Body); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// filled returns the definition of an API with the members of the webhooks that its event
// handlers refer to, for gateways.
func (all allHooks) filled(text []byte) []byte {
	if len(all) == 0 || !bytes.Contains(text, []byte(definition.WebhookHandler)) {
		return text
	}
	var api definition.API
	if json.Unmarshal(text, &api) != nil { // gateways report it
		return text
	}
	list := all[api.OrgID]
	if list == nil {
		return text
	}
	changed := api.TakeWebhooks(func(id string) *definition.Webhook {
		if at := list.find(id); at >= 0 {
			return &list.Hooks[at].Webhook
		}
		return nil
	})
	if !changed {
		return text
	}
	if with, err := encode(&api); err == nil {
		return with
	}
	return text
}
