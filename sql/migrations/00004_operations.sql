-- +goose Up
CREATE TABLE audit_log (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id      text        NOT NULL,
    at          timestamptz NOT NULL DEFAULT now(),
    actor       text        NOT NULL,
    actor_kind  text        NOT NULL,
    ip          text        NOT NULL DEFAULT '',
    action      text        NOT NULL,
    object_kind text        NOT NULL,
    object_id   text        NOT NULL,
    before      json, -- secrets masked
    after       json, -- secrets masked
    revision    bigint
);
CREATE INDEX audit_log_by_org ON audit_log (org_id, id DESC);
CREATE INDEX audit_log_by_object ON audit_log (org_id, object_kind, object_id, id DESC);
CREATE INDEX audit_log_by_actor ON audit_log (org_id, actor, id DESC);

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on % is refused: rows are only ever added', TG_OP, TG_TABLE_NAME;
END $$;
-- +goose StatementEnd

CREATE TRIGGER audit_log_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE gateways (
    name       text PRIMARY KEY,
    group_name text        NOT NULL DEFAULT '',
    build      text        NOT NULL DEFAULT '', -- version of the program
    revision   text        NOT NULL DEFAULT '', -- what it serves
    error      text        NOT NULL DEFAULT '', -- why it does not serve the newest
    ip         text        NOT NULL DEFAULT '',
    seen_at    timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE gateways;
DROP TABLE audit_log;
DROP FUNCTION refuse_change();
