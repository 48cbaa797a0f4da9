package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// schemasKept is how many schemas of one API are kept.
const schemasKept = 20

// Schema is one schema that an API had, without its text.
type Schema = db.ListSchemasRow

// SchemaSync is what came of fetching an API's schema from its upstream.
type SchemaSync struct {
	CheckedAt    time.Time // last try; zero: none yet
	FetchedAt    time.Time // last try that worked; zero: none yet
	Error        string    // why the last try did not work; "": it did
	FailingSince time.Time // with an Error: first of the tries that did not work
}

// HashSchema is the name of a schema's text: its SHA-256 in hexadecimal digits.
func HashSchema(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Fetched says whether the schemas of this change come from upstreams; otherwise
// somebody wrote them.
func (c *Change) Fetched(yes bool) { c.fetched = yes }

// noteSchema keeps the schema of an API unless it is the one that it had.
func (c *Change) noteSchema(ctx context.Context, api *definition.API) error {
	if api.GraphQL == nil || api.GraphQL.Schema == "" {
		return nil
	}
	text := api.GraphQL.Schema
	hash := HashSchema(text)
	latest, err := c.q.LatestSchemaHash(ctx, db.LatestSchemaHashParams{OrgID: c.by.Org, APIID: api.ID})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) || latest == hash {
		return err
	}
	err = c.q.InsertSchema(ctx, db.InsertSchemaParams{
		OrgID: c.by.Org, APIID: api.ID, Hash: hash, Source: c.schemaSource(), Sdl: text, Author: c.by.Name, Revision: c.revision,
	})
	if err != nil {
		return err
	}
	return c.q.TrimSchemas(ctx, db.TrimSchemasParams{OrgID: c.by.Org, APIID: api.ID, Keep: schemasKept})
}

func (c *Change) schemaSource() string {
	switch {
	case c.fetched:
		return "introspection"
	case c.by.Source == "rollback":
		return "rollback"
	}
	return "upload"
}

// forgetSchemas removes what is kept of the schemas of an API.
func (c *Change) forgetSchemas(ctx context.Context, api string) error {
	if err := c.q.DeleteSchemas(ctx, db.DeleteSchemasParams{OrgID: c.by.Org, APIID: api}); err != nil {
		return err
	}
	return c.q.DeleteSchemaSync(ctx, db.DeleteSchemaSyncParams{OrgID: c.by.Org, APIID: api})
}

// syncSeconds is how often the schema of an API is to be fetched; 0: never.
func syncSeconds(api *definition.API) int32 {
	if !api.IsGraphQL() || api.GraphQL.ExecutionMode != definition.ModeProxy || api.GraphQL.SchemaSync == nil {
		return 0
	}
	return int32(min(max(api.GraphQL.SchemaSync.Interval, 0), math.MaxInt32))
}

// Schemas lists the newest schemas that an API had, newest first.
func (s *Store) Schemas(ctx context.Context, org, api string) ([]Schema, error) {
	rows, err := s.queries.ListSchemas(ctx, db.ListSchemasParams{OrgID: org, APIID: api})
	return rows, translate(err)
}

// SchemaByHash returns the text of one of the schemas that Schemas lists.
func (s *Store) SchemaByHash(ctx context.Context, org, api, hash string) (string, error) {
	text, err := s.queries.SchemaByHash(ctx, db.SchemaByHashParams{OrgID: org, APIID: api, Hash: hash})
	return text, translate(err)
}

// LeaseSchemaSync returns an API whose schema is to be fetched now, which nobody
// else does until NoteSchemaSync or the lease ends; found is false when there is
// none.
func (s *Store) LeaseSchemaSync(ctx context.Context, lease time.Duration) (org, api string, found bool, err error) {
	row, err := s.queries.LeaseSchemaSync(ctx, int32(max(lease/time.Second, 1)))
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", false, nil
	}
	return row.OrgID, row.APIID, err == nil, translate(err)
}

// NoteSchemaSync notes what came of fetching a schema, "" for success, and ends
// the lease.
func (s *Store) NoteSchemaSync(ctx context.Context, org, api, problem string) error {
	return translate(s.queries.PutSchemaSync(ctx, db.PutSchemaSyncParams{OrgID: org, APIID: api, Error: problem}))
}

// SchemaSync returns what came of fetching an API's schema.
func (s *Store) SchemaSync(ctx context.Context, org, api string) (SchemaSync, error) {
	row, err := s.queries.SchemaSync(ctx, db.SchemaSyncParams{OrgID: org, APIID: api})
	if errors.Is(err, pgx.ErrNoRows) {
		return SchemaSync{}, nil
	}
	return SchemaSync{
		CheckedAt: moment(row.CheckedAt), FetchedAt: moment(row.FetchedAt), Error: row.Error, FailingSince: moment(row.FailingSince),
	}, translate(err)
}

// moment is a time of the database, where the epoch stands for never.
func moment(t time.Time) time.Time {
	if t.Unix() == 0 {
		return time.Time{}
	}
	return t.UTC()
}
