-- +goose Up
-- A key that followed another has a row of its own, which says whose it is: its
-- session is that of the first key.
ALTER TABLE keys ADD COLUMN successor_of text NOT NULL DEFAULT '';

-- +goose Down
-- Of keys that were rotated only the first stays.
DELETE FROM keys WHERE successor_of <> '';
ALTER TABLE keys DROP COLUMN successor_of;
