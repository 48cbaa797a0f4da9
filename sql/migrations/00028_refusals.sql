-- +goose Up
-- The newest refused requests of each key, and of each API without a known key, as
-- gateways hand them over. How many there were is in the counts of calls.
CREATE TABLE refusals (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id     text        NOT NULL, -- of the API
    at         timestamptz NOT NULL,
    request_id text        NOT NULL, -- of the answer; callers may choose it, so it may come again
    gateway    text        NOT NULL,
    api_id     text        NOT NULL,
    key_hash   text        NOT NULL, -- '': without a known key
    reason     text        NOT NULL,
    detail     jsonb       NOT NULL
);
CREATE INDEX refusals_by_key ON refusals (org_id, key_hash, at DESC, id DESC);
CREATE INDEX refusals_by_api ON refusals (org_id, api_id, at DESC, id DESC);
CREATE INDEX refusals_by_reason ON refusals (org_id, reason, at DESC, id DESC);
CREATE INDEX refusals_by_time ON refusals (org_id, at DESC, id DESC);
CREATE INDEX refusals_by_request ON refusals (org_id, request_id);
CREATE INDEX refusals_by_age ON refusals (at);

-- +goose Down
DROP TABLE refusals;
