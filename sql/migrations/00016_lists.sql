-- +goose Up

-- What lists of keys hold.
CREATE INDEX keys_listed ON keys (org_id, key_hash) WHERE successor_of = '' AND NOT starts_with(key_hash, 'org:');

-- +goose Down
DROP INDEX keys_listed;
