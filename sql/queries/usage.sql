-- ClaimUsage records that a batch of a gateway counts, and locks out the gateway's other
-- batches until the transaction ends. It affects no rows if the batch, or a later one,
-- counts already.
-- name: ClaimUsage :execrows
INSERT INTO usage_senders (gateway, boot, sequence) VALUES (@gateway, @boot, @sequence)
ON CONFLICT (gateway, boot) DO UPDATE SET sequence = excluded.sequence, seen_at = now()
WHERE usage_senders.sequence < excluded.sequence;

-- MarkUsage records that hours are to be summed up again.
-- name: MarkUsage :exec
INSERT INTO usage_marks (hour) SELECT unnest(@hours::timestamptz[]);

-- AddUsage adds rows to the minutes. Their keys must be distinct, and in the same order in
-- all batches, so that transactions cannot deadlock. Here as in all sums, values beyond
-- bigint, of counts that make no sense, stay at its maximum, so that no batch makes the
-- next one fail.
-- name: AddUsage :exec
INSERT INTO usage_minute (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us)
SELECT unnest(@orgs::text[]), unnest(@buckets::timestamptz[]), unnest(@apis::text[]), unnest(@keys::text[]),
    unnest(@statuses::smallint[]), unnest(@reasons::text[]),
    unnest(@hits::bigint[]), unnest(@errors::bigint[]), unnest(@totals::bigint[]), unnest(@upstreams::bigint[])
ON CONFLICT (org_id, bucket, api_id, key_hash, status, reason) DO UPDATE SET
    hits = usage_minute.hits + least(excluded.hits, 9223372036854775807 - usage_minute.hits), errors = usage_minute.errors + least(excluded.errors, 9223372036854775807 - usage_minute.errors),
    total_us = usage_minute.total_us + least(excluded.total_us, 9223372036854775807 - usage_minute.total_us), upstream_us = usage_minute.upstream_us + least(excluded.upstream_us, 9223372036854775807 - usage_minute.upstream_us);

-- AddAPIMinutes is AddUsage for sums without keys. Every batch updates the rows of all
-- APIs, so it comes late in a transaction, and others wait a short time.
-- name: AddAPIMinutes :exec
INSERT INTO usage_api_minute (org_id, bucket, api_id, status, reason, hits, errors, total_us, upstream_us)
SELECT unnest(@orgs::text[]), unnest(@buckets::timestamptz[]), unnest(@apis::text[]), unnest(@statuses::smallint[]), unnest(@reasons::text[]),
    unnest(@hits::bigint[]), unnest(@errors::bigint[]), unnest(@totals::bigint[]), unnest(@upstreams::bigint[])
ON CONFLICT (org_id, bucket, api_id, status, reason) DO UPDATE SET
    hits = usage_api_minute.hits + least(excluded.hits, 9223372036854775807 - usage_api_minute.hits), errors = usage_api_minute.errors + least(excluded.errors, 9223372036854775807 - usage_api_minute.errors),
    total_us = usage_api_minute.total_us + least(excluded.total_us, 9223372036854775807 - usage_api_minute.total_us), upstream_us = usage_api_minute.upstream_us + least(excluded.upstream_us, 9223372036854775807 - usage_api_minute.upstream_us);

-- AddAPIHours is AddAPIMinutes for hours.
-- name: AddAPIHours :exec
INSERT INTO usage_api_hour (org_id, bucket, api_id, status, reason, hits, errors, total_us, upstream_us)
SELECT unnest(@orgs::text[]), unnest(@buckets::timestamptz[]), unnest(@apis::text[]), unnest(@statuses::smallint[]), unnest(@reasons::text[]),
    unnest(@hits::bigint[]), unnest(@errors::bigint[]), unnest(@totals::bigint[]), unnest(@upstreams::bigint[])
ON CONFLICT (org_id, bucket, api_id, status, reason) DO UPDATE SET
    hits = usage_api_hour.hits + least(excluded.hits, 9223372036854775807 - usage_api_hour.hits), errors = usage_api_hour.errors + least(excluded.errors, 9223372036854775807 - usage_api_hour.errors),
    total_us = usage_api_hour.total_us + least(excluded.total_us, 9223372036854775807 - usage_api_hour.total_us), upstream_us = usage_api_hour.upstream_us + least(excluded.upstream_us, 9223372036854775807 - usage_api_hour.upstream_us);

-- AddLatencyMinutes is AddAPIMinutes for latencies.
-- name: AddLatencyMinutes :exec
INSERT INTO latency_minute (org_id, bucket, api_id, size, calls)
SELECT unnest(@orgs::text[]), unnest(@buckets::timestamptz[]), unnest(@apis::text[]), unnest(@sizes::smallint[]), unnest(@calls::bigint[])
ON CONFLICT (org_id, bucket, api_id, size) DO UPDATE SET calls = latency_minute.calls + least(excluded.calls, 9223372036854775807 - latency_minute.calls);

-- AddLatencyHours is AddAPIHours for latencies.
-- name: AddLatencyHours :exec
INSERT INTO latency_hour (org_id, bucket, api_id, size, calls)
SELECT unnest(@orgs::text[]), unnest(@buckets::timestamptz[]), unnest(@apis::text[]), unnest(@sizes::smallint[]), unnest(@calls::bigint[])
ON CONFLICT (org_id, bucket, api_id, size) DO UPDATE SET calls = latency_hour.calls + least(excluded.calls, 9223372036854775807 - latency_hour.calls);

-- LockUsage reports whether the transaction has the lock under which hours are summed up
-- and partitions are kept.
-- name: LockUsage :one
SELECT pg_try_advisory_xact_lock(7209771);

-- PaceUsage gives the transaction a long time for its statements, and a short one for
-- locks, since others queue behind it.
-- name: PaceUsage :exec
SELECT set_config('statement_timeout', '300s', true), set_config('lock_timeout', '3s', true);

-- KeepUsage creates partitions and drops old ones, and returns whether it dropped all
-- that are too old.
-- name: KeepUsage :one
SELECT usage_keep(@at, make_interval(secs => @minute_seconds::float8), make_interval(secs => @hour_seconds::float8));

-- NextMark returns the first mark before an hour. A mark of a whole hour comes before
-- those of its APIs.
-- name: NextMark :one
SELECT hour, org_id, api_id FROM usage_marks WHERE hour < @before ORDER BY hour, api_id, org_id LIMIT 1;

-- SpreadMarks replaces the marks of a whole hour by one for each API with calls. Batches
-- that it does not see have marks of their own.
-- name: SpreadMarks :exec
WITH whole AS (DELETE FROM usage_marks g WHERE g.hour = @hour AND g.api_id = '')
INSERT INTO usage_marks (hour, org_id, api_id)
SELECT DISTINCT @hour::timestamptz, m.org_id, m.api_id FROM usage_api_minute m
WHERE m.bucket >= @hour AND m.bucket < @until AND m.api_id <> '';

-- Unmark deletes the marks of an hour of an API.
-- name: Unmark :exec
DELETE FROM usage_marks WHERE hour = @hour AND org_id = @org_id AND api_id = @api_id;

-- UsageFloor returns the time from which on minutes are complete.
-- name: UsageFloor :one
SELECT minutes FROM usage_floor;

-- SumUsage replaces an hour of an API by the sum of its minutes. Minutes only grow: a row
-- with the same hits has not changed.
-- name: SumUsage :exec
INSERT INTO usage_hour (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us)
SELECT m.org_id, @hour::timestamptz, m.api_id, m.key_hash, m.status, m.reason, least(sum(m.hits), 9223372036854775807), least(sum(m.errors), 9223372036854775807),
    least(sum(m.total_us), 9223372036854775807), least(sum(m.upstream_us), 9223372036854775807)
FROM usage_minute m WHERE m.org_id = @org_id AND m.api_id = @api_id AND m.bucket >= @hour AND m.bucket < @until
GROUP BY m.org_id, m.api_id, m.key_hash, m.status, m.reason
ON CONFLICT (org_id, key_hash, bucket, api_id, status, reason) DO UPDATE SET
    hits = excluded.hits, errors = excluded.errors, total_us = excluded.total_us, upstream_us = excluded.upstream_us
WHERE usage_hour.hits <> excluded.hits;

-- MoveUsage adds late minutes of an API to their hour and deletes them. The earlier
-- minutes of the hour are gone.
-- name: MoveUsage :exec
WITH late AS (
    DELETE FROM usage_minute m WHERE m.org_id = @org_id AND m.api_id = @api_id AND m.bucket >= @hour AND m.bucket < @until
    RETURNING m.org_id, m.api_id, m.key_hash, m.status, m.reason, m.hits, m.errors, m.total_us, m.upstream_us
)
INSERT INTO usage_hour (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us)
SELECT l.org_id, @hour::timestamptz, l.api_id, l.key_hash, l.status, l.reason, least(sum(l.hits), 9223372036854775807), least(sum(l.errors), 9223372036854775807),
    least(sum(l.total_us), 9223372036854775807), least(sum(l.upstream_us), 9223372036854775807)
FROM late l GROUP BY l.org_id, l.api_id, l.key_hash, l.status, l.reason
ON CONFLICT (org_id, bucket, api_id, key_hash, status, reason) DO UPDATE SET
    hits = usage_hour.hits + least(excluded.hits, 9223372036854775807 - usage_hour.hits), errors = usage_hour.errors + least(excluded.errors, 9223372036854775807 - usage_hour.errors),
    total_us = usage_hour.total_us + least(excluded.total_us, 9223372036854775807 - usage_hour.total_us), upstream_us = usage_hour.upstream_us + least(excluded.upstream_us, 9223372036854775807 - usage_hour.upstream_us);

-- FirstMarkedHour returns the first hour of a range that is not summed up.
-- name: FirstMarkedHour :one
SELECT hour FROM usage_marks WHERE hour >= @since AND hour < @until ORDER BY hour LIMIT 1;

-- ReadUsage sums up the calls of an organisation: hours until split, minutes from there
-- on. Columns that are not grouped by are empty. Each row has the totals of all groups,
-- and the number of rows that were read, up to a limit.
-- name: ReadUsage :many
SELECT step_at, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us,
    count(*) OVER () AS groups, least(sum(hits) OVER (), 9223372036854775807)::bigint AS all_hits, least(sum(errors) OVER (), 9223372036854775807)::bigint AS all_errors,
    least(sum(total_us) OVER (), 9223372036854775807)::bigint AS all_total_us, least(sum(upstream_us) OVER (), 9223372036854775807)::bigint AS all_upstream_us,
    (sum(rows) OVER ())::bigint AS all_rows
FROM (
    SELECT (CASE @step::text WHEN 'minute' THEN bucket WHEN 'hour' THEN date_trunc('hour', bucket, 'UTC')
            WHEN 'day' THEN date_trunc('day', bucket, 'UTC') ELSE @since END)::timestamptz AS step_at,
        (CASE WHEN @by_api::boolean THEN r.api_id ELSE '' END)::text AS api_id,
        (CASE WHEN @by_key::boolean THEN r.key_hash ELSE '' END)::text AS key_hash,
        (CASE WHEN @by_status::boolean THEN r.status ELSE 0 END)::smallint AS status,
        (CASE WHEN @by_reason::boolean THEN r.reason ELSE '' END)::text AS reason,
        least(sum(r.hits), 9223372036854775807)::bigint AS hits, least(sum(r.errors), 9223372036854775807)::bigint AS errors,
        least(sum(r.total_us), 9223372036854775807)::bigint AS total_us, least(sum(r.upstream_us), 9223372036854775807)::bigint AS upstream_us, count(*) AS rows
    FROM (
        SELECT h.bucket, h.api_id, h.key_hash, h.status, h.reason, h.hits, h.errors, h.total_us, h.upstream_us
        FROM usage_hour h
        WHERE @keyed::boolean AND h.org_id = @org_id AND h.bucket >= @since AND h.bucket < @split
            AND (@api_id::text = '' OR h.api_id = @api_id) AND (NOT @of_key::boolean OR h.key_hash = @key_hash)
            AND (@status::int < 0 OR h.status = @status) AND (@reason::text = '' OR h.reason = @reason)
            AND (NOT @refused::boolean OR h.reason <> '')
        UNION ALL
        SELECT m.bucket, m.api_id, m.key_hash, m.status, m.reason, m.hits, m.errors, m.total_us, m.upstream_us
        FROM usage_minute m
        WHERE @keyed::boolean AND m.org_id = @org_id AND m.bucket >= @split AND m.bucket < @until
            AND (@api_id::text = '' OR m.api_id = @api_id) AND (NOT @of_key::boolean OR m.key_hash = @key_hash)
            AND (@status::int < 0 OR m.status = @status) AND (@reason::text = '' OR m.reason = @reason)
            AND (NOT @refused::boolean OR m.reason <> '')
        UNION ALL
        SELECT a.bucket, a.api_id, '', a.status, a.reason, a.hits, a.errors, a.total_us, a.upstream_us
        FROM usage_api_hour a
        WHERE NOT @keyed::boolean AND a.org_id = @org_id AND a.bucket >= @since AND a.bucket < @split
            AND CASE WHEN @each_api::boolean THEN a.api_id <> '' ELSE a.api_id = @api_id END
            AND (@status::int < 0 OR a.status = @status) AND (@reason::text = '' OR a.reason = @reason)
            AND (NOT @refused::boolean OR a.reason <> '')
        UNION ALL
        SELECT b.bucket, b.api_id, '', b.status, b.reason, b.hits, b.errors, b.total_us, b.upstream_us
        FROM usage_api_minute b
        WHERE NOT @keyed::boolean AND b.org_id = @org_id AND b.bucket >= @split AND b.bucket < @until
            AND CASE WHEN @each_api::boolean THEN b.api_id <> '' ELSE b.api_id = @api_id END
            AND (@status::int < 0 OR b.status = @status) AND (@reason::text = '' OR b.reason = @reason)
            AND (NOT @refused::boolean OR b.reason <> '')
        LIMIT @most
    ) r
    GROUP BY 1, 2, 3, 4, 5
) grouped
ORDER BY step_at, hits DESC, api_id, key_hash, status, reason
LIMIT @max OFFSET @skip;

-- ReadLatencies returns the latencies of groups, each of an API and a step, or of all APIs
-- ('').
-- name: ReadLatencies :many
SELECT step_at, api_id, size, calls FROM (
    SELECT (CASE @step::text WHEN 'minute' THEN bucket WHEN 'hour' THEN date_trunc('hour', bucket, 'UTC')
            WHEN 'day' THEN date_trunc('day', bucket, 'UTC') ELSE @since END)::timestamptz AS step_at,
        r.api_id, r.size, least(sum(r.calls), 9223372036854775807)::bigint AS calls
    FROM (
        SELECT h.bucket, h.api_id, h.size, h.calls FROM latency_hour h
        WHERE h.org_id = @org_id AND h.bucket >= @since AND h.bucket < @split AND h.api_id = ANY (@apis::text[])
        UNION ALL
        SELECT m.bucket, m.api_id, m.size, m.calls FROM latency_minute m
        WHERE m.org_id = @org_id AND m.bucket >= @split AND m.bucket < @until AND m.api_id = ANY (@apis::text[])
    ) r
    GROUP BY 1, 2, 3
) grouped
WHERE (step_at, api_id) IN (SELECT unnest(@steps::timestamptz[]), unnest(@apis::text[]))
ORDER BY step_at, api_id, size;

-- CallsOfAPIs sums up the calls of some APIs from an hour on.
-- name: CallsOfAPIs :many
SELECT a.api_id, least(sum(a.hits), 9223372036854775807)::bigint AS hits, least(sum(a.errors), 9223372036854775807)::bigint AS errors
FROM usage_api_hour a
WHERE a.org_id = @org_id AND a.api_id = ANY (@apis::text[]) AND a.bucket >= @since
GROUP BY a.api_id;

-- CallsOfKeys sums up the calls of some keys: hours until split, minutes from there on.
-- name: CallsOfKeys :many
SELECT r.key_hash, least(sum(r.hits), 9223372036854775807)::bigint AS hits, least(sum(r.errors), 9223372036854775807)::bigint AS errors
FROM (
    SELECT h.key_hash, h.hits, h.errors FROM usage_hour h
    WHERE h.org_id = @org_id AND h.key_hash = ANY (@keys::text[]) AND h.bucket >= @since AND h.bucket < @split
    UNION ALL
    SELECT m.key_hash, m.hits, m.errors FROM usage_minute m
    WHERE m.org_id = @org_id AND m.key_hash = ANY (@keys) AND m.bucket >= @split
) r
GROUP BY r.key_hash;

-- UsageAPINames returns the names of APIs.
-- name: UsageAPINames :many
SELECT id, name FROM apis WHERE org_id = @org_id AND id = ANY (@ids::text[]);

-- UsageKeyAliases returns the aliases of keys that have one.
-- name: UsageKeyAliases :many
SELECT key_hash, alias FROM keys WHERE org_id = @org_id AND key_hash = ANY (@hashes::text[]) AND alias <> '';
