package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Author is who changes something, and on behalf of which organisation.
type Author struct {
	Org    string // id; objects of others do not exist for the change
	Name   string // a user's e-mail address, or what else acts
	Kind   string // user, gateway or system
	IP     string // "" when not known
	Source string // api, gateway, seed, sync or rollback
	Reason string // "" when none was given
}

// Change is one transaction of configuration in the making. It is used by one
// goroutine, and only within Publish.
type Change struct {
	q        *db.Queries
	by       Author
	revision int64
	made     []ObjectChange
	fetched  bool // see Fetched
}

// Publish is how configuration changes: as Store.Publish, and whatever else is to
// happen with it.
type Publish func(ctx context.Context, by Author, change func(context.Context, *Change) error) (revision int64, err error)

// ObjectChange says what a revision did to one object.
type ObjectChange struct {
	Kind   string `json:"kind"` // api or policy
	ID     string `json:"id"`
	Name   string `json:"name"`
	Action string `json:"action"` // created, updated or deleted
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
// audit log and the announcement to all admins happen together or not at all.
// Changes follow one another, whoever makes them, so change sees the latest
// state. The revision is what gateways will report once they serve it.
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
		revision = bumped
		return c.conclude(ctx)
	})
	return revision, err
}

// conclude writes the row that describes the whole change.
func (c *Change) conclude(ctx context.Context) error {
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

// note adds what was done to one object to history, audit log and summary. A
// nil body is an absent object.
func (c *Change) note(ctx context.Context, did ObjectChange, before, after []byte) error {
	c.made = append(c.made, did)
	err := c.q.InsertHistory(ctx, db.InsertHistoryParams{
		OrgID: c.by.Org, Kind: did.Kind, ID: did.ID, Revision: c.revision, Body: after,
	})
	if err != nil {
		return err
	}
	return audit(ctx, c.q, c.by, Deed{
		Action: did.Action, Kind: did.Kind, ID: did.ID, Before: before, After: after, Revision: c.revision,
	})
}

// current refuses a change whose caller saw another version; 0 is any.
func current(have, is int64) error {
	if have != 0 && have != is {
		return &ConflictError{Kind: Stale, Current: is}
	}
	return nil
}

// encode is a definition as it is stored. HTML has no say in it: what people
// wrote comes back as they wrote it.
func encode(object any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return nil, fmt.Errorf("encoding for the database: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
