-- name: InsertAudit :exec
INSERT INTO audit_log (org_id, actor, actor_kind, ip, action, object_kind, object_id, before, after, revision)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: CountAudit :one
SELECT count(*) FROM audit_log
WHERE org_id = @org_id
    AND (@object_kind::text = '' OR object_kind = @object_kind)
    AND (@object_id::text = '' OR object_id = @object_id)
    AND (@actor::text = '' OR actor = @actor);

-- name: ListAudit :many
SELECT * FROM audit_log
WHERE org_id = @org_id
    AND (@object_kind::text = '' OR object_kind = @object_kind)
    AND (@object_id::text = '' OR object_id = @object_id)
    AND (@actor::text = '' OR actor = @actor)
ORDER BY id DESC
LIMIT @max OFFSET @skip;

-- KeyValueHistory returns the newest changes of a key before an entry, each with the digest
-- of a part of the key after it; '' is an absent part.
-- name: KeyValueHistory :many
SELECT id, at, actor, action, coalesce(md5((after #> @path::text[])::text), '')::text AS value
FROM audit_log
WHERE org_id = @org_id AND object_kind = 'key' AND object_id = @key_hash AND action IN ('created', 'updated')
    AND id < @before
ORDER BY id DESC LIMIT @max;

-- ForgetAudit deletes the oldest entries that are from before a moment, at most so many,
-- and returns how many.
-- name: ForgetAudit :one
SELECT audit_forget(@before::timestamptz, @most::int);

-- SpentAudit reports whether an actor's newest entries, as many as the budget allows, are
-- all of the last day.
-- name: SpentAudit :one
SELECT (count(*) >= @budget::bigint)::boolean AS spent FROM (
    SELECT at FROM audit_log WHERE org_id = @org_id AND actor = @actor ORDER BY id DESC LIMIT @budget::bigint
) AS newest WHERE at > now() - interval '1 day';

-- name: PutGateway :exec
INSERT INTO gateways (name, group_name, build, revision, error, ip, tags) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO UPDATE SET group_name = excluded.group_name, build = excluded.build,
    revision = excluded.revision, error = excluded.error, ip = excluded.ip, tags = excluded.tags, seen_at = now();

-- name: ListGateways :many
SELECT * FROM gateways WHERE seen_at > now() - interval '1 day' ORDER BY name LIMIT 1000;

-- PutGatewayKeys records the last change of a key that a gateway has applied.
-- name: PutGatewayKeys :exec
UPDATE gateways SET keys_seq = @keys_seq, seen_at = now() WHERE name = @name;

-- DropGateways forgets gateways that have been silent for a day.
-- name: DropGateways :exec
DELETE FROM gateways WHERE seen_at < now() - interval '1 day';

-- DropGateway forgets one gateway.
-- name: DropGateway :execrows
DELETE FROM gateways WHERE name = $1;

-- AnnounceRefusals tells every admin of a question about refused requests, or of an answer.
-- name: AnnounceRefusals :exec
SELECT pg_notify('sluice_refusals', @message);
