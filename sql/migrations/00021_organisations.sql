-- +goose Up

-- An organisation that has ended keeps its row: the history and the audit log name
-- it, and its id is never given to another.
ALTER TABLE orgs
    ADD COLUMN version  bigint NOT NULL DEFAULT 1,
    ADD COLUMN ended_at timestamptz;
CREATE INDEX orgs_by_creation ON orgs (created_at, id) WHERE ended_at IS NULL;

-- +goose Down
DROP INDEX orgs_by_creation;
ALTER TABLE orgs DROP COLUMN version, DROP COLUMN ended_at;
