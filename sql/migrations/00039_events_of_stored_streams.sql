-- +goose Up

-- The events of APIs that were stored before the column events was there, as saving an API
-- again would set them.
UPDATE apis SET events = found.types FROM (
    SELECT a.id, array_agg(DISTINCT t.type COLLATE "C" ORDER BY t.type COLLATE "C") AS types
    FROM apis a, jsonb_path_query((legible(a.definition) #> '{x-svc-streaming,streams}')::jsonb, '$.**.portal_webhook.event_type') AS event,
        LATERAL (SELECT event #>> '{}' AS type) t
    WHERE a.events = '{}' AND t.type ~ '^[a-z0-9]+([._-][a-z0-9]+)*$' AND length(t.type) <= 128
    GROUP BY a.id
) found WHERE apis.id = found.id;

-- +goose Down
SELECT 1;
