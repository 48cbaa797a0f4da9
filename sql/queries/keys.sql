-- name: KeyByHash :one
SELECT * FROM keys WHERE org_id = $1 AND key_hash = $2;

-- KeyAnywhere finds a key in any organisation: for gateways and their store.
-- name: KeyAnywhere :one
SELECT body FROM keys WHERE key_hash = $1;

-- name: LockKey :one
SELECT * FROM keys WHERE org_id = $1 AND key_hash = $2 FOR UPDATE;

-- name: InsertKey :exec
INSERT INTO keys (key_hash, org_id, alias, active, expires_at, apis, policies, body, successor_of)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: UpdateKey :one
UPDATE keys SET alias = $3, active = $4, expires_at = $5, apis = $6, policies = $7, body = $8,
    version = version + 1, updated_at = now()
WHERE org_id = $1 AND key_hash = $2
RETURNING version;

-- name: DeleteKey :exec
DELETE FROM keys WHERE org_id = $1 AND key_hash = $2;

-- KeyHashes walks all hashes of an organisation in order, but for those of keys
-- that followed another.
-- name: KeyHashes :many
SELECT key_hash FROM keys WHERE org_id = @org_id AND key_hash > @after AND successor_of = '' ORDER BY key_hash LIMIT @max;

-- LegacyHashes returns the hashes of an organisation's keys that are shorter than SHA-256.
-- name: LegacyHashes :many
SELECT key_hash FROM keys WHERE org_id = @org_id AND length(key_hash) IN (8, 16, 32) AND NOT starts_with(key_hash, 'org:')
ORDER BY key_hash;

-- CountLegacyKeys counts an organisation's keys that are still valid under a legacy hash,
-- by the length of the hash.
-- name: CountLegacyKeys :many
SELECT length(key_hash)::int AS digits, count(*) AS keys FROM keys
WHERE org_id = @org_id AND length(key_hash) IN (8, 16, 32) AND NOT starts_with(key_hash, 'org:') AND successor_of = ''
    AND coalesce((body #>> '{rotated_keys,0,retires}')::bigint, 9223372036854775807) > extract(epoch FROM now())
GROUP BY 1 ORDER BY 1;

-- CountKeys counts an organisation's keys; keys of organisations, and those that
-- followed another, are none.
-- name: CountKeys :one
SELECT count(*) FROM keys WHERE org_id = @org_id AND successor_of = '' AND NOT starts_with(key_hash, 'org:');

-- ListKeys finds the page in the index alone, so that late pages read no more rows
-- than early ones.
-- name: ListKeys :many
SELECT k.* FROM keys k WHERE k.key_hash IN (
    SELECT p.key_hash FROM keys p
    WHERE p.org_id = @org_id AND p.successor_of = '' AND NOT starts_with(p.key_hash, 'org:')
    ORDER BY p.key_hash LIMIT @max OFFSET @skip
) ORDER BY k.key_hash;

-- FindKeys returns one page of the keys that fit, and how many do.
-- name: FindKeys :many
WITH found AS MATERIALIZED (
    SELECT p.key_hash FROM keys p
    WHERE p.org_id = @org_id
        AND p.successor_of = ''
        AND (@prefix::text = '' OR lower(p.alias) LIKE @prefix OR p.key_hash LIKE @prefix)
        AND starts_with(p.key_hash, 'org:') = starts_with(@prefix, 'org:')
        AND (@api::text = '' OR p.apis @> ARRAY[@api] OR p.policies && @policies::text[])
)
SELECT sqlc.embed(k), (SELECT count(*) FROM found) AS total FROM keys k WHERE k.key_hash IN (
    SELECT f.key_hash FROM found f ORDER BY f.key_hash LIMIT @max OFFSET @skip
) ORDER BY k.key_hash;

-- WalkKeys walks the keys of all organisations in order.
-- name: WalkKeys :many
SELECT key_hash, body FROM keys WHERE key_hash > @after ORDER BY key_hash LIMIT @max;

-- TryFillLock takes the right to fill the key store until the transaction ends,
-- unless somebody fills it or delivers to it.
-- name: TryFillLock :one
SELECT pg_try_advisory_xact_lock(7209772);

-- TryDeliverLock takes the right to deliver to the key store until the
-- transaction ends, together with others, unless somebody fills it.
-- name: TryDeliverLock :one
SELECT pg_try_advisory_xact_lock_shared(7209772);

-- AllowIdleTransaction lets this transaction take its time between statements.
-- name: AllowIdleTransaction :exec
SELECT set_config('idle_in_transaction_session_timeout', '0', true);

-- PutOutbox notes that the store copy of a key is behind, with the counters to
-- forget. What an earlier row for the key still had to do is kept.
-- name: PutOutbox :exec
INSERT INTO outbox (topic, id, payload) VALUES ('key', @id, jsonb_build_object('reset', @reset::text[]))
ON CONFLICT (topic, id) DO UPDATE SET attempts = 0, next_at = now(),
    payload = jsonb_build_object('reset', (outbox.payload -> 'reset') || (excluded.payload -> 'reset'));

-- TakeOutbox locks rows that are due and that nobody else holds, but for those that
-- another key is to follow: see TakeOutboxFollowed.
-- name: TakeOutbox :many
SELECT id, payload, attempts FROM outbox WHERE topic = 'key' AND next_at <= now() AND NOT payload ? 'then'
ORDER BY next_at LIMIT @max FOR UPDATE SKIP LOCKED;

-- TakeOutboxFollowed is TakeOutbox for one row that another key is to follow. Once
-- that one is delivered, the row of the other is waited for: its holder must not
-- wait in turn for a row that is locked beside this one.
-- name: TakeOutboxFollowed :many
SELECT id, payload, attempts FROM outbox WHERE topic = 'key' AND next_at <= now() AND payload ? 'then'
ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- TakeOutboxOf locks the row of one key, waiting until its holder is done.
-- name: TakeOutboxOf :many
SELECT id, payload, attempts FROM outbox WHERE topic = 'key' AND id = @id FOR UPDATE;

-- name: DeleteOutbox :exec
DELETE FROM outbox WHERE topic = 'key' AND id = ANY(@ids::text[]);

-- DelayOutbox puts off what could not be done: twice as long each time, up to a
-- minute.
-- name: DelayOutbox :exec
UPDATE outbox SET attempts = attempts + 1,
    next_at = now() + least(interval '1 minute', interval '100 milliseconds' * power(2, least(attempts, 12)))
WHERE topic = 'key' AND id = ANY(@ids::text[]);

-- OutboxBacklog returns how many keys wait and for how many seconds the longest has.
-- name: OutboxBacklog :one
SELECT count(*) AS waiting, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS seconds FROM outbox;

-- LockOwner returns the developer whose key it is, and has changes of all keys of
-- that developer come one after the other.
-- name: LockOwner :one
SELECT d.id FROM developers d JOIN developer_keys k ON k.developer_id = d.id WHERE k.key_hash = $1 FOR NO KEY UPDATE OF d;

-- DropSuccessors deletes the further keys of a session that is gone, and has the
-- key store forget them.
-- name: DropSuccessors :exec
WITH gone AS (
    DELETE FROM keys WHERE org_id = @org_id AND successor_of = @identity::text AND successor_of <> '' RETURNING key_hash
)
INSERT INTO outbox (topic, id, payload) SELECT 'key', key_hash, '{"reset": []}' FROM gone ORDER BY key_hash
ON CONFLICT (topic, id) DO UPDATE SET attempts = 0, next_at = now();

-- LastKeyChange returns the newest change of any key.
-- name: LastKeyChange :one
SELECT seq, nonce FROM key_changes WHERE seq > 0 ORDER BY seq DESC LIMIT 1;

-- KeyChangesFrom returns the changes from a number on, that one included.
-- name: KeyChangesFrom :many
SELECT seq, nonce, key_hash FROM key_changes WHERE seq >= @seq ORDER BY seq LIMIT @max;

-- DropKeyChanges forgets changes of more than a day ago, but for the last one.
-- name: DropKeyChanges :exec
DELETE FROM key_changes WHERE changed_at < now() - interval '1 day' AND seq < (SELECT max(c.seq) FROM key_changes c);

-- ExistingKeys returns those of the hashes that name a key of any organisation.
-- name: ExistingKeys :many
SELECT key_hash FROM keys WHERE key_hash = ANY(@hashes::text[]);

-- HastenOutbox makes everything due that was put off.
-- name: HastenOutbox :exec
UPDATE outbox SET next_at = now() WHERE topic = 'key' AND next_at > now();

-- KeysBeginning returns up to two keys of an organisation whose hash begins like this.
-- name: KeysBeginning :many
SELECT key_hash FROM keys WHERE org_id = @org_id AND key_hash LIKE @prefix::text ORDER BY key_hash LIMIT 2;
