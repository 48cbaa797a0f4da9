package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// atOnce bounds the rows of one statement, so that it ends within the statement timeout.
const atOnce = 2000

// inChunks calls store with chunks of the rows.
func inChunks[T any](ctx context.Context, rows []T, store func(context.Context, []T) (int64, error)) error {
	for some := range slices.Chunk(rows, atOnce) {
		if _, err := store(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// A noted change is what was done to one object. A nil body is an absent object.
type noted struct {
	did           ObjectChange
	before, after []byte
}

// noteAll adds changes of many objects to the history, the audit log and the summary.
func (c *Change) noteAll(ctx context.Context, all []noted) error {
	history := make([]db.CopyHistoryParams, len(all))
	entries := make([]db.CopyAuditParams, len(all))
	for i := range all {
		n := &all[i]
		c.made = append(c.made, n.did)
		history[i] = db.CopyHistoryParams{OrgID: c.by.Org, Kind: n.did.Kind, ID: n.did.ID, Revision: c.revision, Body: n.after}
		entries[i] = db.CopyAuditParams{
			OrgID: c.by.Org, Actor: c.by.Name, ActorKind: c.by.Kind, IP: c.by.IP, Action: n.did.Action,
			ObjectKind: n.did.Kind, ObjectID: n.did.ID, Before: mask(n.before), After: mask(n.after), Revision: &c.revision,
		}
	}
	if err := inChunks(ctx, history, c.q.CopyHistory); err != nil {
		return err
	}
	return inChunks(ctx, entries, c.q.CopyAudit)
}

// A putting inserts APIs after the rows that they replace were deleted.
type putting struct {
	rows  []db.CopyAPIsParams
	notes []noted
	graph []*definition.API // those with a schema
}

// add adds an API that replaces old, which may be nil.
func (p *putting) add(c *Change, id string, body []byte, old *db.API) error {
	api := new(definition.API)
	if err := json.Unmarshal(body, api); err != nil {
		return fmt.Errorf("restoring API %s: %w", id, err)
	}
	row, err := c.apiRow(api)
	if err != nil {
		return fmt.Errorf("restoring API %s: %w", id, err)
	}
	fresh := db.CopyAPIsParams{
		ID: id, OrgID: c.by.Org, Name: row.Name, Domain: row.Domain, ListenPath: row.ListenPath,
		Routed: row.Routed, Definition: body, Version: 1, CreatedAt: now(), SyncSeconds: row.SyncSeconds, Secrets: row.Secrets, Events: row.Events, Subgraphs: row.Subgraphs,
	}
	note := noted{did: ObjectChange{kindAPI, id, row.Name, created}, after: body}
	if old != nil {
		fresh.Version, fresh.CreatedAt = old.Version+1, old.CreatedAt
		note.did.Action, note.before = updated, old.Definition
	}
	p.rows, p.notes = append(p.rows, fresh), append(p.notes, note)
	if api.GraphQL != nil && api.GraphQL.Schema != "" {
		p.graph = append(p.graph, api)
	}
	return nil
}

// put inserts the APIs, unless one of them has the id or the route of another.
func (p *putting) put(ctx context.Context, c *Change) error {
	if err := p.checkTaken(ctx, c); err != nil {
		return err
	}
	if err := inChunks(ctx, p.rows, c.q.CopyAPIs); err != nil {
		return err
	}
	for _, api := range p.graph {
		if err := c.noteSchema(ctx, api); err != nil {
			return fmt.Errorf("restoring API %s: %w", api.ID, err)
		}
	}
	return c.noteAll(ctx, p.notes)
}

type route struct{ domain, listenPath string }

// checkTaken looks for other APIs with the same ids or routes, among those to be inserted
// and the stored ones.
func (p *putting) checkTaken(ctx context.Context, c *Change) error {
	routes := make(map[route]string, len(p.rows))
	for i := range p.rows {
		row := &p.rows[i]
		if !row.Routed {
			continue
		}
		at := route{row.Domain, row.ListenPath}
		if other, ok := routes[at]; ok {
			return restoring(row.ID, &ConflictError{Kind: TakenRoute, With: []string{other}})
		}
		routes[at] = row.ID
	}
	for some := range slices.Chunk(p.rows, atOnce) {
		var wanted db.TakenAPIsParams
		for i := range some {
			wanted.IDs = append(wanted.IDs, some[i].ID)
			if some[i].Routed {
				wanted.Domains, wanted.Paths = append(wanted.Domains, some[i].Domain), append(wanted.Paths, some[i].ListenPath)
			}
		}
		taken, err := c.q.TakenAPIs(ctx, wanted)
		if err != nil {
			return err
		}
		if len(taken) > 0 {
			return c.takenBy(&taken[0], wanted.IDs, routes)
		}
	}
	return nil
}

// takenBy returns the conflict with a stored API.
func (c *Change) takenBy(other *db.TakenAPIsRow, ids []string, routes map[route]string) error {
	with := c.visible(other.OrgID, other.ID)
	if slices.Contains(ids, other.ID) {
		return restoring(other.ID, &ConflictError{Kind: TakenID, With: with})
	}
	return restoring(routes[route{other.Domain, other.ListenPath}], &ConflictError{Kind: TakenRoute, With: with})
}

func restoring(id string, err error) error { return fmt.Errorf("restoring API %s: %w", id, err) }
