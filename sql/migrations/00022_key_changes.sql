-- +goose Up
-- Every change of a key, in the order of the commits: gateways follow it, so that a
-- revocation reaches them without the key store. A row is identified by its number
-- and a random value, because a restored database uses numbers again.
CREATE TABLE key_changes (
    seq        bigint GENERATED ALWAYS AS IDENTITY (START WITH 2) PRIMARY KEY,
    nonce      text        NOT NULL DEFAULT substr(replace(gen_random_uuid()::text, '-', ''), 1, 16),
    key_hash   text        NOT NULL, -- empty: a new key that nobody can have tried before
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX key_changes_by_time ON key_changes (changed_at);
-- There is always a last one. It does not take its number from the sequence: with
-- wal_level minimal, PostgreSQL forgets in a crash what a sequence counted in and after
-- the transaction that created it.
INSERT INTO key_changes (seq, key_hash) OVERRIDING SYSTEM VALUE VALUES (1, '');

-- +goose StatementBegin
CREATE FUNCTION note_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Tokens of OAuth clients are too many to announce each, or to wait for each other.
    IF TG_OP = 'INSERT' AND NEW.successor_of <> '' THEN
        INSERT INTO key_changes (key_hash) VALUES ('');
        RETURN NULL;
    END IF;
    -- The trigger runs at the end of the transaction: with this lock, numbers become
    -- visible in their order, and nobody who holds it waits for a row.
    PERFORM pg_advisory_xact_lock(7209773);
    IF TG_OP = 'DELETE' THEN
        INSERT INTO key_changes (key_hash) VALUES (OLD.key_hash);
    ELSE
        INSERT INTO key_changes (key_hash) VALUES (NEW.key_hash);
    END IF;
    PERFORM pg_notify('sluice_keys', '');
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE CONSTRAINT TRIGGER keys_changed AFTER INSERT OR UPDATE OR DELETE ON keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_key_change();

-- The last change of a key that a gateway has applied.
ALTER TABLE gateways ADD COLUMN keys_seq bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE gateways DROP COLUMN keys_seq;
DROP TRIGGER keys_changed ON keys;
DROP FUNCTION note_key_change();
DROP TABLE key_changes;
