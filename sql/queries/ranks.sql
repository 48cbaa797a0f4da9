-- KeepRanks is KeepUsage for ranks.
-- name: KeepRanks :exec
SELECT usage_keep_ranks(@at, make_interval(secs => @hour_seconds::float8));

-- DueAfter notes which ranks are to be made since an hour has changed.
-- name: DueAfter :exec
INSERT INTO usage_due (org_id, hours, bucket) VALUES (@org_id, 1, @hour), (@org_id, 24, @day) ON CONFLICT DO NOTHING;

-- NextDue returns which ranks are made next: hours before days. Days that are not over
-- by then are left out.
-- name: NextDue :one
SELECT org_id, hours, bucket FROM usage_due
WHERE hours = 1 OR hours = 24 AND bucket <= @before::timestamptz
ORDER BY hours, bucket, org_id LIMIT 1;

-- Undue deletes what is made in this transaction.
-- name: Undue :exec
DELETE FROM usage_due WHERE org_id = @org_id AND hours = @hours AND bucket = @bucket;

-- RankKeysOfHour adds up an hour by key. Hours only grow: a row with the same hits has
-- not changed.
-- name: RankKeysOfHour :exec
INSERT INTO usage_key_rank (org_id, hours, bucket, key_hash, refused, hits, errors, total_us, upstream_us)
SELECT h.org_id, 1, h.bucket, h.key_hash, h.reason <> '', least(sum(h.hits), 9223372036854775807), least(sum(h.errors), 9223372036854775807),
    least(sum(h.total_us), 9223372036854775807), least(sum(h.upstream_us), 9223372036854775807)
FROM usage_hour h WHERE h.org_id = @org_id AND h.bucket = @hour
GROUP BY h.org_id, h.bucket, h.key_hash, h.reason <> ''
ON CONFLICT (org_id, hours, bucket, key_hash, refused) DO UPDATE SET
    hits = excluded.hits, errors = excluded.errors, total_us = excluded.total_us, upstream_us = excluded.upstream_us
WHERE usage_key_rank.hits <> excluded.hits;

-- RankKeysOfDay is RankKeysOfHour for a day, which is made of its hours.
-- name: RankKeysOfDay :exec
INSERT INTO usage_key_rank (org_id, hours, bucket, key_hash, refused, hits, errors, total_us, upstream_us)
SELECT r.org_id, 24, @day::timestamptz, r.key_hash, r.refused, least(sum(r.hits), 9223372036854775807), least(sum(r.errors), 9223372036854775807),
    least(sum(r.total_us), 9223372036854775807), least(sum(r.upstream_us), 9223372036854775807)
FROM usage_key_rank r WHERE r.org_id = @org_id AND r.hours = 1 AND r.bucket >= @day AND r.bucket < @until
GROUP BY r.org_id, r.key_hash, r.refused
ON CONFLICT (org_id, hours, bucket, key_hash, refused) DO UPDATE SET
    hits = excluded.hits, errors = excluded.errors, total_us = excluded.total_us, upstream_us = excluded.upstream_us
WHERE usage_key_rank.hits <> excluded.hits;

-- RankAPIsOfHour adds up an hour by API.
-- name: RankAPIsOfHour :exec
INSERT INTO usage_api_rank (org_id, hours, bucket, api_id, hits, errors, total_us, upstream_us)
SELECT a.org_id, 1, a.bucket, a.api_id, least(sum(a.hits), 9223372036854775807), least(sum(a.errors), 9223372036854775807),
    least(sum(a.total_us), 9223372036854775807), least(sum(a.upstream_us), 9223372036854775807)
FROM usage_api_hour a WHERE a.org_id = @org_id AND a.bucket = @hour AND a.api_id <> ''
GROUP BY a.org_id, a.bucket, a.api_id
ON CONFLICT (org_id, hours, bucket, api_id) DO UPDATE SET
    hits = excluded.hits, errors = excluded.errors, total_us = excluded.total_us, upstream_us = excluded.upstream_us;

-- RankAPIsOfDay is RankAPIsOfHour for a day, which is made of its hours.
-- name: RankAPIsOfDay :exec
INSERT INTO usage_api_rank (org_id, hours, bucket, api_id, hits, errors, total_us, upstream_us)
SELECT r.org_id, 24, @day::timestamptz, r.api_id, least(sum(r.hits), 9223372036854775807), least(sum(r.errors), 9223372036854775807),
    least(sum(r.total_us), 9223372036854775807), least(sum(r.upstream_us), 9223372036854775807)
FROM usage_api_rank r WHERE r.org_id = @org_id AND r.hours = 1 AND r.bucket >= @day AND r.bucket < @until
GROUP BY r.org_id, r.api_id
ON CONFLICT (org_id, hours, bucket, api_id) DO UPDATE SET
    hits = excluded.hits, errors = excluded.errors, total_us = excluded.total_us, upstream_us = excluded.upstream_us;

-- ChangedHours returns the hours of a range that have changed since their ranks were
-- made: whether minutes are to be summed up (marked), and whether there are ranks of
-- keys at all (ranked).
-- name: ChangedHours :many
WITH RECURSIVE marked AS (
    (SELECT m.hour FROM usage_marks m WHERE m.hour >= @since AND m.hour < @until ORDER BY m.hour LIMIT 1)
    UNION ALL
    (SELECT (SELECT m.hour FROM usage_marks m WHERE m.hour > marked.hour AND m.hour < @until ORDER BY m.hour LIMIT 1) FROM marked WHERE marked.hour IS NOT NULL)
)
SELECT c.hour::timestamptz AS hour, bool_or(c.marked)::boolean AS marked, EXISTS (
    SELECT 1 FROM usage_key_rank r WHERE r.org_id = @org_id AND r.hours = 1 AND r.bucket = c.hour
) AS ranked
FROM (
    SELECT marked.hour, true AS marked FROM marked WHERE marked.hour IS NOT NULL
    UNION ALL
    SELECT d.bucket, false FROM usage_due d WHERE d.org_id = @org_id AND d.hours = 1 AND d.bucket >= @since AND d.bucket < @until
) c
GROUP BY c.hour ORDER BY c.hour;

-- ChangedDays returns the days of a range that have changed since their ranks were made.
-- name: ChangedDays :many
SELECT d.bucket FROM usage_due d WHERE d.org_id = @org_id AND d.hours = 24 AND d.bucket >= @since AND d.bucket < @until ORDER BY d.bucket;

-- CountChanged counts the rows by key of hours that have changed, up to a limit.
-- name: CountChanged :one
SELECT count(*) FROM (
    SELECT 1 FROM usage_hour h WHERE h.org_id = @org_id AND h.bucket = ANY (@changed::timestamptz[]) AND (NOT @refused::boolean OR h.reason <> '')
    UNION ALL
    SELECT 1 FROM unnest(@live::timestamptz[]) l (hour)
    JOIN usage_minute m ON m.org_id = @org_id AND m.bucket >= l.hour AND m.bucket < l.hour + interval '1 hour' AND (NOT @refused OR m.reason <> '')
    LIMIT @most
) r;

-- TopKeys adds up the calls of keys: ranks of days and hours, hours that have changed
-- since they were ranked, and hours of which minutes are read. It returns the number of
-- keys, and how many rows were read, up to a limit.
-- name: TopKeys :many
SELECT key_hash, hits, errors, total_us, upstream_us, count(*) OVER () AS groups, (sum(rows) OVER ())::bigint AS all_rows FROM (
    SELECT r.key_hash, least(sum(r.hits), 9223372036854775807)::bigint AS hits, least(sum(r.errors), 9223372036854775807)::bigint AS errors,
        least(sum(r.total_us), 9223372036854775807)::bigint AS total_us, least(sum(r.upstream_us), 9223372036854775807)::bigint AS upstream_us, count(*) AS rows
    FROM (
        SELECT d.key_hash, d.hits, d.errors, d.total_us, d.upstream_us FROM usage_key_rank d
        WHERE d.org_id = @org_id AND d.hours = 24 AND d.bucket = ANY (@days::timestamptz[]) AND (NOT @refused::boolean OR d.refused)
        UNION ALL
        SELECT k.key_hash, k.hits, k.errors, k.total_us, k.upstream_us FROM usage_key_rank k
        WHERE k.org_id = @org_id AND k.hours = 1 AND k.bucket = ANY (@hours::timestamptz[]) AND (NOT @refused OR k.refused)
        UNION ALL
        SELECT h.key_hash, h.hits, h.errors, h.total_us, h.upstream_us FROM usage_hour h
        WHERE h.org_id = @org_id AND h.bucket = ANY (@changed::timestamptz[]) AND (NOT @refused OR h.reason <> '')
        UNION ALL
        SELECT m.key_hash, m.hits, m.errors, m.total_us, m.upstream_us FROM unnest(@live::timestamptz[]) l (hour)
        JOIN usage_minute m ON m.org_id = @org_id AND m.bucket >= l.hour AND m.bucket < l.hour + interval '1 hour' AND (NOT @refused OR m.reason <> '')
        LIMIT @most
    ) r
    GROUP BY r.key_hash
) grouped
ORDER BY hits DESC, key_hash
LIMIT @max OFFSET @skip;

-- TopAPIs is TopKeys for APIs, whose hours are up to date without ranks, too.
-- name: TopAPIs :many
SELECT api_id, hits, errors, total_us, upstream_us, count(*) OVER () AS groups FROM (
    SELECT r.api_id, least(sum(r.hits), 9223372036854775807)::bigint AS hits, least(sum(r.errors), 9223372036854775807)::bigint AS errors,
        least(sum(r.total_us), 9223372036854775807)::bigint AS total_us, least(sum(r.upstream_us), 9223372036854775807)::bigint AS upstream_us
    FROM (
        SELECT d.api_id, d.hits, d.errors, d.total_us, d.upstream_us FROM usage_api_rank d
        WHERE d.org_id = @org_id AND d.hours = 24 AND d.bucket = ANY (@days::timestamptz[])
        UNION ALL
        SELECT h.api_id, h.hits, h.errors, h.total_us, h.upstream_us FROM usage_api_rank h
        WHERE h.org_id = @org_id AND h.hours = 1 AND h.bucket = ANY (@hours::timestamptz[])
        UNION ALL
        SELECT a.api_id, a.hits, a.errors, a.total_us, a.upstream_us FROM usage_api_hour a
        WHERE a.org_id = @org_id AND a.bucket = ANY (@changed::timestamptz[]) AND a.api_id <> ''
    ) r
    GROUP BY r.api_id
) grouped
ORDER BY hits DESC, api_id
LIMIT @max OFFSET @skip;
