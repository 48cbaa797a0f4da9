-- ClaimUsage notes that a batch of a gateway counts, and holds back the gateway's
-- others until the transaction ends. It counts no rows when the batch, or one
-- after it, counts already.
-- name: ClaimUsage :execrows
INSERT INTO usage_senders (gateway, boot, sequence) VALUES (@gateway, @boot, @sequence)
ON CONFLICT (gateway, boot) DO UPDATE SET sequence = excluded.sequence, seen_at = now()
WHERE usage_senders.sequence < excluded.sequence;

-- MarkUsage says that hours are to be summed up again.
-- name: MarkUsage :exec
INSERT INTO usage_marks (hour) SELECT unnest(@hours::timestamptz[]);

-- AddUsage adds rows to the minutes. No two of them may be alike, and all must be
-- in the order of the key: two transactions never wait for each other.
-- name: AddUsage :exec
INSERT INTO usage_minute (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us)
SELECT unnest(@orgs::text[]), unnest(@buckets::timestamptz[]), unnest(@apis::text[]), unnest(@keys::text[]),
    unnest(@statuses::smallint[]), unnest(@reasons::text[]),
    unnest(@hits::bigint[]), unnest(@errors::bigint[]), unnest(@totals::bigint[]), unnest(@upstreams::bigint[])
ON CONFLICT (org_id, bucket, api_id, key_hash, status, reason) DO UPDATE SET
    hits = usage_minute.hits + excluded.hits, errors = usage_minute.errors + excluded.errors,
    total_us = usage_minute.total_us + excluded.total_us, upstream_us = usage_minute.upstream_us + excluded.upstream_us;

-- AddLatencies is AddUsage for how long calls took.
-- name: AddLatencies :exec
INSERT INTO latency_minute (org_id, bucket, api_id, size, calls)
SELECT unnest(@orgs::text[]), unnest(@buckets::timestamptz[]), unnest(@apis::text[]), unnest(@sizes::smallint[]), unnest(@calls::bigint[])
ON CONFLICT (org_id, bucket, api_id, size) DO UPDATE SET calls = latency_minute.calls + excluded.calls;

-- LockUsage makes the transaction the only one that sums up hours and keeps
-- partitions, or says that another one is.
-- name: LockUsage :one
SELECT pg_try_advisory_xact_lock(7209771);

-- PaceUsage gives the transaction time for much work, and little to wait for a
-- table: that holds up others.
-- name: PaceUsage :exec
SELECT set_config('statement_timeout', '300s', true), set_config('lock_timeout', '3s', true);

-- KeepUsage makes partitions and drops old ones, and says whether it dropped what
-- is too old.
-- name: KeepUsage :one
SELECT usage_keep(@at, make_interval(secs => @minute_seconds::float8), make_interval(secs => @hour_seconds::float8));

-- NextMarkedHour returns the first hour before another that is to be summed up.
-- name: NextMarkedHour :one
SELECT hour FROM usage_marks WHERE hour < @before ORDER BY hour LIMIT 1;

-- UnmarkUsage forgets the marks of an hour; rows of the batches that it does not
-- see yet come with marks of their own.
-- name: UnmarkUsage :exec
DELETE FROM usage_marks WHERE hour = @hour;

-- UsageFloor is where the minutes begin that are all there.
-- name: UsageFloor :one
SELECT minutes FROM usage_floor;

-- SumUsage puts the sum of its minutes in the place of an hour. Minutes only get
-- more: every row of the hour is written again.
-- name: SumUsage :exec
INSERT INTO usage_hour (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us)
SELECT m.org_id, date_trunc('hour', m.bucket, 'UTC'), m.api_id, m.key_hash, m.status, m.reason, sum(m.hits), sum(m.errors), sum(m.total_us), sum(m.upstream_us)
FROM usage_minute m WHERE m.bucket >= @hour AND m.bucket < @until
GROUP BY 1, 2, m.api_id, m.key_hash, m.status, m.reason
ON CONFLICT (org_id, bucket, api_id, key_hash, status, reason) DO UPDATE SET
    hits = excluded.hits, errors = excluded.errors, total_us = excluded.total_us, upstream_us = excluded.upstream_us;

-- SumLatencies is SumUsage for how long calls took.
-- name: SumLatencies :exec
INSERT INTO latency_hour (org_id, bucket, api_id, size, calls)
SELECT m.org_id, date_trunc('hour', m.bucket, 'UTC'), m.api_id, m.size, sum(m.calls)
FROM latency_minute m WHERE m.bucket >= @hour AND m.bucket < @until
GROUP BY 1, 2, m.api_id, m.size
ON CONFLICT (org_id, bucket, api_id, size) DO UPDATE SET calls = excluded.calls;

-- MoveUsage adds the minutes of an hour to it and removes them: those that were
-- there before are gone.
-- name: MoveUsage :exec
WITH late AS (
    DELETE FROM usage_minute m WHERE m.bucket >= @hour AND m.bucket < @until
    RETURNING m.org_id, m.api_id, m.key_hash, m.status, m.reason, m.hits, m.errors, m.total_us, m.upstream_us
)
INSERT INTO usage_hour (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us)
SELECT l.org_id, @hour::timestamptz, l.api_id, l.key_hash, l.status, l.reason, sum(l.hits), sum(l.errors), sum(l.total_us), sum(l.upstream_us)
FROM late l GROUP BY l.org_id, l.api_id, l.key_hash, l.status, l.reason
ON CONFLICT (org_id, bucket, api_id, key_hash, status, reason) DO UPDATE SET
    hits = usage_hour.hits + excluded.hits, errors = usage_hour.errors + excluded.errors,
    total_us = usage_hour.total_us + excluded.total_us, upstream_us = usage_hour.upstream_us + excluded.upstream_us;

-- MoveLatencies is MoveUsage for how long calls took.
-- name: MoveLatencies :exec
WITH late AS (
    DELETE FROM latency_minute m WHERE m.bucket >= @hour AND m.bucket < @until
    RETURNING m.org_id, m.api_id, m.size, m.calls
)
INSERT INTO latency_hour (org_id, bucket, api_id, size, calls)
SELECT l.org_id, @hour::timestamptz, l.api_id, l.size, sum(l.calls) FROM late l GROUP BY l.org_id, l.api_id, l.size
ON CONFLICT (org_id, bucket, api_id, size) DO UPDATE SET calls = latency_hour.calls + excluded.calls;

-- FirstMarkedHour returns the first hour from one on, and before another, that is
-- not summed up.
-- name: FirstMarkedHour :one
SELECT hour FROM usage_marks WHERE hour >= @since AND hour < @until ORDER BY hour LIMIT 1;

-- ReadUsage sums up the calls of an organisation: hours until split, minutes from
-- there on. What is not grouped by is empty. Each row has the totals of all.
-- name: ReadUsage :many
SELECT step_at, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us,
    count(*) OVER () AS groups, (sum(hits) OVER ())::bigint AS all_hits, (sum(errors) OVER ())::bigint AS all_errors,
    (sum(total_us) OVER ())::bigint AS all_total_us, (sum(upstream_us) OVER ())::bigint AS all_upstream_us
FROM (
    SELECT (CASE @step::text WHEN 'minute' THEN bucket WHEN 'hour' THEN date_trunc('hour', bucket, 'UTC')
            WHEN 'day' THEN date_trunc('day', bucket, 'UTC') ELSE @since END)::timestamptz AS step_at,
        (CASE WHEN @by_api::boolean THEN r.api_id ELSE '' END)::text AS api_id,
        (CASE WHEN @by_key::boolean THEN r.key_hash ELSE '' END)::text AS key_hash,
        (CASE WHEN @by_status::boolean THEN r.status ELSE 0 END)::smallint AS status,
        (CASE WHEN @by_reason::boolean THEN r.reason ELSE '' END)::text AS reason,
        sum(r.hits)::bigint AS hits, sum(r.errors)::bigint AS errors,
        sum(r.total_us)::bigint AS total_us, sum(r.upstream_us)::bigint AS upstream_us
    FROM (
        SELECT h.bucket, h.api_id, h.key_hash, h.status, h.reason, h.hits, h.errors, h.total_us, h.upstream_us
        FROM usage_hour h
        WHERE h.org_id = @org_id AND h.bucket >= @since AND h.bucket < @split
            AND (@api_id::text = '' OR h.api_id = @api_id) AND (NOT @of_key::boolean OR h.key_hash = @key_hash)
            AND (@status::int < 0 OR h.status = @status) AND (@reason::text = '' OR h.reason = @reason)
            AND (NOT @refused::boolean OR h.reason <> '')
        UNION ALL
        SELECT m.bucket, m.api_id, m.key_hash, m.status, m.reason, m.hits, m.errors, m.total_us, m.upstream_us
        FROM usage_minute m
        WHERE m.org_id = @org_id AND m.bucket >= @split AND m.bucket < @until
            AND (@api_id::text = '' OR m.api_id = @api_id) AND (NOT @of_key::boolean OR m.key_hash = @key_hash)
            AND (@status::int < 0 OR m.status = @status) AND (@reason::text = '' OR m.reason = @reason)
            AND (NOT @refused::boolean OR m.reason <> '')
    ) r
    GROUP BY 1, 2, 3, 4, 5
) grouped
ORDER BY step_at, hits DESC, api_id, key_hash, status, reason
LIMIT @max OFFSET @skip;

-- ReadLatencies is ReadUsage for how long calls took, of one API or of all.
-- name: ReadLatencies :many
SELECT step_at, api_id, size, calls FROM (
    SELECT (CASE @step::text WHEN 'minute' THEN bucket WHEN 'hour' THEN date_trunc('hour', bucket, 'UTC')
            WHEN 'day' THEN date_trunc('day', bucket, 'UTC') ELSE @since END)::timestamptz AS step_at,
        (CASE WHEN @by_api::boolean THEN r.api_id ELSE '' END)::text AS api_id, r.size, sum(r.calls)::bigint AS calls
    FROM (
        SELECT h.bucket, h.api_id, h.size, h.calls FROM latency_hour h
        WHERE h.org_id = @org_id AND h.bucket >= @since AND h.bucket < @split AND (@api_id::text = '' OR h.api_id = @api_id)
        UNION ALL
        SELECT m.bucket, m.api_id, m.size, m.calls FROM latency_minute m
        WHERE m.org_id = @org_id AND m.bucket >= @split AND m.bucket < @until AND (@api_id::text = '' OR m.api_id = @api_id)
    ) r
    GROUP BY 1, 2, 3
) grouped
WHERE (step_at, api_id) IN (SELECT unnest(@steps::timestamptz[]), unnest(@apis::text[]))
ORDER BY step_at, api_id, size;
