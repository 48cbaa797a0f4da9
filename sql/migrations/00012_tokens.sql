-- +goose Up
CREATE INDEX keys_by_identity ON keys (successor_of, expires_at) WHERE successor_of <> '';

-- +goose Down
DROP INDEX keys_by_identity;
