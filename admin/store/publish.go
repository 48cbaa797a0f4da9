package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// Author is the author of a change, and the organisation.
type Author struct {
	Org    string // id; objects of other organisations do not exist for the change
	Name   string // e-mail address of a user, or name of a system
	Kind   string // user, gateway or system
	IP     string // "" when not known
	Source string // api, gateway, seed, sync or rollback
	Reason string // "" when none was given
}

// Change is a transaction that changes the configuration. It is used by one goroutine, and
// only within Publish.
type Change struct {
	q        *db.Queries
	by       Author
	revision int64
	made     []ObjectChange
	fetched  bool                              // see Fetched
	refer    map[string][]definition.SecretUse // by API that was stored, references to sealed secrets

	hooked map[string][]definition.WebhookUse // likewise, references to webhooks

	names
}

// A PublishHook is called at the end of every Publish, in its transaction, with what
// the change did. An error rolls the change back.
type PublishHook func(ctx context.Context, by Author, c *Change) error

// OnPublish adds a hook. It must be called before the first Publish.
func (s *Store) OnPublish(hook PublishHook) { s.hooks = append(s.hooks, hook) }

// ObjectChange is what a revision did to one object.
type ObjectChange struct {
	// Kind of the object.
	Kind string `json:"kind" enum:"api,policy,certificate,hook,secret"`
	// Id of the object.
	ID string `json:"id"`
	// Name of the object.
	Name string `json:"name"`
	// What became of the object.
	Action string `json:"action" enum:"created,updated,deleted"`
}

// The kinds of objects that a revision holds.
const (
	kindAPI    = "api"
	kindPolicy = "policy"
)

// The actions on an object.
const (
	created = "created"
	updated = "updated"
	deleted = "deleted"
)

// Publish runs change in one transaction and numbers it: rows, history, the
// audit log, what the hooks do and the announcement to all admins happen together
// or not at all.
// Changes of all admins follow one another, so change sees the latest state. The revision is what gateways will report once they serve it.
func (s *Store) Publish(ctx context.Context, by Author, change func(context.Context, *Change) error) (revision int64, err error) {
	err = s.inTx(ctx, func(q *db.Queries) error {
		bumped, err := q.BumpRevision(ctx)
		if err != nil {
			return err
		}
		c := &Change{q: q, by: by, revision: bumped}
		if err := change(ctx, c); err != nil {
			return err
		}
		for _, hook := range s.hooks {
			if err := hook(ctx, by, c); err != nil {
				return err
			}
		}
		revision = bumped
		return c.conclude(ctx)
	})
	return revision, err
}

// conclude writes the row of the revision.
func (c *Change) conclude(ctx context.Context) error {
	if err := c.checkReferences(ctx); err != nil {
		return err
	}
	if c.made == nil {
		c.made = []ObjectChange{}
	}
	summary, err := json.Marshal(c.made)
	if err != nil {
		return fmt.Errorf("writing the summary of a revision: %w", err)
	}
	return c.q.InsertRevision(ctx, db.InsertRevisionParams{
		Revision: c.revision, OrgID: c.by.Org, Author: c.by.Name,
		Source: c.by.Source, Reason: c.by.Reason, Summary: summary,
	})
}

// checkReferences refuses APIs that refer to secrets or webhooks that do not exist.
func (c *Change) checkReferences(ctx context.Context) error {
	if err := c.checkSecrets(ctx); err != nil {
		return err
	}
	return checkHooks(ctx, c.q, c.by.Org, c.hooked)
}

// note adds a change of one object to the history, the audit log and the summary. A nil
// body is an absent object.
func (c *Change) note(ctx context.Context, did ObjectChange, before, after []byte) error {
	c.made = append(c.made, did)
	err := c.q.InsertHistory(ctx, db.InsertHistoryParams{
		OrgID: c.by.Org, Kind: did.Kind, ID: did.ID, Revision: c.revision, Body: after,
	})
	if err != nil {
		return err
	}
	return audit(ctx, c.q, c.by, AuditEntry{
		Action: did.Action, Kind: did.Kind, ID: did.ID, Before: before, After: after, Revision: c.revision,
	})
}

// CheckVersion returns a Stale conflict if have, the version that a caller saw, is not
// the current one. A have of 0 stands for any version.
func CheckVersion(have, current int64) error {
	if have != 0 && have != current {
		return &ConflictError{Kind: Stale, Current: current}
	}
	return nil
}

// encode returns a definition as it is stored, without escapes for HTML.
func encode(object any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return nil, fmt.Errorf("encoding for the database: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
