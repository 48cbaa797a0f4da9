-- name: CountOrgs :one
SELECT count(*) FROM orgs;

-- FirstOrg returns the oldest organisation: the one that gateways' own changes
-- belong to.
-- name: FirstOrg :one
SELECT id FROM orgs ORDER BY created_at, id LIMIT 1;

-- name: InsertOrg :exec
INSERT INTO orgs (id, name) VALUES ($1, $2);

-- LockBootstrap lets one process at a time look for the first organisation.
-- name: LockBootstrap :exec
SELECT pg_advisory_xact_lock(7209771);

-- name: InsertUser :one
INSERT INTO users (id, org_id, email, first_name, last_name, role, active, access_key_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING *;

-- name: UserByID :one
SELECT * FROM users WHERE org_id = $1 AND id = $2;

-- name: UserByKey :one
SELECT * FROM users WHERE access_key_hash = $1 AND active;

-- GatewayUsers are the gateways that have an access key of their own.
-- name: GatewayUsers :many
SELECT * FROM users WHERE role = 'gateway' AND active ORDER BY id;

-- LockUser returns a user and keeps others from changing it until the
-- transaction ends.
-- name: LockUser :one
SELECT * FROM users WHERE org_id = $1 AND id = $2 FOR UPDATE;

-- LockAdmins returns the active admins of an organisation, locked, so that two
-- requests cannot each remove the other of the last two.
-- name: LockAdmins :many
SELECT id FROM users WHERE org_id = $1 AND role = 'admin' AND active ORDER BY id FOR UPDATE;

-- name: UpdateUser :one
UPDATE users SET email = $3, first_name = $4, last_name = $5, role = $6, active = $7,
    version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2
RETURNING *;

-- name: UpdateUserKey :exec
UPDATE users SET access_key_hash = $3, version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2;

-- name: DeleteUser :exec
DELETE FROM users WHERE org_id = $1 AND id = $2;

-- name: CountUsers :one
SELECT count(*) FROM users
WHERE org_id = @org_id AND (@search::text = '' OR position(lower(@search) IN lower(email)) > 0);

-- name: ListUsers :many
SELECT * FROM users
WHERE org_id = @org_id AND (@search::text = '' OR position(lower(@search) IN lower(email)) > 0)
ORDER BY email, id
LIMIT sqlc.narg('max') OFFSET @skip;
