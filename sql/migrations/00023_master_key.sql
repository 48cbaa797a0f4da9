-- +goose Up
-- A text sealed with the master key, so that an admin with another key is refused when it
-- starts, and not when it first opens a secret.
CREATE TABLE master_key_check (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    sealed   bytea   NOT NULL
);

-- +goose Down
DROP TABLE master_key_check;
