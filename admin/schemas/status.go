package schemas

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// Status is the state of fetching an API's schema.
type Status struct {
	// Id of the API.
	API string `json:"api_id"`
	// SHA-256 of the stored schema.
	SchemaHash string `json:"schema_hash"`
	// Time at which the schema was last taken from the upstream (RFC 3339); left out: never.
	LastUpdate string `json:"last_schema_update,omitempty" format:"date-time"`
	// Seconds between two fetches; 0: on demand only.
	Interval int64 `json:"interval"`
	// Time of the next fetch; left out: none is planned.
	NextAt *time.Time `json:"next_at,omitempty"`
	// Time of the last attempt to fetch the schema; left out: there was none.
	CheckedAt *time.Time `json:"checked_at,omitempty"`
	// Time of the last attempt that succeeded; left out: none did.
	FetchedAt *time.Time `json:"fetched_at,omitempty"`
	// Reason for which the last attempt failed; empty: it did not.
	LastError string `json:"last_sync_error"`
	// Time since which attempts have failed; left out: the last one did not.
	Failing *time.Time `json:"failing_since,omitempty"`
}

// Past is an earlier schema of an API.
type Past struct {
	// SHA-256 of the schema; GET /api/apis/{id}/schema?hash= has its text.
	Hash string `json:"hash"`
	// How the schema came in: with the definition, from the upstream, or by a rollback.
	Source string `json:"source" enum:"upload,introspection,rollback"`
	// E-mail address of the user, or name of the gateway or system task, that stored it.
	Author string `json:"author"`
	// Revision of the configuration that it came in with.
	Revision int64 `json:"revision"`
	// Bytes of the schema.
	Size int32 `json:"size"`
	// Time at which it was stored.
	At time.Time `json:"at"`
}

// History holds the latest schemas of an API.
type History struct {
	// Schemas that the API has had, newest first; 20 are kept.
	Schemas []Past `json:"schemas"`
}

// Text returns the stored schema of an API, or the earlier one with a hash, and the
// version of the API.
func (k *Keeper) Text(ctx context.Context, org, id, hash string) (string, int64, error) {
	row, api, err := k.graphQLAPI(ctx, org, id)
	if err != nil {
		return "", 0, err
	}
	if hash == "" || hash == store.HashSchema(api.GraphQL.Schema) {
		return api.GraphQL.Schema, row.Version, nil
	}
	text, err := k.store.SchemaByHash(ctx, org, row.ID, hash)
	return text, row.Version, err
}

// History lists the latest schemas of an API.
func (k *Keeper) History(ctx context.Context, org, id string) (*History, error) {
	row, _, err := k.graphQLAPI(ctx, org, id)
	if err != nil {
		return nil, err
	}
	rows, err := k.store.Schemas(ctx, org, row.ID)
	h := &History{Schemas: make([]Past, 0, len(rows))}
	for _, r := range rows {
		h.Schemas = append(h.Schemas, Past{r.Hash, r.Source, r.Author, r.Revision, r.Size, r.CreatedAt.UTC()})
	}
	return h, err
}

// Status returns the state of fetching an API's schema.
func (k *Keeper) Status(ctx context.Context, org, id string) (*Status, error) {
	row, api, err := k.graphQLAPI(ctx, org, id)
	if err != nil {
		return nil, err
	}
	last, err := k.store.SchemaSync(ctx, org, row.ID)
	if err != nil {
		return nil, err
	}
	s := &Status{
		API: row.ID, SchemaHash: store.HashSchema(api.GraphQL.Schema), LastUpdate: api.GraphQL.LastSchemaUpdate,
		CheckedAt: known(last.CheckedAt), FetchedAt: known(last.FetchedAt), LastError: last.Error,
	}
	if last.Error != "" {
		s.Failing = known(last.FailingSince)
	}
	if row.SyncSeconds > 0 {
		s.Interval = int64(row.SyncSeconds)
		from := row.CreatedAt.UTC()
		if last.CheckedAt.After(from) {
			from = last.CheckedAt
		}
		s.NextAt = known(from.Add(time.Duration(row.SyncSeconds) * time.Second))
	}
	return s, nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// GraphQLAPI returns an API that has a GraphQL schema; another is refused.
func (k *Keeper) GraphQLAPI(ctx context.Context, org, id string) (*definition.API, error) {
	_, api, err := k.graphQLAPI(ctx, org, id)
	return api, err
}

// graphQLAPI reads a GraphQL API.
func (k *Keeper) graphQLAPI(ctx context.Context, org, id string) (store.API, *definition.API, error) {
	row, err := k.store.APIByID(ctx, org, id)
	if err != nil {
		return row, nil, err
	}
	api, err := read(&row)
	if err != nil {
		return row, nil, err
	}
	if api.GraphQL == nil || api.GraphQL.Schema == "" {
		return row, nil, &Refusal{Status: badRequest, Message: "The API has no GraphQL schema"}
	}
	return row, api, nil
}
