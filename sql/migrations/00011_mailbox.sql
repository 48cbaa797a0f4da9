-- +goose Up
CREATE INDEX deliveries_kept ON deliveries (org_id, created_at DESC, id) WHERE state = 'kept';

-- +goose Down
DROP INDEX deliveries_kept;
