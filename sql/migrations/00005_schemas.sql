-- +goose Up

-- How often the schema is to be fetched from the upstream again, 0 for never;
-- derived from the definition, so that finding what is due reads no documents.
ALTER TABLE apis ADD COLUMN sync_seconds integer NOT NULL DEFAULT 0;
CREATE INDEX apis_synced ON apis (id) WHERE sync_seconds > 0;

-- The newest schemas that each API had. No reference to apis: a rollback takes
-- APIs away and puts them back, and their schemas have to outlive that.
CREATE TABLE api_schemas (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id     text        NOT NULL,
    api_id     text        NOT NULL,
    hash       text        NOT NULL, -- SHA-256 of sdl, in hexadecimal digits
    source     text        NOT NULL, -- upload, introspection or rollback
    sdl        text        NOT NULL,
    author     text        NOT NULL,
    revision   bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX api_schemas_by_api ON api_schemas (org_id, api_id, id DESC);

-- What came of fetching a schema, by hand or on schedule. Whoever holds the lease
-- fetches; one that dies leaves it to run out.
CREATE TABLE api_schema_syncs (
    org_id        text        NOT NULL,
    api_id        text        NOT NULL,
    leased_until  timestamptz NOT NULL DEFAULT 'epoch',
    checked_at    timestamptz NOT NULL DEFAULT 'epoch', -- last try; epoch: none yet
    fetched_at    timestamptz NOT NULL DEFAULT 'epoch', -- last try that worked; epoch: none yet
    error         text        NOT NULL DEFAULT '',          -- why the last try did not work
    failing_since timestamptz NOT NULL DEFAULT 'epoch', -- meaningless without an error
    PRIMARY KEY (org_id, api_id)
);

-- +goose Down
DROP TABLE api_schema_syncs;
DROP TABLE api_schemas;
DROP INDEX apis_synced;
ALTER TABLE apis DROP COLUMN sync_seconds;
