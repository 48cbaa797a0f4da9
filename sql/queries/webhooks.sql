-- name: InsertWebhook :one
INSERT INTO webhooks (id, org_id, developer_id, name, url, events, sealed_secret)
VALUES (@id, @org_id, @developer_id, @name, @url, @events, @sealed_secret)
RETURNING *;

-- WebhookOwner keeps others from adding webhooks to a developer until the
-- transaction ends, and reports whether there is such a developer.
-- name: WebhookOwner :one
SELECT email FROM developers WHERE org_id = @org_id AND id = @id FOR NO KEY UPDATE;

-- WebhookOrg is WebhookOwner for an organisation.
-- name: WebhookOrg :one
SELECT id FROM orgs WHERE id = @id FOR NO KEY UPDATE;

-- name: WebhookByID :one
SELECT * FROM webhooks WHERE org_id = @org_id AND id = @id;

-- name: LockWebhook :one
SELECT * FROM webhooks WHERE org_id = @org_id AND id = @id FOR UPDATE;

-- name: UpdateWebhook :one
UPDATE webhooks SET name = @name, events = @events, url = @url,
    failing_since = CASE WHEN url = @url THEN failing_since END, version = version + 1, updated_at = now()
WHERE id = @id RETURNING *;

-- name: RotateWebhook :one
UPDATE webhooks SET sealed_secret = @sealed_secret, sealed_former = @sealed_former,
    former_until = now() + make_interval(secs => sqlc.arg(grace_seconds)::float8), version = version + 1, updated_at = now()
WHERE id = @id RETURNING *;

-- name: EnableWebhook :one
UPDATE webhooks SET disabled_at = NULL, disabled_for = '', failing_since = NULL, version = version + 1, updated_at = now()
WHERE id = @id RETURNING *;

-- name: DisableWebhook :one
UPDATE webhooks SET disabled_at = now(), disabled_for = @disabled_for, version = version + 1, updated_at = now()
WHERE id = @id RETURNING *;

-- name: DeleteWebhook :exec
DELETE FROM webhooks WHERE id = @id;

-- NoteWebhookWorks forgets that a webhook failed.
-- name: NoteWebhookWorks :exec
UPDATE webhooks SET failing_since = NULL WHERE id = @id AND failing_since IS NOT NULL;

-- NoteWebhookFails keeps since when a webhook fails.
-- name: NoteWebhookFails :exec
UPDATE webhooks SET failing_since = now() WHERE id = @id AND failing_since IS NULL;

-- name: WebhookEmail :one
SELECT email FROM developers WHERE org_id = @org_id AND id = @id;

-- WebhooksHearing lists the webhooks that subscribe to an event: those of the
-- organisation, and those of one developer.
-- name: WebhooksHearing :many
SELECT w.id, w.developer_id FROM webhooks w
WHERE w.org_id = @org_id AND w.developer_id IS NULL AND w.disabled_at IS NULL AND w.events && ARRAY[@event::text, '*']
UNION ALL
SELECT w.id, w.developer_id FROM webhooks w
WHERE w.developer_id = @developer_id::text AND w.org_id = @org_id AND w.disabled_at IS NULL AND w.events && ARRAY[@event::text, '*'];

-- name: CountWebhooks :one
SELECT count(*) FROM webhooks WHERE org_id = @org_id;

-- name: ListWebhooks :many
SELECT * FROM webhooks WHERE org_id = @org_id ORDER BY created_at, id LIMIT @max OFFSET @skip;

-- name: CountWebhooksNamed :one
SELECT count(*) FROM webhooks
WHERE org_id = @org_id AND lower(name) COLLATE "C" >= lower(@first::text) AND lower(name) COLLATE "C" < lower(@last::text);

-- name: ListWebhooksNamed :many
SELECT * FROM webhooks
WHERE org_id = @org_id AND lower(name) COLLATE "C" >= lower(@first::text) AND lower(name) COLLATE "C" < lower(@last::text)
ORDER BY lower(name) COLLATE "C", id LIMIT @max OFFSET @skip;

-- name: CountWebhooksFor :one
SELECT count(*) FROM webhooks WHERE org_id = @org_id AND developer_id = @developer_id::text;

-- name: ListWebhooksFor :many
SELECT * FROM webhooks WHERE org_id = @org_id AND developer_id = @developer_id::text
ORDER BY created_at, id LIMIT @max OFFSET @skip;

-- name: CountWebhooksOfOrg :one
SELECT count(*) FROM webhooks WHERE org_id = @org_id AND developer_id IS NULL;

-- PortalEvents is what an organisation's portal is configured with.
-- name: PortalEvents :one
SELECT body FROM portal_objects WHERE org_id = @org_id AND kind = 'configuration';
