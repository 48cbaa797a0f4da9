-- What is sealed with the admins' master key, table by table, in the order of its
-- primary key. A new place for something sealed belongs here too.

-- name: SealedCertificates :many
SELECT org_id, sum, sealed_key FROM certificates
WHERE (org_id, sum) > (@org_id::text, @sum::text) AND octet_length(sealed_key) > 0
ORDER BY org_id, sum LIMIT @max;

-- name: ReplaceSealedCertificate :execrows
UPDATE certificates SET sealed_key = @fresh WHERE org_id = @org_id AND sum = @sum AND sealed_key = @former;

-- name: SealedRequests :many
SELECT id, sealed_secret FROM key_requests
WHERE id > @id AND octet_length(sealed_secret) > 0 ORDER BY id LIMIT @max;

-- name: ReplaceSealedRequest :execrows
UPDATE key_requests SET sealed_secret = @fresh WHERE id = @id AND sealed_secret = @former;

-- name: SealedWebhooks :many
SELECT id, sealed_secret, sealed_former FROM webhooks WHERE id > @id ORDER BY id LIMIT @max;

-- name: ReplaceSealedWebhook :execrows
UPDATE webhooks SET sealed_secret = @fresh WHERE id = @id AND sealed_secret = @former;

-- name: ReplaceSealedWebhookFormer :execrows
UPDATE webhooks SET sealed_former = @fresh WHERE id = @id AND sealed_former = @former;

-- name: SealedDeliveries :many
SELECT id, payload FROM deliveries
WHERE id > @id AND sealed AND octet_length(payload) > 0 ORDER BY id LIMIT @max;

-- name: ReplaceSealedDelivery :execrows
UPDATE deliveries SET payload = @fresh WHERE id = @id AND payload = @former;

-- MasterKeyCheck is sealed with the master key of the database. It is no secret: it shows
-- whether an admin has that key.
-- name: MasterKeyCheck :one
SELECT sealed FROM master_key_check;

-- name: AddMasterKeyCheck :exec
INSERT INTO master_key_check (sealed) VALUES (@sealed) ON CONFLICT DO NOTHING;

-- name: ReplaceMasterKeyCheck :execrows
UPDATE master_key_check SET sealed = @fresh WHERE sealed = @former;

-- name: SealedSecrets :many
SELECT org_id, name, sealed_value FROM secrets WHERE (org_id, name) > (@org_id::text, @name::text)
ORDER BY org_id, name LIMIT @max;

-- name: ReplaceSealedSecret :execrows
UPDATE secrets SET sealed_value = @fresh WHERE org_id = @org_id AND name = @name AND sealed_value = @former;

-- name: SealedACMEEntries :many
SELECT name, sealed_value FROM acme_entries WHERE name > @name ORDER BY name LIMIT @max;

-- name: ReplaceSealedACMEEntry :execrows
UPDATE acme_entries SET sealed_value = @fresh WHERE name = @name AND sealed_value = @former;
