-- +goose Up
-- A text sealed with the master key, so that an admin with another key is refused when it
-- starts, and not when it first opens a secret.
CREATE TABLE master_key_check (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    sealed   bytea   NOT NULL
);

-- The gateways that have an access key of their own, among all users.
CREATE INDEX users_gateways ON users (id) WHERE role = 'gateway' AND active;

-- +goose Down
DROP INDEX users_gateways;
DROP TABLE master_key_check;
