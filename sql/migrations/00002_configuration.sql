-- +goose Up

-- The one row that every change of configuration locks first: writers follow
-- one another, so committed revisions have no gaps and no writer decides on
-- what another is changing.
CREATE TABLE config_state (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    revision   bigint      NOT NULL DEFAULT 0,
    generation bigint      NOT NULL DEFAULT 0, -- counts reloads asked for without a change
    updated_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO config_state DEFAULT VALUES;

-- +goose StatementBegin
CREATE FUNCTION bump_revision() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE bumped bigint;
BEGIN
    UPDATE config_state SET revision = revision + 1, updated_at = now() RETURNING revision INTO bumped;
    PERFORM pg_notify('sluice_config', bumped::text);
    RETURN bumped;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION bump_generation() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE bumped bigint;
DECLARE current_revision bigint;
BEGIN
    UPDATE config_state SET generation = generation + 1, updated_at = now()
        RETURNING generation, revision INTO bumped, current_revision;
    PERFORM pg_notify('sluice_config', current_revision::text);
    RETURN bumped;
END $$;
-- +goose StatementEnd

-- Definitions are json, not jsonb: members that this release does not know come
-- back as they were written, numbers and escapes included.
CREATE TABLE apis (
    id          text PRIMARY KEY,
    org_id      text        NOT NULL REFERENCES orgs (id),
    name        text        NOT NULL,
    domain      text        NOT NULL, -- in lower case; "" is every host
    listen_path text        NOT NULL, -- without the final slash: both spellings take the same requests
    routed      boolean     NOT NULL, -- active and reachable from outside
    definition  json        NOT NULL,
    version     bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX apis_route ON apis (domain, listen_path) WHERE routed;
CREATE INDEX apis_by_name ON apis (org_id, name, id);
CREATE INDEX apis_by_creation ON apis (org_id, created_at, id);
CREATE INDEX apis_by_update ON apis (org_id, updated_at, id);

CREATE TABLE policies (
    id         text PRIMARY KEY,
    org_id     text        NOT NULL REFERENCES orgs (id),
    name       text        NOT NULL,
    state      text        NOT NULL, -- active, draft or deny
    apis       text[]      NOT NULL, -- the APIs it names
    body       json        NOT NULL,
    version    bigint      NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX policies_name ON policies (org_id, name);
CREATE INDEX policies_by_creation ON policies (org_id, created_at, id);
CREATE INDEX policies_by_update ON policies (org_id, updated_at, id);
CREATE INDEX policies_by_api ON policies USING gin (apis);

CREATE TABLE config_revisions (
    revision   bigint PRIMARY KEY,
    org_id     text        NOT NULL REFERENCES orgs (id),
    author     text        NOT NULL,
    source     text        NOT NULL, -- api, gateway, seed, rollback
    reason     text        NOT NULL DEFAULT '',
    summary    json        NOT NULL, -- what changed: [{kind, id, name, action}]
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX config_revisions_by_org ON config_revisions (org_id, revision DESC);

-- Each revision adds only the objects that it changed. The configuration at a
-- revision is the newest row of each object up to it, so that a change costs the
-- same with one API and with a hundred thousand.
CREATE TABLE config_history (
    org_id   text   NOT NULL,
    kind     text   NOT NULL CHECK (kind IN ('api', 'policy')),
    id       text   NOT NULL,
    revision bigint NOT NULL REFERENCES config_revisions (revision) DEFERRABLE INITIALLY DEFERRED,
    body     json, -- null: deleted
    PRIMARY KEY (org_id, kind, id, revision)
);
CREATE INDEX config_history_by_revision ON config_history (revision);

-- +goose Down
DROP TABLE config_history;
DROP TABLE config_revisions;
DROP TABLE policies;
DROP TABLE apis;
DROP FUNCTION bump_generation();
DROP FUNCTION bump_revision();
DROP TABLE config_state;
