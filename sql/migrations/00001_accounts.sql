-- +goose Up
CREATE TABLE orgs (
    id         text PRIMARY KEY,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
    id              text PRIMARY KEY,
    org_id          text        NOT NULL REFERENCES orgs (id),
    email           text        NOT NULL,
    first_name      text        NOT NULL DEFAULT '',
    last_name       text        NOT NULL DEFAULT '',
    role            text        NOT NULL CHECK (role IN ('viewer', 'editor', 'admin', 'gateway')),
    active          boolean     NOT NULL DEFAULT true,
    access_key_hash bytea       NOT NULL UNIQUE, -- SHA-256; the key itself is shown once and kept nowhere
    version         bigint      NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX users_email ON users (lower(email));
CREATE INDEX users_by_org ON users (org_id, email, id);

-- +goose Down
DROP TABLE users;
DROP TABLE orgs;
