-- +goose Up
-- How many times the answers of an API that gateways keep were to be forgotten.
ALTER TABLE config_state ADD COLUMN clears bigint NOT NULL DEFAULT 0;

CREATE TABLE cache_clears (
    api_id text   PRIMARY KEY REFERENCES apis (id) ON DELETE CASCADE,
    clear  bigint NOT NULL -- which of all these times was the last one for the API
);

-- +goose StatementBegin
CREATE FUNCTION bump_clears() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE bumped bigint;
DECLARE current_revision bigint;
BEGIN
    UPDATE config_state SET clears = clears + 1, updated_at = now()
        RETURNING clears, revision INTO bumped, current_revision;
    PERFORM pg_notify('sluice_config', current_revision::text);
    RETURN bumped;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION bump_clears();
DROP TABLE cache_clears;
ALTER TABLE config_state DROP COLUMN clears;
