-- +goose Up
-- How often every API of an organisation was called in an hour or a day, whatever
-- came of it. It is made with the ranks of keys, and due when these are.
CREATE TABLE usage_api_rank (
    org_id      text        NOT NULL,
    hours       smallint    NOT NULL, -- 1 or 24
    bucket      timestamptz NOT NULL,
    api_id      text        NOT NULL,
    hits        bigint      NOT NULL,
    errors      bigint      NOT NULL,
    total_us    bigint      NOT NULL,
    upstream_us bigint      NOT NULL,
    PRIMARY KEY (org_id, hours, bucket, api_id)
) PARTITION BY RANGE (bucket);
CREATE TABLE usage_api_rank_default PARTITION OF usage_api_rank DEFAULT;

-- Ranks of keys that were made before now have none of APIs.
INSERT INTO usage_due SELECT DISTINCT org_id, '', hours, bucket FROM usage_rank WHERE NOT refused ON CONFLICT DO NOTHING;

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

-- +goose Down
DROP FUNCTION usage_keep_api_ranks(timestamptz, interval);
DROP TABLE usage_api_rank;
