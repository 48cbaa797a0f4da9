-- name: RepeatableCall :one
SELECT * FROM repeatable_calls WHERE org_id = $1 AND caller = $2 AND key = $3;

-- name: InsertRepeatableCall :exec
INSERT INTO repeatable_calls (org_id, caller, key, route, body_hash) VALUES ($1, $2, $3, $4, $5);

-- KeepAnswer notes what a call was answered with.
-- name: KeepAnswer :exec
UPDATE repeatable_calls SET status = $4, answer = $5 WHERE org_id = $1 AND caller = $2 AND key = $3;

-- name: ForgetRepeatableCalls :execrows
DELETE FROM repeatable_calls WHERE created_at < @before;

-- name: ForgetRepeatableCall :exec
DELETE FROM repeatable_calls WHERE org_id = $1 AND caller = $2 AND key = $3;
