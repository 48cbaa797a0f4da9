-- EventSource returns whose an API is, what tells one edition of its definition and of its
-- rights from another, and whether every developer may call it: it is keyless, and offered.
-- name: EventSource :one
SELECT a.org_id, a.version, a.created_at, a.updated_at, s.revision, s.secrets,
    ('keyless' = ANY(a.auth) AND EXISTS (
        SELECT FROM catalogue_entries e WHERE e.org_id = a.org_id AND e.api_id = a.id AND e.shown
    ))::boolean AS open
FROM apis a, config_state s WHERE a.id = @id;

-- EventListeners returns the webhooks of developers that subscribe to an event, with the
-- keys that may give their developers access to the API.
-- name: EventListeners :many
SELECT w.id, w.developer_id::text AS developer_id, k.key_hash, k.version, k.updated_at
FROM webhooks w
JOIN (
    SELECT d.developer_id, d.key_hash FROM developer_keys d
    UNION ALL
    SELECT c.developer_id, c.key_hash FROM oauth_clients c
) own ON own.developer_id = w.developer_id
JOIN keys k ON k.key_hash = own.key_hash
WHERE w.org_id = @org_id AND w.developer_id IS NOT NULL AND w.disabled_at IS NULL AND w.events @> ARRAY[@event::text]
    AND k.org_id = @org_id AND (k.expires_at IS NULL OR k.expires_at > now())
    AND (k.apis @> ARRAY[@api::text] OR k.policies && @policies::text[]);

-- OpenEventListeners is EventListeners for an API that every developer may call.
-- name: OpenEventListeners :many
SELECT w.id, w.developer_id::text AS developer_id FROM webhooks w
WHERE w.org_id = @org_id AND w.developer_id IS NOT NULL AND w.disabled_at IS NULL AND w.events @> ARRAY[@event::text];

-- DeveloperKeyHashes returns the keys of a developer that have not ended, those of OAuth
-- clients included.
-- name: DeveloperKeyHashes :many
SELECT k.key_hash FROM keys k
WHERE k.org_id = @org_id AND (k.expires_at IS NULL OR k.expires_at > now()) AND k.key_hash IN (
    SELECT d.key_hash FROM developer_keys d WHERE d.developer_id = @developer_id
    UNION ALL
    SELECT c.key_hash FROM oauth_clients c WHERE c.developer_id = @developer_id
)
ORDER BY k.key_hash LIMIT @max;

-- name: KeysByHash :many
SELECT * FROM keys WHERE org_id = @org_id AND key_hash = ANY(@hashes::text[]);

-- EventAPIs returns the APIs of an organisation whose streams send events to webhooks of
-- developers, whether developers see them in the catalogue, and whether they are keyless.
-- name: EventAPIs :many
SELECT a.id, a.name, a.events, ('keyless' = ANY(a.auth))::boolean AS keyless, EXISTS (
    SELECT FROM catalogue_entries e WHERE e.org_id = a.org_id AND e.api_id = a.id AND e.shown
        AND (e.policy_id = '' OR e.policy_id IN (SELECT p.id FROM policies p WHERE p.org_id = a.org_id AND p.state = 'active'))
) AS offered
FROM apis a WHERE a.org_id = @org_id AND a.events <> '{}' ORDER BY a.name, a.id LIMIT @max;

-- PutEventDeliveries queues an event for webhooks, each at the same place of every list, and
-- ordered by id. It returns those for which there was no room: as many messages, or as many
-- bytes of them, wait for these as may. An event whose id is known is not queued again.
-- name: PutEventDeliveries :one
WITH wanted AS (
    SELECT unnest(@ids::text[]) AS id, unnest(@targets::text[]) AS target, unnest(@developers::text[]) AS developer_id
), known AS (
    SELECT w.id FROM wanted w JOIN deliveries d ON d.id = w.id
), room AS (
    SELECT w.id, w.target, w.developer_id FROM wanted w
    CROSS JOIN LATERAL (
        SELECT count(*) AS messages, coalesce(sum(waiting.size), 0) AS bytes FROM (
            SELECT octet_length(d.payload) AS size FROM deliveries d
            WHERE d.kind = 'webhook' AND d.target = w.target AND d.org_id = @org_id AND d.state = 'pending' LIMIT sqlc.arg(bound)::integer
        ) waiting
    ) now
    WHERE w.id NOT IN (SELECT k.id FROM known k) AND now.messages < sqlc.arg(bound)::integer AND now.bytes < sqlc.arg(bytes)::bigint
), stored AS (
    INSERT INTO deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state)
    SELECT r.id, @org_id, 'webhook', r.target, r.developer_id, @event, @payload, false, 'pending' FROM room r ORDER BY r.id
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
SELECT (SELECT count(*) FROM stored)::bigint AS queued, (SELECT count(*) FROM known)::bigint AS known, ARRAY(
    SELECT w.target FROM wanted w WHERE w.id NOT IN (SELECT k.id FROM known k) AND w.id NOT IN (SELECT r.id FROM room r)
)::text[] AS full_targets;

-- MissEvents counts events that were not queued for webhooks, and returns those whose owner
-- is to get a letter: once a day.
-- name: MissEvents :many
WITH held AS (
    SELECT w.id, coalesce(w.missed_letter_at < now() - interval '1 day', true) AS due FROM webhooks w
    WHERE w.org_id = @org_id AND w.id = ANY(@ids::text[]) ORDER BY w.id FOR NO KEY UPDATE
), counted AS (
    UPDATE webhooks SET missed = missed + 1, missed_at = now(),
        missed_letter_at = CASE WHEN held.due THEN now() ELSE missed_letter_at END
    FROM held WHERE webhooks.id = held.id
    RETURNING webhooks.id, held.due
)
SELECT c.id FROM counted c WHERE c.due ORDER BY c.id;
