-- LatestSchemaHash returns the hash of the schema that an API had last.
-- name: LatestSchemaHash :one
SELECT hash FROM api_schemas WHERE org_id = $1 AND api_id = $2 ORDER BY id DESC LIMIT 1;

-- name: InsertSchema :exec
INSERT INTO api_schemas (org_id, api_id, hash, source, sdl, author, revision)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- TrimSchemas forgets all but the newest schemas of an API.
-- name: TrimSchemas :exec
DELETE FROM api_schemas WHERE api_schemas.org_id = @org_id AND api_schemas.api_id = @api_id AND id NOT IN (
    SELECT s.id FROM api_schemas s WHERE s.org_id = @org_id AND s.api_id = @api_id
    ORDER BY s.id DESC LIMIT @keep
);

-- name: ListSchemas :many
SELECT hash, source, author, revision, created_at, octet_length(sdl)::integer AS size
FROM api_schemas WHERE org_id = $1 AND api_id = $2 ORDER BY id DESC LIMIT 100;

-- name: SchemaByHash :one
SELECT sdl FROM api_schemas WHERE org_id = $1 AND api_id = $2 AND hash = $3 ORDER BY id DESC LIMIT 1;

-- name: DeleteSchemas :exec
DELETE FROM api_schemas WHERE org_id = $1 AND api_id = $2;

-- name: DeleteSchemaSync :exec
DELETE FROM api_schema_syncs WHERE org_id = $1 AND api_id = $2;

-- LeaseSchemaSync picks an API whose schema is due and that nobody else fetches
-- just now. Of two who pick the same, the second finds the first one's lease and
-- gets no row.
-- name: LeaseSchemaSync :one
INSERT INTO api_schema_syncs AS mine (org_id, api_id, leased_until, checked_at)
SELECT a.org_id, a.id, now() + make_interval(secs => @lease_seconds::integer), coalesce(s.checked_at, 'epoch')
FROM apis a LEFT JOIN api_schema_syncs s ON s.org_id = a.org_id AND s.api_id = a.id
WHERE a.sync_seconds > 0
    AND greatest(s.checked_at, a.created_at) + make_interval(secs => a.sync_seconds) <= now()
    AND coalesce(s.leased_until, 'epoch') <= now()
ORDER BY greatest(s.checked_at, a.created_at), a.id
LIMIT 1
ON CONFLICT (org_id, api_id) DO UPDATE SET leased_until = excluded.leased_until
    WHERE mine.leased_until <= now() AND mine.checked_at = excluded.checked_at
RETURNING org_id, api_id;

-- PutSchemaSync notes what came of a try and gives back the lease.
-- name: PutSchemaSync :exec
INSERT INTO api_schema_syncs AS s (org_id, api_id, checked_at, fetched_at, error, failing_since)
VALUES (@org_id, @api_id, now(), CASE WHEN @error::text = '' THEN now() ELSE 'epoch'::timestamptz END, @error, now())
ON CONFLICT (org_id, api_id) DO UPDATE SET
    leased_until = 'epoch',
    checked_at = now(),
    fetched_at = CASE WHEN excluded.error = '' THEN now() ELSE s.fetched_at END,
    failing_since = CASE WHEN s.error = '' THEN now() ELSE s.failing_since END,
    error = excluded.error;

-- name: SchemaSync :one
SELECT * FROM api_schema_syncs WHERE org_id = $1 AND api_id = $2;
