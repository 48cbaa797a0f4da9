-- Pulse returns what pages of the UI follow besides the configuration. Both counts stop
-- at 1,000.
-- name: Pulse :one
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM key_requests r WHERE r.org_id = @org_id AND r.state = 'pending' LIMIT 1000) pending)::bigint AS pending_requests,
    (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.org_id = @org_id AND d.state = 'failed' LIMIT 1000) failed)::bigint AS failed_deliveries,
    coalesce((SELECT u.seen_at FROM usage_senders u ORDER BY u.seen_at DESC LIMIT 1), 'epoch')::timestamptz AS usage_until;

-- Search finds objects by the beginning of a name, a whole id and, where there are few of
-- a kind, any part of the name; five of each kind.
-- name: Search :many
(SELECT 'api' AS kind, a.id, a.name, a.path AS detail FROM apis a
WHERE a.org_id = @org_id AND (position(@text::text IN lower(a.name)) > 0 OR position(@text IN lower(a.path)) > 0 OR a.id = @sent::text)
ORDER BY NOT starts_with(lower(a.name), @text), a.name, a.id LIMIT 5)
UNION ALL
(SELECT 'policy', p.id, p.name, p.state FROM policies p
WHERE p.org_id = @org_id AND (position(@text IN lower(p.name)) > 0 OR p.id = @sent)
ORDER BY NOT starts_with(lower(p.name), @text), p.name, p.id LIMIT 5)
UNION ALL
(SELECT 'key', k.key_hash, k.alias, CASE WHEN k.active THEN 'active' ELSE 'inactive' END FROM keys k
WHERE k.org_id = @org_id AND k.successor_of = '' AND NOT starts_with(k.key_hash, 'org:') AND (lower(k.alias) LIKE @prefix::text OR k.key_hash LIKE @prefix)
ORDER BY lower(k.alias) USING ~<~, k.key_hash LIMIT 5)
UNION ALL
(SELECT 'developer', d.id, d.email, CASE WHEN d.inactive THEN 'inactive' ELSE 'active' END FROM developers d
WHERE d.org_id = @org_id AND lower(d.email) COLLATE "C" LIKE @prefix
ORDER BY lower(d.email) COLLATE "C" LIMIT 5)
UNION ALL
(SELECT 'catalogue', e.id, e.name, CASE WHEN e.shown THEN 'shown' ELSE 'hidden' END FROM catalogue_entries e
WHERE e.org_id = @org_id AND lower(e.name) LIKE @prefix
ORDER BY lower(e.name) USING ~<~, e.id LIMIT 5)
UNION ALL
(SELECT 'document', o.id, o.name, o.kind FROM documents o
WHERE o.org_id = @org_id AND lower(o.name) LIKE @prefix
ORDER BY lower(o.name) USING ~<~, o.id LIMIT 5)
UNION ALL
(SELECT 'user', u.id, u.email, u.role FROM users u
WHERE @users::boolean AND u.org_id = @org_id AND position(@text IN lower(u.email)) > 0
ORDER BY u.email, u.id LIMIT 5);

-- EventHandlers returns the definitions of an organisation's APIs that name handlers of
-- events. It looks for the name in the text: operators of json fail for a whole
-- definition that holds U+0000 anywhere.
-- name: EventHandlers :many
SELECT a.id, a.name, a.definition FROM apis a
WHERE a.org_id = @org_id AND position('"event_handlers"' IN a.definition::text) > 0
ORDER BY a.name, a.id LIMIT 1000;
