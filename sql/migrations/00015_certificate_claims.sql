-- +goose Up
-- What keeps the certificates of other organisations from the names that servers
-- show one for; null: it was added by an older release, and not looked at yet.
ALTER TABLE certificates ADD COLUMN claims text[];
CREATE INDEX certificates_claims ON certificates USING gin (claims);
CREATE INDEX certificates_unclaimed ON certificates (org_id, sum) WHERE claims IS NULL;

-- +goose Down
ALTER TABLE certificates DROP COLUMN claims;
