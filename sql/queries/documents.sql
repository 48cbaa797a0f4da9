-- DocumentByID returns a document as it was sent.
-- name: DocumentByID :one
SELECT id, api_id, name, kind, source, version, created_at, updated_at FROM documents WHERE org_id = $1 AND id = $2;

-- CleanDocument returns a document as developers may see it, if it was made so by
-- the rules of an edition; otherwise both texts are empty but its source.
-- name: CleanDocument :one
SELECT id, api_id, name, kind, version, edition, clean, CASE WHEN edition = @edition THEN '' ELSE source END::text AS source
FROM documents WHERE org_id = @org_id AND id = @id;

-- LockDocument returns the version of a document that nobody else changes until the
-- transaction ends.
-- name: LockDocument :one
SELECT id, api_id, name, kind, version, octet_length(source)::integer AS size FROM documents
WHERE org_id = $1 AND id = $2 FOR UPDATE;

-- name: InsertDocument :exec
INSERT INTO documents (id, org_id, api_id, name, kind, source, clean, edition) VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: UpdateDocument :one
UPDATE documents SET api_id = $3, name = $4, kind = $5, source = $6, clean = $7, edition = $8,
    version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2
RETURNING version;

-- RenewDocument keeps what newer rules made of a document, unless it was replaced
-- in the meantime.
-- name: RenewDocument :exec
UPDATE documents SET clean = @clean, edition = @edition
WHERE org_id = @org_id AND id = @id AND version = @version AND edition < @edition;

-- name: DeleteDocument :exec
DELETE FROM documents WHERE org_id = $1 AND id = $2;

-- EntriesWithDocument returns the catalogue's entries that have a document.
-- name: EntriesWithDocument :many
SELECT id, name FROM catalogue_entries WHERE org_id = @org_id AND document = @document AND document <> ''
ORDER BY position, id LIMIT 100;

-- name: CountDocuments :one
SELECT count(*) FROM documents
WHERE org_id = @org_id
    AND (@prefix::text = '' OR lower(name) LIKE @prefix)
    AND (@api_id::text = '' OR api_id = @api_id)
    AND (@kind::text = '' OR kind = @kind);

-- ListDocuments returns documents without their texts, the oldest first.
-- name: ListDocuments :many
SELECT id, api_id, name, kind, version, octet_length(source)::integer AS size, created_at, updated_at FROM documents
WHERE org_id = @org_id
    AND (@prefix::text = '' OR lower(name) LIKE @prefix)
    AND (@api_id::text = '' OR api_id = @api_id)
    AND (@kind::text = '' OR kind = @kind)
ORDER BY created_at, id
LIMIT @max OFFSET @skip;
