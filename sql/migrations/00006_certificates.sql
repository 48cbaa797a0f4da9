-- +goose Up

-- Certificates that gateways show, trust, or know their clients by. An id is the
-- organisation's with the sum behind it; a certificate never changes under it.
CREATE TABLE certificates (
    org_id     text        NOT NULL REFERENCES orgs (id),
    sum        text        NOT NULL, -- SHA-256 of its DER, in hexadecimal digits
    pem        text        NOT NULL, -- with those that lead to its authority
    sealed_key bytea       NOT NULL, -- the private key, sealed; empty: there is none
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, sum)
);

-- +goose Down
DROP TABLE certificates;
