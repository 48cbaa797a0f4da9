-- +goose Up

-- Secrets that definitions refer to by name. Gateways get those that their APIs refer to.
CREATE TABLE secrets (
    org_id       text        NOT NULL REFERENCES orgs (id),
    name         text        NOT NULL,
    sealed_value bytea       NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    updated_by   text        NOT NULL,
    PRIMARY KEY (org_id, name)
);

-- How many times a secret was set or deleted.
ALTER TABLE config_state ADD COLUMN secrets bigint NOT NULL DEFAULT 0;

-- The names of the secrets that a definition refers to. It has none before this release.
ALTER TABLE apis ADD COLUMN secrets text[] NOT NULL DEFAULT '{}';
CREATE INDEX apis_with_secrets ON apis (org_id) WHERE secrets <> '{}';

-- +goose Down
DROP INDEX apis_with_secrets;
ALTER TABLE apis DROP COLUMN secrets;
ALTER TABLE config_state DROP COLUMN secrets;
DROP TABLE secrets;
