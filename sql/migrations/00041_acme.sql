-- +goose Up

-- What gateways share for ACME (RFC 8555): accounts, certificates with their private keys,
-- and answers to challenges.
CREATE TABLE acme_entries (
    name         text        NOT NULL PRIMARY KEY,
    sealed_value bytea       NOT NULL,
    expires_at   timestamptz -- NULL: never
);

-- Which attempt to obtain a certificate is under way, or when the next one may begin after
-- a failure.
CREATE TABLE acme_leases (
    name     text        NOT NULL PRIMARY KEY, -- of the entry
    holder   text        NOT NULL,             -- the attempt
    until    timestamptz NOT NULL,
    failures integer     NOT NULL DEFAULT 0,   -- attempts that failed one after another
    error    text        NOT NULL DEFAULT ''   -- of the last one
);

-- +goose Down
DROP TABLE acme_leases;
DROP TABLE acme_entries;
