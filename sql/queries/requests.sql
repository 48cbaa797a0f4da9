-- name: KeyRequestByID :one
SELECT * FROM key_requests WHERE org_id = $1 AND id = $2;

-- LockKeyRequest keeps others from deciding on a request at the same moment.
-- name: LockKeyRequest :one
SELECT * FROM key_requests WHERE org_id = $1 AND id = $2 FOR UPDATE;

-- name: InsertKeyRequest :one
INSERT INTO key_requests (id, org_id, state, developer_id, plan, policies, key_hash, auth_type, sealed_secret, body)
VALUES ($1, $2, 'pending', $3, $4, $5, $6, $7, $8, $9)
RETURNING *;

-- UpdateKeyRequest replaces what a request asks for.
-- name: UpdateKeyRequest :one
UPDATE key_requests SET developer_id = $3, plan = $4, policies = $5, key_hash = $6, auth_type = $7, sealed_secret = $8, body = $9,
    version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2
RETURNING *;

-- DecideKeyRequest ends a request. Its secret has been used, or is of no use.
-- name: DecideKeyRequest :one
UPDATE key_requests SET state = $3, reason = $4, decided_by = $5, key_hash = $6, decided_at = now(), sealed_secret = '',
    version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2
RETURNING *;

-- name: DeleteKeyRequest :exec
DELETE FROM key_requests WHERE org_id = $1 AND id = $2;

-- Lists have a statement for each index, so that no plan, however general,
-- looks through requests that are not wanted.

-- name: CountKeyRequests :one
SELECT count(*) FROM key_requests WHERE org_id = @org_id;

-- ListKeyRequests finds the page in the index alone, so that late pages read no more
-- rows than early ones; so do the other long lists.
-- name: ListKeyRequests :many
SELECT r.* FROM key_requests r WHERE r.id IN (
    SELECT p.id FROM key_requests p WHERE p.org_id = @org_id ORDER BY p.created_at DESC, p.id LIMIT @max OFFSET @skip
) ORDER BY r.created_at DESC, r.id;

-- name: CountKeyRequestsByState :one
SELECT count(*) FROM key_requests WHERE org_id = @org_id AND state = @state;

-- name: ListKeyRequestsByState :many
SELECT r.* FROM key_requests r WHERE r.id IN (
    SELECT p.id FROM key_requests p WHERE p.org_id = @org_id AND p.state = @state ORDER BY p.created_at DESC, p.id LIMIT @max OFFSET @skip
) ORDER BY r.created_at DESC, r.id;

-- ListUnapprovedKeyRequests merges the two states along their index.
-- name: ListUnapprovedKeyRequests :many
SELECT r.* FROM (
    SELECT * FROM key_requests p WHERE p.org_id = @org_id AND p.state = 'pending'
    UNION ALL
    SELECT * FROM key_requests n WHERE n.org_id = @org_id AND n.state = 'rejected'
) r
ORDER BY r.created_at DESC, r.id LIMIT @max OFFSET @skip;

-- name: CountUnapprovedKeyRequests :one
SELECT count(*) FROM key_requests WHERE org_id = @org_id AND state IN ('pending', 'rejected');

-- name: CountKeyRequestsByPlan :one
SELECT count(*) FROM key_requests
WHERE org_id = @org_id AND plan = @plan AND (@state::text = '' OR state = @state OR @state = 'unapproved' AND state <> 'approved');

-- name: ListKeyRequestsByPlan :many
SELECT * FROM key_requests
WHERE org_id = @org_id AND plan = @plan AND (@state::text = '' OR state = @state OR @state = 'unapproved' AND state <> 'approved')
ORDER BY created_at DESC, id LIMIT @max OFFSET @skip;

-- name: CountKeyRequestsByDeveloper :one
SELECT count(*) FROM key_requests
WHERE org_id = @org_id AND developer_id = @developer_id
    AND (@state::text = '' OR state = @state OR @state = 'unapproved' AND state <> 'approved') AND (@plan::text = '' OR plan = @plan);

-- name: ListKeyRequestsByDeveloper :many
SELECT * FROM key_requests
WHERE org_id = @org_id AND developer_id = @developer_id
    AND (@state::text = '' OR state = @state OR @state = 'unapproved' AND state <> 'approved') AND (@plan::text = '' OR plan = @plan)
ORDER BY created_at DESC, id LIMIT @max OFFSET @skip;

-- name: CountKeyRequestsByEmail :one
SELECT count(*) FROM key_requests r
WHERE r.org_id = @org_id
    AND r.developer_id IN (SELECT d.id FROM developers d WHERE d.org_id = @org_id AND lower(d.email) LIKE @prefix)
    AND (@state::text = '' OR r.state = @state OR @state = 'unapproved' AND r.state <> 'approved') AND (@plan::text = '' OR r.plan = @plan);

-- name: ListKeyRequestsByEmail :many
SELECT r.* FROM key_requests r
WHERE r.org_id = @org_id
    AND r.developer_id IN (SELECT d.id FROM developers d WHERE d.org_id = @org_id AND lower(d.email) LIKE @prefix)
    AND (@state::text = '' OR r.state = @state OR @state = 'unapproved' AND r.state <> 'approved') AND (@plan::text = '' OR r.plan = @plan)
ORDER BY r.created_at DESC, r.id LIMIT @max OFFSET @skip;

-- Requesters returns those of an organisation's developers.
-- name: Requesters :many
SELECT id, email, inactive, fields, created_at FROM developers WHERE org_id = @org_id AND id = ANY(@ids::text[]);

-- HoldRequester returns a developer, who is not deleted until the transaction ends.
-- name: HoldRequester :one
SELECT id, email, inactive, fields, created_at FROM developers WHERE org_id = $1 AND id = $2 FOR KEY SHARE;

-- LockRequester has what one developer asks for come one after the other.
-- name: LockRequester :one
SELECT id, email, inactive, fields, created_at FROM developers WHERE org_id = $1 AND id = $2 FOR NO KEY UPDATE;

-- name: FindPolicies :many
SELECT id, name, state, body FROM policies WHERE org_id = @org_id AND id = ANY(@ids::text[]);

-- HoldPolicies returns policies that are not deleted until the transaction ends.
-- name: HoldPolicies :many
SELECT id, name, state, body FROM policies WHERE org_id = @org_id AND id = ANY(@ids::text[]) ORDER BY id FOR KEY SHARE;

-- name: InsertDeveloperKey :exec
INSERT INTO developer_keys (key_hash, org_id, developer_id, request_id, policies) VALUES ($1, $2, $3, $4, $5);

-- name: SetDeveloperKeyPolicies :exec
UPDATE developer_keys SET policies = $3 WHERE org_id = $1 AND key_hash = $2;

-- DeveloperKey returns whose a key is, and the key.
-- name: DeveloperKey :one
SELECT sqlc.embed(d), sqlc.embed(k) FROM developer_keys d JOIN keys k ON k.key_hash = d.key_hash
WHERE d.org_id = $1 AND d.developer_id = $2 AND d.key_hash = $3;

-- name: CountDeveloperKeys :one
SELECT count(*) FROM developer_keys WHERE developer_id = @developer_id AND org_id = @org_id;

-- name: ListDeveloperKeys :many
SELECT sqlc.embed(d), sqlc.embed(k) FROM developer_keys d JOIN keys k ON k.key_hash = d.key_hash
WHERE d.developer_id = @developer_id AND d.org_id = @org_id
ORDER BY d.created_at, d.key_hash LIMIT @max OFFSET @skip;

-- DeveloperKeyWith returns the newest key of a developer that has all of some
-- policies by now, from any source.
-- name: DeveloperKeyWith :one
SELECT d.key_hash FROM developer_keys d JOIN keys k ON k.key_hash = d.key_hash
WHERE d.developer_id = @developer_id AND d.org_id = @org_id AND k.policies @> @policies::text[]
ORDER BY d.created_at DESC, d.key_hash LIMIT 1;

-- PutSubscription notes the newest key that a developer has for a policy.
-- name: PutSubscription :exec
INSERT INTO developer_subscriptions (developer_id, policy_id, key_hash) VALUES ($1, $2, $3)
ON CONFLICT (developer_id, policy_id) DO UPDATE SET key_hash = excluded.key_hash;

-- DropSubscriptions forgets a key for all policies but some.
-- name: DropSubscriptions :exec
DELETE FROM developer_subscriptions WHERE key_hash = @key_hash AND policy_id <> ALL(@policies::text[]);

-- RestoreSubscriptions has an earlier key of a developer take the place of one
-- that is gone.
-- name: RestoreSubscriptions :exec
INSERT INTO developer_subscriptions (developer_id, policy_id, key_hash)
SELECT DISTINCT ON (p.policy) d.developer_id, p.policy, d.key_hash
FROM developer_keys d, unnest(d.policies) AS p (policy)
WHERE d.developer_id = @developer_id
ORDER BY p.policy, d.created_at DESC, d.key_hash
ON CONFLICT (developer_id, policy_id) DO NOTHING;
