-- +goose Up

-- The APIs that a supergraph is composed of, derived from the definition, so that saving
-- and deleting an API reads no other definition.
ALTER TABLE apis ADD COLUMN subgraphs text[] NOT NULL DEFAULT '{}';
CREATE INDEX apis_with_subgraphs ON apis (org_id, name, id) WHERE subgraphs <> '{}';

-- +goose Down
DROP INDEX apis_with_subgraphs;
ALTER TABLE apis DROP COLUMN subgraphs;
