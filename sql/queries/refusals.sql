-- AddRefusals adds records of refused requests.
-- name: AddRefusals :exec
INSERT INTO refusals (org_id, at, request_id, gateway, api_id, key_hash, reason, detail)
SELECT unnest(@orgs::text[]), unnest(@ats::timestamptz[]), unnest(@requests::text[]), @gateway::text,
    unnest(@apis::text[]), unnest(@keys::text[]), unnest(@reasons::text[]), unnest(@details::jsonb[]);

-- TrimRefusals keeps the newest records of some keys. Those without a key are kept by API,
-- which is given in place of the key.
-- name: TrimRefusals :exec
DELETE FROM refusals r USING (
    SELECT o.org_id, o.key_hash, o.api_id, n.at, n.id
    FROM (SELECT unnest(@orgs::text[]) AS org_id, unnest(@keys::text[]) AS key_hash, unnest(@apis::text[]) AS api_id) o,
    LATERAL (
        SELECT f.at, f.id FROM refusals f
        WHERE f.org_id = o.org_id AND f.key_hash = o.key_hash AND (o.api_id = '' OR f.api_id = o.api_id)
        ORDER BY f.at DESC, f.id DESC OFFSET @most::int LIMIT 1
    ) n
) over
WHERE r.org_id = over.org_id AND r.key_hash = over.key_hash AND (over.api_id = '' OR r.api_id = over.api_id)
    AND (r.at, r.id) <= (over.at, over.id);

-- ForgetRefusals deletes the records from before a time, and all but about the newest
-- most of all organisations.
-- name: ForgetRefusals :exec
DELETE FROM refusals WHERE at < @before::timestamptz OR id <= (SELECT coalesce(max(id), 0) FROM refusals) - @most::bigint;

-- ListRefusals returns records of refused requests, the newest first.
-- name: ListRefusals :many
SELECT id, request_id, gateway, detail FROM refusals
WHERE org_id = @org_id AND at >= @since::timestamptz AND at < @until::timestamptz
    AND (@api_id::text = '' OR api_id = @api_id) AND (NOT @of_key::boolean OR key_hash = @key_hash::text)
    AND (@reason::text = '' OR reason = @reason)
ORDER BY at DESC, id DESC LIMIT @max OFFSET @skip;

-- CountRefusals returns how many records ListRefusals has on all pages, up to a limit.
-- name: CountRefusals :one
SELECT count(*) FROM (
    SELECT 1 FROM refusals
    WHERE org_id = @org_id AND at >= @since::timestamptz AND at < @until::timestamptz
        AND (@api_id::text = '' OR api_id = @api_id) AND (NOT @of_key::boolean OR key_hash = @key_hash::text)
        AND (@reason::text = '' OR reason = @reason)
    LIMIT @most
) few;

-- RefusalOf returns the newest record of a request id.
-- name: RefusalOf :one
SELECT id, request_id, gateway, detail FROM refusals
WHERE org_id = @org_id AND request_id = @request_id ORDER BY at DESC, id DESC LIMIT 1;

-- LockRefusals reports whether the transaction has the lock under which records are
-- trimmed, so that two do not wait for each other's rows.
-- name: LockRefusals :one
SELECT pg_try_advisory_xact_lock(7209780);
