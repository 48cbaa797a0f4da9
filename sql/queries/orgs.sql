-- name: OrgByID :one
SELECT * FROM orgs WHERE id = $1 AND ended_at IS NULL;

-- CountLiveOrgs counts the organisations that have not ended.
-- name: CountLiveOrgs :one
SELECT count(*) FROM orgs
WHERE ended_at IS NULL AND (@search::text = '' OR position(lower(@search) IN lower(name)) > 0 OR id = @search);

-- name: ListOrgs :many
SELECT * FROM orgs
WHERE ended_at IS NULL AND (@search::text = '' OR position(lower(@search) IN lower(name)) > 0 OR id = @search)
ORDER BY created_at, id
LIMIT sqlc.narg('max') OFFSET @skip;

-- LockOrg returns an organisation and keeps others from changing it, and from adding
-- what refers to it, until the transaction ends.
-- name: LockOrg :one
SELECT * FROM orgs WHERE id = $1 AND ended_at IS NULL FOR UPDATE;

-- name: RenameOrg :one
UPDATE orgs SET name = $2, version = version + 1, updated_at = now() WHERE id = $1 RETURNING *;

-- name: EndOrg :exec
UPDATE orgs SET ended_at = now(), version = version + 1, updated_at = now() WHERE id = $1;

-- OrgHoldings counts what is lost if an organisation ends.
-- name: OrgHoldings :one
SELECT (SELECT count(*) FROM apis a WHERE a.org_id = @org_id)::bigint AS apis,
    (SELECT count(*) FROM policies p WHERE p.org_id = @org_id)::bigint AS policies,
    (SELECT count(*) FROM keys k WHERE k.org_id = @org_id AND NOT starts_with(k.key_hash, 'org:'))::bigint AS keys,
    (SELECT count(*) FROM developers d WHERE d.org_id = @org_id)::bigint AS developers,
    (SELECT count(*) FROM certificates c WHERE c.org_id = @org_id)::bigint AS certificates,
    (SELECT count(*) FROM secrets s WHERE s.org_id = @org_id)::bigint AS secrets;

-- OrgOf returns the organisation of an object, whose id is unique among all
-- organisations.
-- name: OrgOf :one
SELECT org_id FROM (
    SELECT a.org_id FROM apis a WHERE @kind::text = 'api' AND a.id = @id::text
    UNION ALL
    SELECT p.org_id FROM policies p WHERE @kind = 'policy' AND p.id = @id
) owner;

-- OrgOfKey returns the organisation of the first of some hashes that a key has.
-- name: OrgOfKey :one
SELECT k.org_id FROM keys k WHERE k.key_hash = ANY(@hashes::text[]) ORDER BY array_position(@hashes::text[], k.key_hash) LIMIT 1;

-- PutOutboxOfOrg notes that all keys of an organisation are to leave the key store.
-- name: PutOutboxOfOrg :exec
INSERT INTO outbox (topic, id, payload) SELECT 'key', key_hash, '{"reset": []}' FROM keys WHERE org_id = $1 ORDER BY key_hash
ON CONFLICT (topic, id) DO UPDATE SET attempts = 0, next_at = now();

-- The statements below empty an organisation. What refers to others comes first.
-- name: DeleteDeliveriesOfOrg :exec
DELETE FROM deliveries WHERE org_id = $1;

-- name: DeleteWebhooksOfOrg :exec
DELETE FROM webhooks WHERE org_id = $1;

-- name: DeleteRequestsOfOrg :exec
DELETE FROM key_requests WHERE org_id = $1;

-- name: DeleteClientsOfOrg :exec
DELETE FROM oauth_clients WHERE org_id = $1;

-- name: DeleteDeveloperKeysOfOrg :exec
DELETE FROM developer_keys WHERE org_id = $1;

-- name: DeleteKeysOfOrg :exec
DELETE FROM keys WHERE org_id = $1;

-- name: DeleteDevelopersOfOrg :exec
DELETE FROM developers WHERE org_id = $1;

-- name: DeleteEntriesOfOrg :exec
DELETE FROM catalogue_entries WHERE org_id = $1;

-- name: DeleteDocumentsOfOrg :exec
DELETE FROM documents WHERE org_id = $1;

-- name: DeletePortalObjectsOfOrg :exec
DELETE FROM portal_objects WHERE org_id = $1;

-- name: DeleteSecretsOfOrg :exec
WITH gone AS (DELETE FROM secrets WHERE org_id = $1) UPDATE config_state SET secrets = secrets + 1;

-- name: DeleteCertificatesOfOrg :exec
DELETE FROM certificates WHERE org_id = $1;

-- name: DeleteCallsOfOrg :exec
DELETE FROM repeatable_calls WHERE org_id = $1;

-- name: DeleteUsersOfOrg :exec
DELETE FROM users WHERE org_id = $1;

-- name: DeleteSchemasOfOrg :exec
DELETE FROM api_schemas WHERE org_id = $1;

-- name: DeleteSyncsOfOrg :exec
DELETE FROM api_schema_syncs WHERE org_id = $1;
