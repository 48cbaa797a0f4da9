-- ConcernedKeys returns some of an organisation's keys that name one of some APIs, or have
-- one of some policies, in the order of their hashes, and whether each was called since a
-- time. Keys that followed another count with it.
-- name: ConcernedKeys :many
SELECT k.key_hash, k.alias, EXISTS (
    SELECT 1 FROM usage_minute m WHERE m.org_id = k.org_id AND m.key_hash = k.key_hash AND m.bucket >= @since::timestamptz
) AS called
FROM keys k
WHERE k.org_id = @org_id AND k.successor_of = '' AND NOT starts_with(k.key_hash, 'org:')
    AND (k.apis && @apis::text[] OR k.policies && @policies::text[])
ORDER BY k.key_hash LIMIT @max;
