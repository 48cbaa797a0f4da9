-- Changes of very many objects, each of which a statement of its own would take a
-- journey to the database.

-- TakenAPIs returns who holds one of some ids or routes already.
-- name: TakenAPIs :many
SELECT id, org_id, name, domain, listen_path, routed FROM apis WHERE id = ANY (@ids::text[])
UNION
SELECT a.id, a.org_id, a.name, a.domain, a.listen_path, a.routed
FROM (SELECT unnest(@domains::text[])::text AS domain, unnest(@paths::text[])::text AS listen_path) wanted
JOIN apis a ON a.routed AND a.domain = wanted.domain AND a.listen_path = wanted.listen_path;

-- name: CopyAPIs :copyfrom
INSERT INTO apis (id, org_id, name, domain, listen_path, routed, definition, version, created_at, sync_seconds, secrets, events, subgraphs)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: CopyHistory :copyfrom
INSERT INTO config_history (org_id, kind, id, revision, body) VALUES ($1, $2, $3, $4, $5);

-- name: CopyAudit :copyfrom
INSERT INTO audit_log (org_id, actor, actor_kind, ip, action, object_kind, object_id, before, after, revision)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
