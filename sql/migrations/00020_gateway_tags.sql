-- +goose Up
-- The tags of a gateway, escaped and separated by commas, as it sends them.
ALTER TABLE gateways ADD COLUMN tags text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE gateways DROP COLUMN tags;
