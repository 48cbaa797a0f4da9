-- +goose Up
-- +goose StatementBegin
-- audit_forget deletes the oldest entries of the audit log that are from before a
-- moment, at most so many of all, and returns how many. Nothing else deletes entries.
CREATE FUNCTION audit_forget(until timestamptz, most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    deleted bigint;
BEGIN
    PERFORM set_config('sluice.audit_forget', 'on', true);
    DELETE FROM audit_log WHERE id IN (
        SELECT id FROM (SELECT id, at FROM audit_log ORDER BY id LIMIT most) AS oldest WHERE at < until
    );
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM set_config('sluice.audit_forget', '', true);
    RETURN deleted;
END $$;

CREATE FUNCTION refuse_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('sluice.audit_forget', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% on % is refused: rows are only ever added, and go when they are too old', TG_OP, TG_TABLE_NAME;
END $$;
-- +goose StatementEnd

DROP TRIGGER audit_log_insert_only ON audit_log;
CREATE TRIGGER audit_log_insert_only BEFORE UPDATE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_deletion();

-- +goose Down
DROP TRIGGER audit_log_kept ON audit_log;
DROP TRIGGER audit_log_insert_only ON audit_log;
CREATE TRIGGER audit_log_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
DROP FUNCTION refuse_deletion();
DROP FUNCTION audit_forget(timestamptz, integer);
