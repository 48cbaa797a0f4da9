-- name: InsertClient :exec
INSERT INTO oauth_clients (client_id, org_id, developer_id, policy_id, key_hash, secret_hash, redirect_uri, app_description, use_case)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- ClientAnywhere finds a client in any organisation: for who shows its secret.
-- name: ClientAnywhere :one
SELECT * FROM oauth_clients WHERE client_id = $1;

-- HoldClient is ClientAnywhere, and keeps the client from being deleted until the
-- transaction ends.
-- name: HoldClient :one
SELECT * FROM oauth_clients WHERE client_id = $1 FOR SHARE;

-- name: LockClient :one
SELECT * FROM oauth_clients WHERE org_id = @org_id AND developer_id = @developer_id AND client_id = @client_id FOR UPDATE;

-- CountClients counts a developer's clients, those of one policy or all.
-- name: CountClients :one
SELECT count(*) FROM oauth_clients
WHERE developer_id = @developer_id AND org_id = @org_id AND (@policy::text = '' OR policy_id = @policy);

-- name: ListClients :many
SELECT * FROM oauth_clients WHERE developer_id = @developer_id AND org_id = @org_id
ORDER BY created_at, client_id LIMIT @max OFFSET @skip;

-- name: SetClientSecret :exec
UPDATE oauth_clients SET secret_hash = @secret_hash WHERE client_id = @client_id;

-- CountTokens returns how many tokens of a client are in force, or the bound when
-- there are as many.
-- name: CountTokens :one
SELECT count(*) FROM (
    SELECT FROM keys WHERE successor_of = @identity::text AND successor_of <> '' AND expires_at > now() LIMIT sqlc.arg(bound)::integer
) AS live;

-- TokenOf returns whether a token is one of a client's.
-- name: TokenOf :one
SELECT EXISTS (SELECT FROM keys WHERE key_hash = @key_hash AND successor_of = @identity::text AND successor_of <> '');

-- ForgetTokens deletes tokens that ended long ago, and has the key store forget
-- them.
-- name: ForgetTokens :execrows
WITH gone AS (
    DELETE FROM keys WHERE key_hash IN (
        SELECT k.key_hash FROM keys k
        WHERE k.active AND k.expires_at IS NOT NULL AND k.expires_at < now() - interval '1 hour' AND k.successor_of <> ''
        ORDER BY k.expires_at LIMIT @max FOR UPDATE SKIP LOCKED
    ) RETURNING key_hash
)
INSERT INTO outbox (topic, id, payload) SELECT 'key', key_hash, '{"reset": []}' FROM gone ORDER BY key_hash
ON CONFLICT (topic, id) DO UPDATE SET attempts = 0, next_at = now(); -- who delivers it just now may have read it before

-- PutOutboxAfter has another key be delivered once one that waits for it is.
-- name: PutOutboxAfter :exec
UPDATE outbox SET payload = payload || jsonb_build_object('then', @following::text) WHERE topic = 'key' AND id = @id;
