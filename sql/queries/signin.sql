-- UserByEmail returns the user of an address, in any case, whatever the organisation.
-- name: UserByEmail :one
SELECT * FROM users WHERE lower(email) = lower(@email::text);

-- FirstAdmin returns the oldest active admin of the first organisation.
-- name: FirstAdmin :one
SELECT u.* FROM users u
WHERE u.org_id = (SELECT o.id FROM orgs o ORDER BY o.created_at, o.id LIMIT 1) AND u.role = 'admin' AND u.active
ORDER BY u.created_at, u.id LIMIT 1;

-- name: InsertUserToken :exec
INSERT INTO user_tokens (token_hash, user_id, purpose, proof, ip, user_agent, used_at, expires_at, created_at)
VALUES (@token_hash, @user_id, @purpose, @proof, @ip, @user_agent, @at, @expires_at, @at);

-- TrimUserTokens deletes all tokens of a purpose but the newest.
-- name: TrimUserTokens :exec
DELETE FROM user_tokens WHERE token_hash IN (
    SELECT t.token_hash FROM user_tokens t WHERE t.user_id = @user_id AND t.purpose = @purpose
    ORDER BY t.created_at DESC, t.token_hash OFFSET @keep::integer);

-- UserByLink returns the user whose link can still be used.
-- name: UserByLink :one
SELECT u.* FROM user_tokens t JOIN users u ON u.id = t.user_id
WHERE t.token_hash = @token_hash AND t.purpose IN ('enter', 'invite') AND t.expires_at > @at AND u.active;

-- UseLink deletes a link that can still be used, and returns whose it was. Of two who
-- use one at once, the second gets nothing.
-- name: UseLink :one
DELETE FROM user_tokens WHERE token_hash = @token_hash AND purpose IN ('enter', 'invite') AND expires_at > @at
RETURNING user_id;

-- UserBySession returns the user of a session that has neither ended nor been unused
-- since a time.
-- name: UserBySession :one
SELECT sqlc.embed(u), t.proof, t.used_at, t.expires_at, t.created_at FROM user_tokens t JOIN users u ON u.id = t.user_id
WHERE t.token_hash = @token_hash AND t.purpose = 'session' AND t.expires_at > @at AND t.used_at > @idle AND u.active;

-- name: TouchUserSession :exec
UPDATE user_tokens SET used_at = @at WHERE token_hash = @token_hash AND used_at < @at;

-- name: SessionsOfUser :many
SELECT * FROM user_tokens
WHERE user_id = @user_id AND purpose = 'session' AND expires_at > @at AND used_at > @idle
ORDER BY created_at DESC, token_hash;

-- DeleteUserSession ends the session whose token's hash begins with these bytes.
-- name: DeleteUserSession :execrows
DELETE FROM user_tokens
WHERE user_id = @user_id AND purpose = 'session' AND substring(token_hash FROM 1 FOR length(@beginning::bytea)) = @beginning;

-- name: DropUserSession :exec
DELETE FROM user_tokens WHERE token_hash = $1 AND purpose = 'session';

-- DeleteUserTokens ends the sessions and links of a user.
-- name: DeleteUserTokens :exec
DELETE FROM user_tokens WHERE user_id = $1;

-- SetUserPassword replaces a password, if it is still the former one.
-- name: SetUserPassword :one
UPDATE users SET password_hash = @password_hash, version = version + 1, updated_at = now()
WHERE id = @id AND password_hash = @former
RETURNING *;

-- SweepUserTokens deletes some tokens that ended before a time.
-- name: SweepUserTokens :execrows
DELETE FROM user_tokens WHERE token_hash = ANY(ARRAY(
    SELECT t.token_hash FROM user_tokens t WHERE t.expires_at <= @before ORDER BY t.expires_at LIMIT @max
    FOR UPDATE SKIP LOCKED));
