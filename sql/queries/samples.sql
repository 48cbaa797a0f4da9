-- AddSamples adds recorded requests.
-- name: AddSamples :exec
INSERT INTO samples (org_id, at, api_id, key_hash, gateway, size, detail)
SELECT unnest(@orgs::text[]), unnest(@ats::timestamptz[]), unnest(@apis::text[]), unnest(@keys::text[]), @gateway::text,
    unnest(@sizes::int[]), unnest(@details::jsonb[]);

-- LockSamples reports whether the transaction has the lock under which samples are
-- trimmed, so that two do not wait for each other's rows.
-- name: LockSamples :one
SELECT pg_try_advisory_xact_lock(7209781);

-- TrimSamples keeps the newest samples of some organisations, up to a number and a size.
-- name: TrimSamples :exec
DELETE FROM samples s USING (
    SELECT o.org_id, over.id
    FROM (SELECT unnest(@orgs::text[]) AS org_id) o,
    LATERAL (
        SELECT n.id FROM (
            SELECT f.id, row_number() OVER w AS number, sum(f.size) OVER w AS size
            FROM samples f WHERE f.org_id = o.org_id WINDOW w AS (ORDER BY f.id DESC)
        ) n
        WHERE n.number > @most::bigint OR n.size > @most_bytes::bigint ORDER BY n.id DESC LIMIT 1
    ) over
) gone
WHERE s.org_id = gone.org_id AND s.id <= gone.id;

-- ForgetSamples deletes the samples from before a time.
-- name: ForgetSamples :exec
DELETE FROM samples WHERE at < @before::timestamptz;

-- ForgetReplays deletes the runs from before a time.
-- name: ForgetReplays :exec
DELETE FROM replays WHERE started_at < @before::timestamptz;

-- DeleteSamples deletes samples of an organisation and returns how many.
-- name: DeleteSamples :execrows
DELETE FROM samples WHERE org_id = @org_id AND (@api_id::text = '' OR api_id = @api_id) AND (@key_hash::text = '' OR key_hash = @key_hash);

-- SampledAPIs counts the samples of an organisation by API.
-- name: SampledAPIs :many
SELECT api_id, count(*) AS samples, sum(size)::bigint AS bytes, min(at)::timestamptz AS first, max(at)::timestamptz AS last
FROM samples WHERE org_id = @org_id GROUP BY api_id ORDER BY samples DESC, api_id LIMIT @max;

-- ListSamples returns samples, the newest first: those before an id, or the newest of all
-- if it is 0.
-- name: ListSamples :many
SELECT id, detail FROM samples
WHERE org_id = @org_id AND (@before::bigint = 0 OR id < @before) AND at >= @since::timestamptz
    AND (@api_id::text = '' OR api_id = @api_id)
ORDER BY id DESC LIMIT @max;

-- CountSamples returns how many samples ListSamples has on all pages, up to a limit.
-- name: CountSamples :one
SELECT count(*) FROM (
    SELECT 1 FROM samples
    WHERE org_id = @org_id AND at >= @since::timestamptz AND (@api_id::text = '' OR api_id = @api_id) LIMIT @most
) few;

-- StartReplay adds a run, and keeps the newest most of the organisation.
-- name: StartReplay :exec
WITH old AS (
    DELETE FROM replays WHERE id IN (
        SELECT r.id FROM replays r WHERE r.org_id = @org_id ORDER BY r.started_at DESC OFFSET @most::int
    )
)
INSERT INTO replays (id, org_id, started_at, seen_at, state, total) VALUES (@id, @org_id, now(), now(), 'running', @total);

-- NoteReplay notes how far a run is. Its result is null until it is done.
-- name: NoteReplay :exec
UPDATE replays SET seen_at = now(), state = @state, done = @done, fault = @fault, result = sqlc.narg(result) WHERE id = @id;

-- ReplayOf returns a run, and how many seconds ago its admin last noted how far it is.
-- name: ReplayOf :one
SELECT id, started_at, state, done, total, fault, result, extract(epoch FROM now() - seen_at)::float8 AS silent
FROM replays WHERE org_id = @org_id AND id = @id;
