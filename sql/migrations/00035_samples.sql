-- +goose Up
-- Requests that gateways recorded, without credentials: the newest of each organisation.
CREATE TABLE samples (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id   text        NOT NULL, -- of the API
    at       timestamptz NOT NULL,
    api_id   text        NOT NULL,
    key_hash text        NOT NULL, -- '': without a known key
    gateway  text        NOT NULL,
    size     integer     NOT NULL, -- of its texts in bytes
    detail   jsonb       NOT NULL
);
CREATE INDEX samples_by_org ON samples (org_id, id);
CREATE INDEX samples_by_key ON samples (key_hash);
CREATE INDEX samples_by_age ON samples (at);

-- Samples go with their key and with their organisation. A key that must not be shown is
-- in them as its hash.
-- +goose StatementBegin
CREATE FUNCTION forget_samples_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM samples WHERE key_hash IN (OLD.key_hash, encode(sha256(convert_to(OLD.key_hash, 'UTF8')), 'hex'));
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER keys_forget_samples AFTER DELETE ON keys FOR EACH ROW EXECUTE FUNCTION forget_samples_of_key();

-- +goose StatementBegin
CREATE FUNCTION forget_samples_of_org() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM samples WHERE org_id = OLD.id;
    DELETE FROM replays WHERE org_id = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER orgs_forget_samples AFTER DELETE ON orgs FOR EACH ROW EXECUTE FUNCTION forget_samples_of_org();

-- Runs of samples under a changed configuration, so that every admin can report on them.
CREATE TABLE replays (
    id         text PRIMARY KEY,
    org_id     text        NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL, -- when the admin that runs it last said so
    state      text        NOT NULL, -- running, done or failed
    done       integer     NOT NULL DEFAULT 0,
    total      integer     NOT NULL DEFAULT 0,
    fault      text        NOT NULL DEFAULT '',
    result     jsonb
);
CREATE INDEX replays_by_age ON replays (started_at);
CREATE INDEX replays_by_org ON replays (org_id, started_at);

-- +goose Down
DROP TRIGGER keys_forget_samples ON keys;
DROP TRIGGER orgs_forget_samples ON orgs;
DROP FUNCTION forget_samples_of_key;
DROP FUNCTION forget_samples_of_org;
DROP TABLE replays;
DROP TABLE samples;
