-- OrgExists reports whether there is an organisation that has not ended.
-- name: OrgExists :one
SELECT EXISTS (SELECT 1 FROM orgs WHERE id = $1 AND ended_at IS NULL);

-- PortalObject returns an organisation's catalogue, without its entries, or the
-- configuration of its portal.
-- name: PortalObject :one
SELECT * FROM portal_objects WHERE org_id = $1 AND kind = $2;

-- LockPortalObject returns an object that nobody else changes until the
-- transaction ends.
-- name: LockPortalObject :one
SELECT * FROM portal_objects WHERE org_id = $1 AND kind = $2 FOR UPDATE;

-- name: InsertPortalObject :exec
INSERT INTO portal_objects (org_id, kind, id, body) VALUES ($1, $2, $3, $4);

-- TouchPortalObject makes an object where there is none, and in any case keeps
-- others from changing it until the transaction ends.
-- name: TouchPortalObject :one
INSERT INTO portal_objects AS o (org_id, kind, id, body) VALUES ($1, $2, $3, $4)
ON CONFLICT (org_id, kind) DO UPDATE SET version = o.version + 1, updated_at = now()
RETURNING *;

-- AllHooks returns the webhooks that definitions refer to, of every organisation that has
-- any.
-- name: AllHooks :many
SELECT org_id, body FROM portal_objects WHERE kind = 'hooks';

-- APIsWithText returns the APIs of an organisation whose definition has a text.
-- name: APIsWithText :many
SELECT id, definition FROM apis
WHERE org_id = @org_id AND position(@text::text IN definition::text) > 0 ORDER BY id COLLATE "C";

-- name: UpdatePortalObject :one
UPDATE portal_objects SET body = $3, version = version + 1, updated_at = now()
WHERE org_id = $1 AND kind = $2
RETURNING version;

-- name: CatalogueEntry :one
SELECT * FROM catalogue_entries WHERE org_id = $1 AND id = $2;

-- CatalogueEntryByPolicy returns the entry that offers a policy; of several one
-- that is shown, and then the first of the catalogue.
-- name: CatalogueEntryByPolicy :one
SELECT * FROM catalogue_entries WHERE org_id = $1 AND policy_id = $2
ORDER BY shown DESC, position, id LIMIT 1;

-- CatalogueEntries returns a whole catalogue in its order.
-- name: CatalogueEntries :many
SELECT * FROM catalogue_entries WHERE org_id = $1 ORDER BY position, id;

-- name: CountCatalogueEntries :one
SELECT count(*) FROM catalogue_entries
WHERE org_id = @org_id
    AND (@prefix::text = '' OR lower(name) LIKE @prefix)
    AND (@api_id::text = '' OR api_id = @api_id)
    AND (@policy_id::text = '' OR policy_id = @policy_id)
    AND (sqlc.narg('shown')::boolean IS NULL OR shown = sqlc.narg('shown'));

-- name: ListCatalogueEntries :many
SELECT * FROM catalogue_entries
WHERE org_id = @org_id
    AND (@prefix::text = '' OR lower(name) LIKE @prefix)
    AND (@api_id::text = '' OR api_id = @api_id)
    AND (@policy_id::text = '' OR policy_id = @policy_id)
    AND (sqlc.narg('shown')::boolean IS NULL OR shown = sqlc.narg('shown'))
ORDER BY position, id
LIMIT @max OFFSET @skip;

-- CountOffers counts the entries that developers see: those that are shown, and
-- whose API and policy are there and in use.
-- name: CountOffers :one
SELECT count(*) FROM catalogue_entries e
WHERE e.org_id = @org_id AND e.shown
    AND (@prefix::text = '' OR lower(e.name) LIKE @prefix)
    AND (@api::text = '' OR e.api_id = @api)
    AND (@policy::text = '' OR e.policy_id = @policy)
    AND (e.api_id = '' OR e.api_id IN (SELECT a.id FROM apis a WHERE a.org_id = @org_id))
    AND (e.policy_id = '' OR e.policy_id IN (SELECT p.id FROM policies p WHERE p.org_id = @org_id AND p.state = 'active'));

-- name: ListOffers :many
SELECT * FROM catalogue_entries e
WHERE e.org_id = @org_id AND e.shown
    AND (@prefix::text = '' OR lower(e.name) LIKE @prefix)
    AND (@api::text = '' OR e.api_id = @api)
    AND (@policy::text = '' OR e.policy_id = @policy)
    AND (e.api_id = '' OR e.api_id IN (SELECT a.id FROM apis a WHERE a.org_id = @org_id))
    AND (e.policy_id = '' OR e.policy_id IN (SELECT p.id FROM policies p WHERE p.org_id = @org_id AND p.state = 'active'))
ORDER BY e.position, e.id
LIMIT @max OFFSET @skip;

-- name: Offer :one
SELECT * FROM catalogue_entries e
WHERE e.org_id = @org_id AND e.id = @id AND e.shown
    AND (e.api_id = '' OR EXISTS (SELECT 1 FROM apis a WHERE a.id = e.api_id AND a.org_id = e.org_id))
    AND (e.policy_id = '' OR EXISTS (SELECT 1 FROM policies p WHERE p.id = e.policy_id AND p.org_id = e.org_id AND p.state = 'active'));

-- OfferedAPIs returns what developers may know of some APIs: auth is where credentials are
-- found, as members of a definition.
-- name: OfferedAPIs :many
SELECT a.id, a.name, a.domain, a.listen_path, a.kind, a.events,
    (coalesce(legible(a.definition) #>> '{x-svc-streaming,streams}', '{}') <> '{}')::boolean AS streams,
    json_build_object('auth', legible(a.definition) -> 'auth', 'auth_configs', legible(a.definition) -> 'auth_configs')::json AS auth
FROM apis a WHERE a.org_id = @org_id AND a.id = ANY(@ids::text[]);

-- OfferedPolicies returns those of some policies that there are.
-- name: OfferedPolicies :many
SELECT id, name, state, body FROM policies WHERE org_id = @org_id AND id = ANY(@ids::text[]);

-- CatalogueSize returns how many entries a catalogue has, how many bytes they are,
-- and where the next one goes.
-- name: CatalogueSize :one
SELECT count(*) AS entries, coalesce(sum(octet_length(body::text)), 0)::bigint AS bytes, (coalesce(max(position), -1) + 1)::integer AS next
FROM catalogue_entries WHERE org_id = $1;

-- InsertCatalogueEntries adds entries, each described at the same place of every
-- list.
-- name: InsertCatalogueEntries :exec
INSERT INTO catalogue_entries (id, org_id, position, name, api_id, policy_id, document, shown, body)
SELECT (@ids::text[])[i], @org_id, (@positions::integer[])[i], (@names::text[])[i], (@apis::text[])[i],
    (@policies::text[])[i], (@documents::text[])[i], (@shown::boolean[])[i], (@bodies::text[])[i]::json
FROM generate_subscripts(@ids::text[], 1) AS i;

-- UpdateCatalogueEntries replaces entries, each described at the same place of
-- every list.
-- name: UpdateCatalogueEntries :exec
UPDATE catalogue_entries e SET name = (@names::text[])[i], api_id = (@apis::text[])[i], policy_id = (@policies::text[])[i],
    document = (@documents::text[])[i], shown = (@shown::boolean[])[i], body = (@bodies::text[])[i]::json,
    position = (@positions::integer[])[i], version = e.version + 1, updated_at = now()
FROM generate_subscripts(@ids::text[], 1) AS i
WHERE e.org_id = @org_id AND e.id = (@ids::text[])[i];

-- MoveCatalogueEntries gives entries their places.
-- name: MoveCatalogueEntries :exec
UPDATE catalogue_entries e SET position = (@positions::integer[])[i]
FROM generate_subscripts(@ids::text[], 1) AS i
WHERE e.org_id = @org_id AND e.id = (@ids::text[])[i] AND e.position <> (@positions::integer[])[i];

-- name: DeleteCatalogueEntries :exec
DELETE FROM catalogue_entries WHERE org_id = @org_id AND id = ANY(@ids::text[]);

-- KnownPolicies returns which of some policies the organisation has.
-- name: KnownPolicies :many
SELECT id FROM policies WHERE org_id = @org_id AND id = ANY(@ids::text[]);

-- KnownDocuments returns which of some documents the organisation has.
-- name: KnownDocuments :many
SELECT id FROM documents WHERE org_id = @org_id AND id = ANY(@ids::text[]);
