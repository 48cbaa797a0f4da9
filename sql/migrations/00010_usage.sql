-- +goose Up
-- How far each gateway's counts of calls are known: of every start of a gateway
-- the last batch that counts. Who adds a batch holds its row.
CREATE TABLE usage_senders (
    gateway  text        NOT NULL,
    boot     text        NOT NULL,
    sequence bigint      NOT NULL,
    seen_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (gateway, boot)
);
CREATE INDEX usage_senders_by_age ON usage_senders (seen_at);

-- What hours lack of their minutes. A batch marks the whole hour, with a row of its
-- own: batches do not wait for each other. Who sums up puts a row for each API in
-- the place of that, so that no sum takes long.
CREATE TABLE usage_marks (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hour   timestamptz NOT NULL,
    org_id text        NOT NULL DEFAULT '',
    api_id text        NOT NULL DEFAULT '' -- '': all there are
);
CREATE INDEX usage_marks_by_hour ON usage_marks (hour, api_id, org_id);

-- Minutes from here on are all there. Those of earlier hours are gone, and what
-- comes in for these is added to the hours.
CREATE TABLE usage_floor (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    minutes  timestamptz NOT NULL
);
INSERT INTO usage_floor (minutes) VALUES (date_trunc('day', now(), 'UTC') - interval '1 day');

CREATE TABLE usage_minute (
    org_id      text        NOT NULL, -- of the API
    bucket      timestamptz NOT NULL, -- beginning of the minute
    api_id      text        NOT NULL,
    key_hash    text        NOT NULL, -- '': calls without a known key; other: keys that there was no room for
    status      smallint    NOT NULL, -- 0: nothing was answered
    reason      text        NOT NULL, -- '': the gateway had no objections
    hits        bigint      NOT NULL,
    errors      bigint      NOT NULL,
    total_us    bigint      NOT NULL,
    upstream_us bigint      NOT NULL,
    PRIMARY KEY (org_id, key_hash, bucket, api_id, status, reason)
) PARTITION BY RANGE (bucket);
CREATE INDEX usage_minute_by_api ON usage_minute (org_id, api_id, bucket);
CREATE INDEX usage_minute_by_time ON usage_minute (org_id, bucket);
CREATE INDEX usage_minute_refused ON usage_minute (org_id, bucket) WHERE reason <> '';
CREATE TABLE usage_minute_default PARTITION OF usage_minute DEFAULT;

CREATE TABLE usage_hour (
    org_id      text        NOT NULL,
    bucket      timestamptz NOT NULL, -- beginning of the hour
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
CREATE INDEX usage_hour_by_api ON usage_hour (org_id, api_id, bucket);
CREATE INDEX usage_hour_by_time ON usage_hour (org_id, bucket);
CREATE INDEX usage_hour_refused ON usage_hour (org_id, bucket) WHERE reason <> '';
CREATE TABLE usage_hour_default PARTITION OF usage_hour DEFAULT;

-- The same without keys, which is far less to read. The sums of all APIs of an
-- organisation are there as well, under ''. Batches are added to hours at once.
CREATE TABLE usage_api_minute (
    org_id      text        NOT NULL,
    bucket      timestamptz NOT NULL,
    api_id      text        NOT NULL, -- '': all
    status      smallint    NOT NULL,
    reason      text        NOT NULL,
    hits        bigint      NOT NULL,
    errors      bigint      NOT NULL,
    total_us    bigint      NOT NULL,
    upstream_us bigint      NOT NULL,
    PRIMARY KEY (org_id, bucket, api_id, status, reason)
) PARTITION BY RANGE (bucket);
CREATE INDEX usage_api_minute_by_api ON usage_api_minute (org_id, api_id, bucket);
CREATE INDEX usage_api_minute_by_time ON usage_api_minute (bucket);
CREATE TABLE usage_api_minute_default PARTITION OF usage_api_minute DEFAULT;

CREATE TABLE usage_api_hour (
    org_id      text        NOT NULL,
    bucket      timestamptz NOT NULL,
    api_id      text        NOT NULL, -- '': all
    status      smallint    NOT NULL,
    reason      text        NOT NULL,
    hits        bigint      NOT NULL,
    errors      bigint      NOT NULL,
    total_us    bigint      NOT NULL,
    upstream_us bigint      NOT NULL,
    PRIMARY KEY (org_id, bucket, api_id, status, reason)
) PARTITION BY RANGE (bucket);
CREATE INDEX usage_api_hour_by_api ON usage_api_hour (org_id, api_id, bucket);
CREATE TABLE usage_api_hour_default PARTITION OF usage_api_hour DEFAULT;

-- How long calls took: size n is from 100 us * 2^(n-1) to 100 us * 2^n. All APIs of
-- an organisation are '', and hours are added to at once, here too.
CREATE TABLE latency_minute (
    org_id text        NOT NULL,
    bucket timestamptz NOT NULL,
    api_id text        NOT NULL,
    size   smallint    NOT NULL,
    calls  bigint      NOT NULL,
    PRIMARY KEY (org_id, bucket, api_id, size)
) PARTITION BY RANGE (bucket);
CREATE INDEX latency_minute_by_api ON latency_minute (org_id, api_id, bucket);
CREATE TABLE latency_minute_default PARTITION OF latency_minute DEFAULT;

CREATE TABLE latency_hour (
    org_id text        NOT NULL,
    bucket timestamptz NOT NULL,
    api_id text        NOT NULL,
    size   smallint    NOT NULL,
    calls  bigint      NOT NULL,
    PRIMARY KEY (org_id, bucket, api_id, size)
) PARTITION BY RANGE (bucket);
CREATE INDEX latency_hour_by_api ON latency_hour (org_id, api_id, bucket);
CREATE TABLE latency_hour_default PARTITION OF latency_hour DEFAULT;

-- +goose StatementBegin
-- usage_partition makes the partition of a table for a range, with what the
-- default one has of it. Rows that are added to again and again stay in their page.
CREATE FUNCTION usage_partition(parent text, since timestamptz, until timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    child text := parent || to_char(since AT TIME ZONE 'UTC', '_YYYYMMDD');
BEGIN
    IF to_regclass(child) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (fillfactor = %s)',
        child, parent, CASE parent WHEN 'usage_hour' THEN 100 ELSE 80 END);
    EXECUTE format('WITH moved AS (DELETE FROM %I WHERE bucket >= $1 AND bucket < $2 RETURNING *) INSERT INTO %I SELECT * FROM moved',
        parent || '_default', child) USING since, until;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, since, until);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- usage_drop drops the partitions of a table that end at a moment or before, and
-- the rows from before it that are in none of them.
CREATE FUNCTION usage_drop(parent text, since timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    child record;
BEGIN
    FOR child IN
        SELECT c.relname, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz AS until
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent::regclass AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
    LOOP
        IF child.until <= since THEN
            EXECUTE format('DROP TABLE %I', child.relname);
        END IF;
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE bucket < $1', parent || '_default') USING since;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- usage_keep makes the partitions of the days and months to come, and drops those
-- that are too old. It returns false when hours are not summed up yet whose
-- minutes it would drop: these stay.
CREATE FUNCTION usage_keep(at timestamptz, keep_minutes interval, keep_hours interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    today      timestamptz := date_trunc('day', at, 'UTC');
    oldest     timestamptz := date_trunc('day', at - keep_minutes, 'UTC');
    first_hour timestamptz := date_trunc('month', at - keep_hours, 'UTC');
    parent     text;
BEGIN
    -- Nobody adds a batch meanwhile: each begins with its marks.
    LOCK TABLE usage_marks IN SHARE ROW EXCLUSIVE MODE;
    FOREACH parent IN ARRAY ARRAY['usage_minute', 'usage_api_minute', 'latency_minute'] LOOP
        FOR day IN -1 .. 3 LOOP
            PERFORM usage_partition(parent, today + day * interval '1 day', today + (day + 1) * interval '1 day');
        END LOOP;
    END LOOP;
    FOREACH parent IN ARRAY ARRAY['usage_hour', 'usage_api_hour', 'latency_hour'] LOOP
        FOR month IN 0 .. 3 LOOP
            PERFORM usage_partition(parent,
                date_trunc('month', at AT TIME ZONE 'UTC' + month * interval '1 month') AT TIME ZONE 'UTC',
                date_trunc('month', at AT TIME ZONE 'UTC' + (month + 1) * interval '1 month') AT TIME ZONE 'UTC');
        END LOOP;
        PERFORM usage_drop(parent, first_hour);
    END LOOP;
    DELETE FROM usage_senders WHERE seen_at < at - interval '30 days';
    IF EXISTS (SELECT 1 FROM usage_marks WHERE hour < oldest) THEN
        RETURN false;
    END IF;
    PERFORM usage_drop('usage_minute', oldest);
    PERFORM usage_drop('usage_api_minute', oldest);
    PERFORM usage_drop('latency_minute', oldest);
    UPDATE usage_floor SET minutes = greatest(minutes, oldest);
    RETURN true;
END $$;
-- +goose StatementEnd

SELECT usage_keep(now(), interval '8 days', interval '400 days');

-- +goose Down
DROP FUNCTION usage_keep(timestamptz, interval, interval);
DROP FUNCTION usage_drop(text, timestamptz);
DROP FUNCTION usage_partition(text, timestamptz, timestamptz);
DROP TABLE latency_hour;
DROP TABLE latency_minute;
DROP TABLE usage_api_hour;
DROP TABLE usage_api_minute;
DROP TABLE usage_hour;
DROP TABLE usage_minute;
DROP TABLE usage_floor;
DROP TABLE usage_marks;
DROP TABLE usage_senders;
