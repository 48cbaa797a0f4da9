-- +goose Up
-- Calls of each key of an organisation in an hour or a day: the keys that called most
-- are found by adding up these rows. Rows of hours are made when the hour is summed
-- up, those of days from hours.
CREATE TABLE usage_key_rank (
    org_id      text        NOT NULL,
    hours       smallint    NOT NULL, -- 1 or 24
    bucket      timestamptz NOT NULL, -- beginning of the hour or of the day in UTC
    key_hash    text        NOT NULL,
    refused     boolean     NOT NULL, -- calls that the gateway refused or failed have a row of their own
    hits        bigint      NOT NULL,
    errors      bigint      NOT NULL,
    total_us    bigint      NOT NULL,
    upstream_us bigint      NOT NULL,
    PRIMARY KEY (org_id, hours, bucket, key_hash, refused)
) PARTITION BY RANGE (bucket);
CREATE INDEX usage_key_rank_refused ON usage_key_rank (org_id, hours, bucket) WHERE refused;
CREATE TABLE usage_key_rank_default PARTITION OF usage_key_rank DEFAULT;

SELECT usage_partition('usage_key_rank', month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC')
FROM generate_series(date_trunc('month', (SELECT min(bucket) FROM usage_api_hour) AT TIME ZONE 'UTC'), now() AT TIME ZONE 'UTC', interval '1 month') month;

-- They take the place of days by API and key, and of ranks in packed columns.
DROP FUNCTION usage_keep_api_ranks(timestamptz, interval);
DROP FUNCTION usage_keep_ranks(timestamptz, interval);
DROP TABLE usage_due;
DROP TABLE usage_rank;
DROP TABLE usage_numbers;
DROP TABLE usage_day;

-- Hours and days whose ranks are to be made, since hours have changed. All that there
-- are of before are made anew from the hours by key, which hold everything.
CREATE TABLE usage_due (
    org_id text        NOT NULL,
    hours  smallint    NOT NULL, -- 1 or 24
    bucket timestamptz NOT NULL,
    PRIMARY KEY (org_id, hours, bucket)
);
CREATE INDEX usage_due_in_order ON usage_due (hours, bucket, org_id);
INSERT INTO usage_due SELECT DISTINCT org_id, 1, bucket FROM usage_api_hour WHERE api_id = '' AND bucket < date_trunc('hour', now(), 'UTC');
INSERT INTO usage_due SELECT DISTINCT org_id, 24, date_trunc('day', bucket, 'UTC') FROM usage_api_hour WHERE api_id = '';

-- +goose StatementBegin
-- usage_keep_ranks is usage_keep for ranks.
CREATE FUNCTION usage_keep_ranks(at timestamptz, keep_hours interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first_hour timestamptz := date_trunc('month', at - keep_hours, 'UTC');
    parent     text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['usage_key_rank', 'usage_api_rank'] LOOP
        FOR month IN 0 .. 3 LOOP
            PERFORM usage_partition(parent,
                date_trunc('month', at AT TIME ZONE 'UTC' + month * interval '1 month') AT TIME ZONE 'UTC',
                date_trunc('month', at AT TIME ZONE 'UTC' + (month + 1) * interval '1 month') AT TIME ZONE 'UTC');
        END LOOP;
        PERFORM usage_drop(parent, first_hour);
    END LOOP;
    DELETE FROM usage_due WHERE hours IN (1, 24) AND bucket < first_hour;
END $$;
-- +goose StatementEnd

SELECT usage_keep_ranks(now(), interval '400 days');

-- +goose Down
DROP FUNCTION usage_keep_ranks(timestamptz, interval);
DROP TABLE usage_due;
DROP TABLE usage_key_rank;

-- The former tables, whose content is made anew from the hours by key.
CREATE TABLE usage_day (
    org_id      text        NOT NULL,
    bucket      timestamptz NOT NULL, -- beginning of the day in UTC
    api_id      text        NOT NULL,
    key_hash    text        NOT NULL,
    status      smallint    NOT NULL,
    reason      text        NOT NULL,
    hits        bigint      NOT NULL,
    errors      bigint      NOT NULL,
    total_us    bigint      NOT NULL,
    upstream_us bigint      NOT NULL,
    PRIMARY KEY (org_id, key_hash, bucket, api_id, status, reason)
) PARTITION BY RANGE (bucket);
CREATE TABLE usage_day_default PARTITION OF usage_day DEFAULT;

-- What keys are called in ranks: small numbers, each anew when its key was not
-- called for as long as hours are kept.
CREATE TABLE usage_numbers (
    org_id   text        NOT NULL,
    key_hash text        NOT NULL,
    number   integer     NOT NULL,
    seen     timestamptz NOT NULL, -- month of the last calls
    PRIMARY KEY (org_id, key_hash),
    UNIQUE (org_id, number)
);
CREATE INDEX usage_numbers_by_age ON usage_numbers (seen);

-- How often every key of an organisation called in an hour or a day, in a few bytes
-- for each: adding these up finds the keys that call most.
CREATE TABLE usage_rank (
    org_id  text        NOT NULL,
    refused boolean     NOT NULL, -- only what the gateway refused or failed
    hours   smallint    NOT NULL, -- 1 or 24
    bucket  timestamptz NOT NULL,
    hits    bytea       NOT NULL,
    PRIMARY KEY (org_id, refused, hours, bucket)
) PARTITION BY RANGE (bucket);
CREATE TABLE usage_rank_default PARTITION OF usage_rank DEFAULT;

-- What has to be made anew since hours have changed: the day of an API, and the ranks
-- ('') of an hour and of a day.
CREATE TABLE usage_due (
    org_id text        NOT NULL,
    api_id text        NOT NULL,
    hours  smallint    NOT NULL,
    bucket timestamptz NOT NULL,
    PRIMARY KEY (org_id, api_id, hours, bucket)
);
CREATE INDEX usage_due_in_order ON usage_due (hours, bucket, api_id DESC, org_id);
INSERT INTO usage_due SELECT DISTINCT org_id, '', 1, bucket FROM usage_api_hour WHERE api_id = '' AND bucket < date_trunc('hour', now(), 'UTC');
INSERT INTO usage_due SELECT DISTINCT org_id, api_id, 24, date_trunc('day', bucket, 'UTC') FROM usage_api_hour;

-- +goose StatementBegin
-- usage_keep_ranks is usage_keep for what is made of hours.
CREATE FUNCTION usage_keep_ranks(at timestamptz, keep_hours interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first_hour timestamptz := date_trunc('month', at - keep_hours, 'UTC');
    parent     text;
    child      regclass;
BEGIN
    FOREACH parent IN ARRAY ARRAY['usage_day', 'usage_rank'] LOOP
        FOR month IN 0 .. 3 LOOP
            PERFORM usage_partition(parent,
                date_trunc('month', at AT TIME ZONE 'UTC' + month * interval '1 month') AT TIME ZONE 'UTC',
                date_trunc('month', at AT TIME ZONE 'UTC' + (month + 1) * interval '1 month') AT TIME ZONE 'UTC');
        END LOOP;
        PERFORM usage_drop(parent, first_hour);
    END LOOP;
    -- Ranks are small as they are, and read often: compressing them would not pay.
    FOR child IN
        SELECT inhrelid FROM pg_inherits JOIN pg_attribute a ON a.attrelid = inhrelid AND a.attname = 'hits' AND a.attstorage <> 'e'
        WHERE inhparent = 'usage_rank'::regclass
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN hits SET STORAGE EXTERNAL', child);
    END LOOP;
    DELETE FROM usage_due WHERE hours IN (1, 24) AND bucket < first_hour;
    DELETE FROM usage_numbers WHERE seen < first_hour;
END $$;
-- +goose StatementEnd

SELECT usage_keep_ranks(now(), interval '400 days');

-- +goose StatementBegin
-- usage_keep_api_ranks is usage_keep_ranks for those of APIs.
CREATE FUNCTION usage_keep_api_ranks(at timestamptz, keep_hours interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR month IN 0 .. 3 LOOP
        PERFORM usage_partition('usage_api_rank',
            date_trunc('month', at AT TIME ZONE 'UTC' + month * interval '1 month') AT TIME ZONE 'UTC',
            date_trunc('month', at AT TIME ZONE 'UTC' + (month + 1) * interval '1 month') AT TIME ZONE 'UTC');
    END LOOP;
    PERFORM usage_drop('usage_api_rank', date_trunc('month', at - keep_hours, 'UTC'));
END $$;
-- +goose StatementEnd

SELECT usage_keep_api_ranks(now(), interval '400 days');
