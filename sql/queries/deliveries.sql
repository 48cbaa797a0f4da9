-- PutDelivery queues a message, unless as many of its organisation wait for its
-- target as may, and notifies every admin once it is committed. Organisations may have
-- a target in common: none fills up another's room.
-- name: PutDelivery :execrows
INSERT INTO deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state)
SELECT @id, @org_id, @kind, @target, @developer_id, @event, @payload, @sealed, 'pending'
WHERE (
    SELECT count(*) FROM (
        SELECT FROM deliveries d WHERE d.kind = @kind AND d.target = @target AND d.org_id = @org_id AND d.state = 'pending' LIMIT sqlc.arg(bound)::integer
    ) AS waiting
) < sqlc.arg(bound)::integer
RETURNING pg_notify('sluice_deliveries', '');

-- TakeDeliveries leases messages of one kind that are due, one for each target at
-- most. Rows that another holds just now are left to it.
-- name: TakeDeliveries :many
WITH oldest AS MATERIALIZED (
    SELECT d.id, d.target, d.next_at FROM deliveries d
    WHERE d.kind = @kind AND d.state = 'pending' AND d.next_at <= now() AND d.target <> ALL(@busy::text[])
    ORDER BY d.next_at LIMIT 500
), first_of_each AS (
    SELECT DISTINCT ON (o.target) o.id FROM oldest o ORDER BY o.target, o.next_at
), free AS (
    SELECT d.id FROM deliveries d
    WHERE d.id IN (SELECT f.id FROM first_of_each f) AND d.state = 'pending' AND d.next_at <= now()
    ORDER BY d.next_at LIMIT @max FOR UPDATE SKIP LOCKED
)
UPDATE deliveries SET attempts = deliveries.attempts + 1, attempted_at = now(),
    leased_until = now() + make_interval(secs => sqlc.arg(lease_seconds)::float8),
    next_at = now() + make_interval(secs => sqlc.arg(lease_seconds)::float8)
FROM free WHERE deliveries.id = free.id
RETURNING deliveries.*;

-- SettleDelivery notes what became of an attempt, if the lease is still the one
-- that it was made under.
-- name: SettleDelivery :execrows
UPDATE deliveries SET state = @state, status = @status, error = @error,
    leased_until = 'epoch', next_at = now() + make_interval(secs => sqlc.arg(again_seconds)::float8),
    finished_at = CASE WHEN @state = 'pending' THEN NULL ELSE now() END,
    payload = CASE WHEN sealed AND @state IN ('done', 'failed') THEN '' ELSE payload END,
    tries = CASE WHEN jsonb_array_length(tries) >= 20 THEN tries - 0 ELSE tries END || jsonb_build_array(jsonb_build_object(
        'at', attempted_at, 'status', @status::integer, 'error', @error::text, 'milliseconds', sqlc.arg(milliseconds)::bigint))
WHERE id = @id AND leased_until = @leased_until AND state = 'pending';

-- ReturnDelivery ends a lease under which no attempt came to an end.
-- name: ReturnDelivery :exec
UPDATE deliveries SET attempts = attempts - 1, leased_until = 'epoch',
    next_at = now() + make_interval(secs => sqlc.arg(again_seconds)::float8)
WHERE id = @id AND leased_until = @leased_until AND state = 'pending';

-- HoldDeliveries puts off what waits for a target that asked for time.
-- name: HoldDeliveries :exec
UPDATE deliveries SET next_at = greatest(next_at, now() + make_interval(secs => sqlc.arg(hold_seconds)::float8))
WHERE kind = @kind AND target = @target AND state = 'pending' AND leased_until <= now();

-- DropDeliveries gives up what waits for a target.
-- name: DropDeliveries :exec
UPDATE deliveries SET state = 'failed', error = @error, finished_at = now(),
    payload = CASE WHEN sealed THEN '' ELSE payload END
WHERE kind = @kind AND target = @target AND state = 'pending' AND leased_until <= now();

-- name: DeliveryByID :one
SELECT * FROM deliveries WHERE org_id = @org_id AND id = @id;

-- name: LockDelivery :one
SELECT * FROM deliveries WHERE org_id = @org_id AND id = @id FOR UPDATE;

-- ReplayDelivery puts a message back into the queue as if it were new.
-- name: ReplayDelivery :exec
UPDATE deliveries SET state = 'pending', attempts = 0, next_at = now(), leased_until = 'epoch', finished_at = NULL
WHERE id = @id;

-- AnnounceDeliveries has every admin look once this is committed.
-- name: AnnounceDeliveries :exec
SELECT pg_notify('sluice_deliveries', '');

-- name: CountDeliveries :one
SELECT count(*) FROM deliveries WHERE org_id = @org_id;

-- name: ListDeliveries :many
SELECT d.* FROM deliveries d WHERE d.id IN (
    SELECT p.id FROM deliveries p WHERE p.org_id = @org_id ORDER BY p.created_at DESC, p.id LIMIT @max OFFSET @skip
) ORDER BY d.created_at DESC, d.id;

-- name: CountDeliveriesInState :one
SELECT count(*) FROM deliveries WHERE org_id = @org_id AND state = @state;

-- name: ListDeliveriesInState :many
SELECT d.* FROM deliveries d WHERE d.id IN (
    SELECT p.id FROM deliveries p WHERE p.org_id = @org_id AND p.state = @state ORDER BY p.created_at DESC, p.id LIMIT @max OFFSET @skip
) ORDER BY d.created_at DESC, d.id;

-- name: CountDeliveriesTo :one
SELECT count(*) FROM deliveries
WHERE org_id = @org_id AND target = @target AND (@state::text = '' OR state = @state);

-- name: ListDeliveriesTo :many
SELECT * FROM deliveries
WHERE org_id = @org_id AND target = @target AND (@state::text = '' OR state = @state)
ORDER BY created_at DESC, id LIMIT @max OFFSET @skip;

-- name: CountDeliveriesFor :one
SELECT count(*) FROM deliveries
WHERE org_id = @org_id AND developer_id = @developer_id AND (@state::text = '' OR state = @state);

-- name: ListDeliveriesFor :many
SELECT * FROM deliveries
WHERE org_id = @org_id AND developer_id = @developer_id AND (@state::text = '' OR state = @state)
ORDER BY created_at DESC, id LIMIT @max OFFSET @skip;

-- SweepDeliveries forgets what was finished long ago.
-- name: SweepDeliveries :execrows
DELETE FROM deliveries WHERE id = ANY(ARRAY(
    SELECT d.id FROM deliveries d WHERE d.finished_at < now() - make_interval(secs => sqlc.arg(keep_seconds)::float8)
    ORDER BY d.finished_at LIMIT @max FOR UPDATE SKIP LOCKED
));

-- DeliveryBacklog returns, for each kind, how many messages wait, for how many
-- seconds the oldest has, and for how many the one has that should have gone first.
-- name: DeliveryBacklog :many
SELECT kind, count(*) AS waiting,
    extract(epoch FROM now() - min(created_at))::float8 AS oldest,
    greatest(extract(epoch FROM now() - min(next_at)), 0)::float8 AS late
FROM deliveries WHERE state = 'pending' GROUP BY kind;
