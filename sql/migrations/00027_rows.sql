-- +goose Up

-- What rows of lists show and are filtered by is taken from definitions when these are
-- saved: a definition with its schema may be megabytes.

-- +goose StatementBegin
CREATE FUNCTION json_texts(list json) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN json_typeof(list) = 'array' THEN ARRAY(SELECT json_array_elements_text(list)) ELSE '{}'::text[] END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- legible returns a definition for the operators of json, which refuse any text with the
-- character U+0000, anywhere in it. Members that are not known may hold that.
CREATE FUNCTION legible(definition json) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT replace(definition::text, '\u0000', '\u0020')::json
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- api_auth returns how callers of an API authenticate: keyless, or the auth modes that
-- are on, and mtls where a client certificate is needed as well.
CREATE FUNCTION api_auth(definition json) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_remove(ARRAY[
        CASE WHEN keyless THEN 'keyless' END,
        CASE WHEN basic AND NOT keyless THEN 'basic' END,
        CASE WHEN jwt AND NOT keyless THEN 'jwt' END,
        CASE WHEN oauth AND NOT keyless THEN 'oauth' END,
        CASE WHEN NOT keyless AND (token OR NOT (basic OR jwt OR oauth OR signed)) THEN 'token' END,
        CASE WHEN mtls THEN 'mtls' END
    ], NULL)
    FROM (
        SELECT coalesce(use_keyless, false) AS keyless, coalesce(use_basic_auth, false) AS basic, coalesce(enable_jwt, false) AS jwt,
            coalesce(use_oauth2, false) AS oauth, coalesce(use_standard_auth, false) AS token,
            coalesce(enable_signature_checking, false) AS signed, coalesce(use_mutual_tls_auth, false) AS mtls
        FROM json_to_record(definition) AS d (use_keyless boolean, use_basic_auth boolean, enable_jwt boolean, use_oauth2 boolean,
            use_standard_auth boolean, enable_signature_checking boolean, use_mutual_tls_auth boolean)
    ) modes
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- policy_limits returns the limits of a policy that rows show.
CREATE FUNCTION policy_limits(body json) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT json_strip_nulls(json_build_object('rate', d.rate, 'per', d.per, 'quota_max', d.quota_max,
        'quota_renewal_rate', d.quota_renewal_rate, 'max_query_depth', d.max_query_depth, 'enforcement', d.enforcement))
    FROM json_to_record(body) AS d (rate json, per json, quota_max json, quota_renewal_rate json, max_query_depth json, enforcement json)
$$;
-- +goose StatementEnd

ALTER TABLE apis
    ADD COLUMN kind text NOT NULL GENERATED ALWAYS AS (CASE WHEN legible(definition) #>> '{graphql,enabled}' = 'true' THEN 'graphql' ELSE 'rest' END) STORED,
    ADD COLUMN auth text[] NOT NULL GENERATED ALWAYS AS (api_auth(legible(definition))) STORED,
    ADD COLUMN active boolean NOT NULL GENERATED ALWAYS AS (coalesce(legible(definition) ->> 'active', 'true') <> 'false') STORED,
    ADD COLUMN path text NOT NULL GENERATED ALWAYS AS (coalesce(legible(definition) #>> '{proxy,listen_path}', '')) STORED, -- as it was written
    ADD COLUMN tags text[] NOT NULL GENERATED ALWAYS AS (json_texts(legible(definition) -> 'tags')) STORED;

ALTER TABLE policies
    ADD COLUMN tags text[] NOT NULL GENERATED ALWAYS AS (json_texts(legible(body) -> 'tags')) STORED,
    ADD COLUMN limits json NOT NULL GENERATED ALWAYS AS (policy_limits(legible(body))) STORED;

CREATE INDEX keys_by_name ON keys (org_id, alias, key_hash) WHERE successor_of = '' AND NOT starts_with(key_hash, 'org:');
CREATE INDEX keys_by_creation ON keys (org_id, created_at, key_hash) WHERE successor_of = '' AND NOT starts_with(key_hash, 'org:');
CREATE INDEX keys_inactive ON keys (org_id, key_hash) WHERE NOT active;
CREATE INDEX keys_by_tag ON keys USING gin (json_texts(legible(body) -> 'tags')) WHERE legible(body) -> 'tags' IS NOT NULL;

-- +goose Down
DROP INDEX keys_by_tag;
DROP INDEX keys_inactive;
DROP INDEX keys_by_creation;
DROP INDEX keys_by_name;
ALTER TABLE policies DROP COLUMN limits, DROP COLUMN tags;
ALTER TABLE apis DROP COLUMN tags, DROP COLUMN path, DROP COLUMN active, DROP COLUMN auth, DROP COLUMN kind;
DROP FUNCTION policy_limits(json);
DROP FUNCTION api_auth(json);
DROP FUNCTION legible(json);
DROP FUNCTION json_texts(json);
