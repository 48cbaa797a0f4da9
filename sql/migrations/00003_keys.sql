-- +goose Up
CREATE TABLE keys (
    key_hash   text PRIMARY KEY,
    org_id     text        NOT NULL REFERENCES orgs (id),
    alias      text        NOT NULL DEFAULT '',
    active     boolean     NOT NULL,
    expires_at timestamptz, -- null: never
    apis       text[]      NOT NULL, -- the APIs it names itself
    policies   text[]      NOT NULL,
    body       json        NOT NULL,
    version    bigint      NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX keys_by_org ON keys (org_id, key_hash);
CREATE INDEX keys_by_alias ON keys (org_id, lower(alias) text_pattern_ops);
CREATE INDEX keys_by_hash ON keys (key_hash text_pattern_ops);
CREATE INDEX keys_by_expiry ON keys (expires_at) WHERE active AND expires_at IS NOT NULL;
CREATE INDEX keys_by_api ON keys USING gin (apis);
CREATE INDEX keys_by_policy ON keys USING gin (policies);

-- One row for each key whose store copy is behind. Taking the row is the right
-- to write that copy, so writes of one key never overtake each other.
CREATE TABLE outbox (
    topic      text        NOT NULL,
    id         text        NOT NULL,
    payload    jsonb       NOT NULL,
    attempts   integer     NOT NULL DEFAULT 0,
    next_at    timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, id)
);
CREATE INDEX outbox_due ON outbox (next_at);

-- +goose Down
DROP TABLE outbox;
DROP TABLE keys;
