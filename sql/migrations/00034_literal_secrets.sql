-- +goose Up

-- What looks like a reference to a secret in a definition from before there were any is
-- literal text, and stays so.
UPDATE apis SET definition = ('{"disable_secret_references":true,' || substr(ltrim(definition::text), 2))::json
WHERE definition::text ~ '\{(secret:[A-Za-z0-9]|env:SLUICE_SECRET_|file:/)' AND definition::text !~ '"disable_secret_references"';

UPDATE config_history SET body = ('{"disable_secret_references":true,' || substr(ltrim(body::text), 2))::json
WHERE kind = 'api' AND body::text ~ '\{(secret:[A-Za-z0-9]|env:SLUICE_SECRET_|file:/)' AND body::text !~ '"disable_secret_references"';

-- +goose Down
SELECT 1;
