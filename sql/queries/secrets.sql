-- ListSecrets returns an organisation's secrets by name, without their values.
-- name: ListSecrets :many
SELECT name, created_at, updated_at, updated_by FROM secrets WHERE org_id = $1 ORDER BY name COLLATE "C";

-- SecretUses returns the APIs of an organisation that refer to secrets.
-- name: SecretUses :many
SELECT id, name, secrets FROM apis WHERE org_id = $1 AND secrets <> '{}' ORDER BY id COLLATE "C";

-- name: SealedSecret :one
SELECT sealed_value FROM secrets WHERE org_id = $1 AND name = $2;

-- AllSecrets are those of every organisation.
-- name: AllSecrets :many
SELECT org_id, name, sealed_value FROM secrets;

-- name: CountSecrets :one
SELECT count(*) FROM secrets WHERE org_id = $1;

-- PutSecret stores a secret, and returns whether it is a new one.
-- name: PutSecret :one
INSERT INTO secrets (org_id, name, sealed_value, updated_by) VALUES ($1, $2, $3, $4)
ON CONFLICT (org_id, name) DO UPDATE SET sealed_value = excluded.sealed_value, updated_by = excluded.updated_by, updated_at = now()
RETURNING (xmax = 0)::boolean AS created;

-- name: DeleteSecret :execrows
DELETE FROM secrets WHERE org_id = $1 AND name = $2;

-- name: BumpSecrets :exec
UPDATE config_state SET secrets = secrets + 1;

-- APIsWithSecret returns the APIs of an organisation that refer to a secret.
-- name: APIsWithSecret :many
SELECT id FROM apis WHERE org_id = @org_id AND secrets <> '{}' AND secrets @> ARRAY[@secret::text] ORDER BY id COLLATE "C";

-- KnownSecrets returns which of some secrets the organisation has.
-- name: KnownSecrets :many
SELECT name FROM secrets WHERE org_id = @org_id AND name = ANY(@names::text[]);
