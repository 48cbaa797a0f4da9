-- name: InsertDeveloper :one
INSERT INTO developers (id, org_id, email, inactive, password_hash, password_history, password_max_days, password_updated,
    verified_at, last_login_at, nonce, sso_key, fields, extra)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
RETURNING *;

-- name: DeveloperByID :one
SELECT * FROM developers WHERE org_id = $1 AND id = $2;

-- name: DeveloperByEmail :one
SELECT * FROM developers WHERE org_id = @org_id AND lower(email) COLLATE "C" = lower(@email::text);

-- LockDeveloper returns a developer and keeps others from changing it until the
-- transaction ends.
-- name: LockDeveloper :one
SELECT * FROM developers WHERE org_id = $1 AND id = $2 FOR UPDATE;

-- name: LockDeveloperByEmail :one
SELECT * FROM developers WHERE org_id = @org_id AND lower(email) COLLATE "C" = lower(@email::text) FOR UPDATE;

-- name: UpdateDeveloper :one
UPDATE developers SET email = $3, inactive = $4, password_max_days = $5, verified_at = $6, nonce = $7, sso_key = $8,
    fields = $9, extra = $10, version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2
RETURNING *;

-- ReplacePassword changes a password that is still the one that the caller saw.
-- name: ReplacePassword :one
UPDATE developers SET password_hash = @password_hash, password_history = @password_history, password_updated = @at,
    version = version + 1, updated_at = now()
WHERE id = @id AND password_hash = @former
RETURNING *;

-- ConfirmDeveloper notes that the address is the developer's, if the password is
-- still the one that the caller saw.
-- name: ConfirmDeveloper :one
UPDATE developers SET verified_at = @at, version = version + 1, updated_at = now()
WHERE id = @id AND password_hash = @password_hash AND NOT inactive
RETURNING *;

-- EnterDeveloper notes that a developer has logged in, who may, with the password
-- that the caller saw.
-- name: EnterDeveloper :one
UPDATE developers SET last_login_at = @at
WHERE id = @id AND password_hash = @password_hash AND NOT inactive AND verified_at IS NOT NULL
RETURNING *;

-- name: DeleteDeveloper :exec
DELETE FROM developers WHERE org_id = $1 AND id = $2;

-- LockRequestsOfDeveloper has who decides on a request of a developer come before or
-- after: a decision holds the request when it locks the developer.
-- name: LockRequestsOfDeveloper :many
SELECT id FROM key_requests WHERE org_id = @org_id AND developer_id = @developer_id ORDER BY id FOR UPDATE;

-- name: DeleteRequestsOfDeveloper :exec
DELETE FROM key_requests WHERE developer_id = $1;

-- name: CountDevelopers :one
SELECT count(*) FROM developers
WHERE org_id = @org_id AND lower(email) COLLATE "C" >= lower(@first::text) AND lower(email) COLLATE "C" < lower(@last::text)
    AND (sqlc.narg('inactive')::boolean IS NULL OR inactive = sqlc.narg('inactive'));

-- name: DevelopersByEmail :many
SELECT * FROM developers
WHERE org_id = @org_id AND lower(email) COLLATE "C" >= lower(@first::text) AND lower(email) COLLATE "C" < lower(@last::text)
    AND (sqlc.narg('inactive')::boolean IS NULL OR inactive = sqlc.narg('inactive'))
ORDER BY lower(email) COLLATE "C"
LIMIT @max OFFSET @skip;

-- name: DevelopersByEmailDown :many
SELECT * FROM developers
WHERE org_id = @org_id AND lower(email) COLLATE "C" >= lower(@first::text) AND lower(email) COLLATE "C" < lower(@last::text)
    AND (sqlc.narg('inactive')::boolean IS NULL OR inactive = sqlc.narg('inactive'))
ORDER BY lower(email) COLLATE "C" DESC
LIMIT @max OFFSET @skip;

-- name: DevelopersByCreation :many
SELECT * FROM developers
WHERE org_id = @org_id AND lower(email) COLLATE "C" >= lower(@first::text) AND lower(email) COLLATE "C" < lower(@last::text)
    AND (sqlc.narg('inactive')::boolean IS NULL OR inactive = sqlc.narg('inactive'))
ORDER BY created_at, id
LIMIT @max OFFSET @skip;

-- name: DevelopersByCreationDown :many
SELECT * FROM developers
WHERE org_id = @org_id AND lower(email) COLLATE "C" >= lower(@first::text) AND lower(email) COLLATE "C" < lower(@last::text)
    AND (sqlc.narg('inactive')::boolean IS NULL OR inactive = sqlc.narg('inactive'))
ORDER BY created_at DESC, id DESC
LIMIT @max OFFSET @skip;

-- name: KeysOfDevelopers :many
SELECT developer_id, key_hash, policies FROM developer_keys
WHERE developer_id = ANY(@ids::text[])
ORDER BY developer_id, created_at, key_hash;

-- name: SubscriptionsOfDevelopers :many
SELECT developer_id, policy_id, key_hash FROM developer_subscriptions WHERE developer_id = ANY(@ids::text[]);

-- name: ClientsOfDevelopers :many
SELECT developer_id, policy_id, client_id, redirect_uri, app_description, use_case, created_at FROM oauth_clients
WHERE developer_id = ANY(@ids::text[])
ORDER BY developer_id, created_at, client_id;

-- name: InsertDeveloperToken :exec
INSERT INTO developer_tokens (token_hash, developer_id, purpose, ip, user_agent, used_at, expires_at, created_at)
VALUES (@token_hash, @developer_id, @purpose, @ip, @user_agent, @at, @expires_at, @at);

-- TrimDeveloperTokens deletes all tokens of a purpose but the newest.
-- name: TrimDeveloperTokens :exec
DELETE FROM developer_tokens WHERE token_hash IN (
    SELECT t.token_hash FROM developer_tokens t WHERE t.developer_id = @developer_id AND t.purpose = @purpose
    ORDER BY t.created_at DESC, t.token_hash OFFSET @keep::integer);

-- DeveloperByToken returns whose a token is that can still be used.
-- name: DeveloperByToken :one
SELECT sqlc.embed(d) FROM developer_tokens t JOIN developers d ON d.id = t.developer_id
WHERE t.token_hash = @token_hash AND t.purpose = @purpose AND t.expires_at > @at;

-- UseDeveloperToken deletes a token that can still be used, and returns whose it
-- was. Of two who use one at once, the second gets nothing.
-- name: UseDeveloperToken :one
DELETE FROM developer_tokens WHERE token_hash = @token_hash AND purpose = @purpose AND expires_at > @at
RETURNING developer_id;

-- DeveloperBySession returns who has a session that has neither ended nor been
-- idle since a time.
-- name: DeveloperBySession :one
SELECT d.id, d.org_id, d.email, t.used_at FROM developer_tokens t JOIN developers d ON d.id = t.developer_id
WHERE t.token_hash = @token_hash AND t.purpose = 'session' AND t.expires_at > @at AND t.used_at > @idle AND NOT d.inactive;

-- name: TouchSession :exec
UPDATE developer_tokens SET used_at = @at WHERE token_hash = @token_hash AND used_at < @at;

-- name: SessionsOfDeveloper :many
SELECT * FROM developer_tokens
WHERE developer_id = @developer_id AND purpose = 'session' AND expires_at > @at AND used_at > @idle
ORDER BY created_at DESC, token_hash;

-- DeleteSessions ends the sessions of a developer but one.
-- name: DeleteSessions :execrows
DELETE FROM developer_tokens WHERE developer_id = @developer_id AND purpose = 'session' AND token_hash <> @spared;

-- DeleteSession ends the session whose token's hash begins with these bytes.
-- name: DeleteSession :execrows
DELETE FROM developer_tokens
WHERE developer_id = @developer_id AND purpose = 'session' AND substring(token_hash FROM 1 FOR length(@beginning::bytea)) = @beginning;

-- name: DeleteTokensOfPurpose :exec
DELETE FROM developer_tokens WHERE developer_id = @developer_id AND purpose = @purpose;

-- name: DeleteTokensOfDeveloper :exec
DELETE FROM developer_tokens WHERE developer_id = $1;

-- SweepDeveloperTokens deletes some tokens that ended before a time.
-- name: SweepDeveloperTokens :execrows
DELETE FROM developer_tokens WHERE token_hash = ANY(ARRAY(
    SELECT t.token_hash FROM developer_tokens t WHERE t.expires_at <= @before ORDER BY t.expires_at LIMIT @max
    FOR UPDATE SKIP LOCKED));

-- SweepPendingDevelopers deletes some who signed up before a time and never showed
-- that the address is theirs. Whom an operator gave something is left. OFFSET keeps
-- the looks apart, each by its index, where a join would read a table whole.
-- name: SweepPendingDevelopers :many
DELETE FROM developers WHERE id = ANY(ARRAY(
    SELECT d.id FROM developers d
    WHERE d.verified_at IS NULL AND d.updated_at < @before
        AND NOT EXISTS (SELECT 1 FROM developer_keys k WHERE k.developer_id = d.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM oauth_clients c WHERE c.developer_id = d.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM key_requests r WHERE r.developer_id = d.id OFFSET 0)
    ORDER BY d.updated_at LIMIT @max FOR UPDATE SKIP LOCKED))
RETURNING id, org_id, email;
