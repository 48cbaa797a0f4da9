-- +goose Up
CREATE INDEX keys_listed ON keys (org_id, key_hash) WHERE successor_of = '';

-- +goose Down
DROP INDEX keys_listed;
