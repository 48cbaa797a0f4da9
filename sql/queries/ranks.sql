-- KeepRanks is KeepUsage for what is made of hours.
-- name: KeepRanks :exec
SELECT usage_keep_ranks(@at, make_interval(secs => @hour_seconds::float8));

-- DueAfter notes what has to be made anew since the hour of an API has changed.
-- name: DueAfter :exec
INSERT INTO usage_due (org_id, api_id, hours, bucket)
VALUES (@org_id, '', 1, @hour), (@org_id, @api_id, 24, @day), (@org_id, '', 24, @day)
ON CONFLICT DO NOTHING;

-- NextDue returns what is made first: ranks of hours, then days, of which those of
-- APIs come before their ranks. Days that are not over by then are left out.
-- name: NextDue :one
SELECT org_id, api_id, hours, bucket FROM usage_due
WHERE hours = 1 OR hours = 24 AND bucket <= @before::timestamptz
ORDER BY hours, bucket, api_id DESC, org_id LIMIT 1;

-- Undue forgets what is made in this transaction.
-- name: Undue :exec
DELETE FROM usage_due WHERE org_id = @org_id AND api_id = @api_id AND hours = @hours AND bucket = @bucket;

-- SumDay puts the sum of its hours in the place of an API's day.
-- name: SumDay :exec
INSERT INTO usage_day (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us)
SELECT h.org_id, @day::timestamptz, h.api_id, h.key_hash, h.status, h.reason,
    least(sum(h.hits), 9223372036854775807), least(sum(h.errors), 9223372036854775807),
    least(sum(h.total_us), 9223372036854775807), least(sum(h.upstream_us), 9223372036854775807)
FROM usage_hour h WHERE h.org_id = @org_id AND h.api_id = @api_id AND h.bucket >= @day AND h.bucket < @until
GROUP BY h.org_id, h.api_id, h.key_hash, h.status, h.reason
ON CONFLICT (org_id, key_hash, bucket, api_id, status, reason) DO UPDATE SET
    hits = excluded.hits, errors = excluded.errors, total_us = excluded.total_us, upstream_us = excluded.upstream_us
WHERE usage_day.hits <> excluded.hits;

-- SeeKeys notes the month in which the keys of an hour were last called.
-- name: SeeKeys :exec
UPDATE usage_numbers n SET seen = @month
WHERE n.org_id = @org_id AND n.seen < @month
    AND EXISTS (SELECT 1 FROM usage_hour h WHERE h.org_id = @org_id AND h.bucket = @hour AND h.key_hash = n.key_hash);

-- NumberKeys gives the keys of an hour that have none the lowest numbers that are
-- free: among as many numbers as there are keys, enough are.
-- name: NumberKeys :exec
WITH fresh AS (
    SELECT k.key_hash, row_number() OVER () AS place FROM (
        SELECT DISTINCT h.key_hash FROM usage_hour h WHERE h.org_id = @org_id AND h.bucket = @hour
            AND NOT EXISTS (SELECT 1 FROM usage_numbers n WHERE n.org_id = @org_id AND n.key_hash = h.key_hash)
    ) k
), free AS (
    SELECT g.number, row_number() OVER (ORDER BY g.number) AS place
    FROM generate_series(0, (SELECT count(*) FROM usage_numbers n WHERE n.org_id = @org_id)::int + (SELECT count(*) FROM fresh)::int - 1) g (number)
    WHERE EXISTS (SELECT 1 FROM fresh) AND NOT EXISTS (SELECT 1 FROM usage_numbers n WHERE n.org_id = @org_id AND n.number = g.number)
)
INSERT INTO usage_numbers (org_id, key_hash, number, seen)
SELECT @org_id, fresh.key_hash, free.number, @month FROM fresh JOIN free USING (place);

-- HourByNumber returns how often each key called in an hour, all told and refused.
-- name: HourByNumber :many
SELECT n.number, least(sum(h.hits), 9223372036854775807)::bigint AS hits,
    least(coalesce(sum(h.hits) FILTER (WHERE h.reason <> ''), 0), 9223372036854775807)::bigint AS refused
FROM usage_hour h JOIN usage_numbers n ON n.org_id = h.org_id AND n.key_hash = h.key_hash
WHERE h.org_id = @org_id AND h.bucket = @hour
GROUP BY n.number ORDER BY n.number;

-- PutRank keeps the rank of an hour or of a day.
-- name: PutRank :exec
INSERT INTO usage_rank (org_id, refused, hours, bucket, hits) VALUES (@org_id, @refused, @hours, @bucket, @hits)
ON CONFLICT (org_id, refused, hours, bucket) DO UPDATE SET hits = excluded.hits;

-- Ranks returns those of some days and of some hours.
-- name: Ranks :many
SELECT r.hits FROM usage_rank r WHERE r.org_id = @org_id AND r.refused = @refused AND r.hours = 24 AND r.bucket = ANY (@days::timestamptz[])
UNION ALL
SELECT r.hits FROM usage_rank r WHERE r.org_id = @org_id AND r.refused = @refused AND r.hours = 1 AND r.bucket = ANY (@hours::timestamptz[]);

-- DueRanks returns the hours and the days of a range whose ranks have to be made
-- anew, and whether there are none yet.
-- name: DueRanks :many
SELECT d.hours, d.bucket, NOT EXISTS (
    SELECT 1 FROM usage_rank r WHERE r.org_id = d.org_id AND NOT r.refused AND r.hours = d.hours AND r.bucket = d.bucket
) AS missing
FROM usage_due d WHERE d.org_id = @org_id AND d.api_id = '' AND d.hours IN (1, 24) AND d.bucket >= @since AND d.bucket < @until
ORDER BY d.bucket;

-- FirstUnranked returns the first hour of a range that is not summed up and has no
-- ranks.
-- name: FirstUnranked :one
WITH RECURSIVE marked AS (
    (SELECT m.hour FROM usage_marks m WHERE m.hour >= @since AND m.hour < @until ORDER BY m.hour LIMIT 1)
    UNION ALL
    (SELECT (SELECT m.hour FROM usage_marks m WHERE m.hour > marked.hour AND m.hour < @until ORDER BY m.hour LIMIT 1) FROM marked WHERE marked.hour IS NOT NULL)
)
SELECT marked.hour::timestamptz AS hour FROM marked
WHERE marked.hour IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM usage_rank r WHERE r.org_id = @org_id AND NOT r.refused AND r.hours = 1 AND r.bucket = marked.hour
) ORDER BY 1 LIMIT 1;

-- TailByKey adds up by key what has no ranks yet: hours until split, minutes from
-- there on. It returns how many rows were read, at most so many.
-- name: TailByKey :many
SELECT r.key_hash::text AS key_hash, least(sum(r.hits), 9223372036854775807)::bigint AS hits, (sum(count(*)) OVER ())::bigint AS all_rows
FROM (
    SELECT h.key_hash, h.hits FROM usage_hour h
    WHERE h.org_id = @org_id AND h.bucket >= @since AND h.bucket < @split AND (NOT @refused::boolean OR h.reason <> '')
    UNION ALL
    SELECT m.key_hash, m.hits FROM usage_minute m
    WHERE m.org_id = @org_id AND m.bucket >= @split AND m.bucket < @until AND (NOT @refused::boolean OR m.reason <> '')
    LIMIT @most
) r
GROUP BY 1;

-- NumbersOf returns the numbers of keys, as far as they have some.
-- name: NumbersOf :many
SELECT n.key_hash, n.number FROM usage_numbers n WHERE n.org_id = @org_id AND n.key_hash = ANY (@keys::text[]);

-- KeysOf returns the keys that numbers are of.
-- name: KeysOf :many
SELECT n.number, n.key_hash FROM usage_numbers n WHERE n.org_id = @org_id AND n.number = ANY (@numbers::int[]);

-- SumsOfKeys adds up all about the calls of some keys: days, hours, and from a split
-- on hours and minutes as TailByKey has them.
-- name: SumsOfKeys :many
SELECT r.key_hash::text AS key_hash, least(sum(r.hits), 9223372036854775807)::bigint AS hits, least(sum(r.errors), 9223372036854775807)::bigint AS errors,
    least(sum(r.total_us), 9223372036854775807)::bigint AS total_us, least(sum(r.upstream_us), 9223372036854775807)::bigint AS upstream_us
FROM (
    SELECT d.key_hash, d.hits, d.errors, d.total_us, d.upstream_us FROM usage_day d
    WHERE d.org_id = @org_id AND d.key_hash = ANY (@keys::text[]) AND d.bucket = ANY (@days::timestamptz[]) AND (NOT @refused::boolean OR d.reason <> '')
    UNION ALL
    SELECT h.key_hash, h.hits, h.errors, h.total_us, h.upstream_us FROM usage_hour h
    WHERE h.org_id = @org_id AND h.key_hash = ANY (@keys) AND h.bucket = ANY (@hours::timestamptz[]) AND (NOT @refused OR h.reason <> '')
    UNION ALL
    SELECT h.key_hash, h.hits, h.errors, h.total_us, h.upstream_us FROM usage_hour h
    WHERE h.org_id = @org_id AND h.key_hash = ANY (@keys) AND h.bucket >= @since AND h.bucket < @split AND (NOT @refused OR h.reason <> '')
    UNION ALL
    SELECT m.key_hash, m.hits, m.errors, m.total_us, m.upstream_us FROM usage_minute m
    WHERE m.org_id = @org_id AND m.key_hash = ANY (@keys) AND m.bucket >= @split AND m.bucket < @until AND (NOT @refused OR m.reason <> '')
) r
GROUP BY 1;

-- KeepAPIRanks is KeepRanks for those of APIs.
-- name: KeepAPIRanks :exec
SELECT usage_keep_api_ranks(@at, make_interval(secs => @hour_seconds::float8));

-- RankAPIsOfHour keeps how often each API was called in an hour.
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

-- MarkedHours returns the hours of a range that are not summed up.
-- name: MarkedHours :many
WITH RECURSIVE marked AS (
    (SELECT m.hour FROM usage_marks m WHERE m.hour >= @since AND m.hour < @until ORDER BY m.hour LIMIT 1)
    UNION ALL
    (SELECT (SELECT m.hour FROM usage_marks m WHERE m.hour > marked.hour AND m.hour < @until ORDER BY m.hour LIMIT 1) FROM marked WHERE marked.hour IS NOT NULL)
)
SELECT marked.hour::timestamptz AS hour FROM marked WHERE marked.hour IS NOT NULL ORDER BY 1;

-- TopAPIs adds up how often APIs were called: days, hours, and hours that have no
-- ranks of late. It returns how many APIs there are.
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
        WHERE a.org_id = @org_id AND a.bucket = ANY (@live::timestamptz[]) AND a.api_id <> ''
    ) r
    GROUP BY r.api_id
) grouped
ORDER BY hits DESC, api_id
LIMIT @max OFFSET @skip;
