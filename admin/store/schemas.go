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

// SchemaSync is the result of fetching an API's schema from its upstream.
type SchemaSync struct {
	CheckedAt    time.Time // last try; zero: none yet
	FetchedAt    time.Time // last try that worked; zero: none yet
	Error        string    // why the last try did not work; "": it did
	FailingSince time.Time // with an Error: first of the tries that did not work
}

// HashSchema returns the SHA-256 of a schema in hexadecimal digits.
func HashSchema(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Fetched sets whether the schemas of this change come from upstreams.
func (c *Change) Fetched(yes bool) { c.fetched = yes }

// noteSchema stores the schema of an API, unless it is the latest one.
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

// forgetSchemas deletes the stored schemas of an API.
func (c *Change) forgetSchemas(ctx context.Context, api string) error {
	if err := c.q.DeleteSchemas(ctx, db.DeleteSchemasParams{OrgID: c.by.Org, APIID: api}); err != nil {
		return err
	}
	return c.q.DeleteSchemaSync(ctx, db.DeleteSchemaSyncParams{OrgID: c.by.Org, APIID: api})
}

// syncSeconds is how often the schema of an API is to be fetched; 0: never.
func syncSeconds(api *definition.API) int32 {
	if !api.HasUpstreamSchema() || api.GraphQL.SchemaSync == nil {
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

// LeaseSchemaSync returns an API whose schema is due, leased until NoteSchemaSync or
// the end of the lease. Found is false if there is none.
func (s *Store) LeaseSchemaSync(ctx context.Context, lease time.Duration) (org, api string, found bool, err error) {
	row, err := s.queries.LeaseSchemaSync(ctx, int32(max(lease/time.Second, 1)))
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", false, nil
	}
	return row.OrgID, row.APIID, err == nil, translate(err)
}

// NoteSchemaSync stores the result of fetching a schema, "" for success, and ends the
// lease.
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
