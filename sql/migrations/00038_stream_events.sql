-- +goose Up

-- The types of events that an API's streams send to webhooks of developers.
ALTER TABLE apis ADD COLUMN events text[] NOT NULL DEFAULT '{}';
CREATE INDEX apis_with_events ON apis (org_id, name, id) WHERE events <> '{}';

CREATE INDEX webhooks_of_developers ON webhooks USING gin (events) WHERE developer_id IS NOT NULL AND disabled_at IS NULL;

-- Events of streams that were not queued for a webhook because too much waited for it.
ALTER TABLE webhooks
    ADD COLUMN missed bigint NOT NULL DEFAULT 0,
    ADD COLUMN missed_at timestamptz,        -- the last; null: none
    ADD COLUMN missed_letter_at timestamptz; -- when its owner last got a letter about it

-- +goose Down
ALTER TABLE webhooks DROP COLUMN missed_letter_at, DROP COLUMN missed_at, DROP COLUMN missed;
DROP INDEX webhooks_of_developers;
DROP INDEX apis_with_events;
ALTER TABLE apis DROP COLUMN events;
