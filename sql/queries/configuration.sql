-- name: ConfigState :one
SELECT revision, generation, clears, secrets FROM config_state;

-- BumpRevision numbers a change of configuration and announces it on commit. It
-- comes first in a transaction: writers wait for one another here.
-- name: BumpRevision :one
SELECT bump_revision()::bigint AS revision;

-- name: BumpGeneration :one
SELECT bump_generation()::bigint AS generation;

-- BumpClears counts a time that kept answers are to be forgotten, and announces it
-- on commit.
-- name: BumpClears :one
SELECT bump_clears()::bigint AS clears;

-- name: PutClear :exec
INSERT INTO cache_clears (api_id, clear) VALUES ($1, $2)
ON CONFLICT (api_id) DO UPDATE SET clear = excluded.clear;

-- name: ListClears :many
SELECT api_id, clear FROM cache_clears;

-- name: InsertRevision :exec
INSERT INTO config_revisions (revision, org_id, author, source, reason, summary)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: InsertHistory :exec
INSERT INTO config_history (org_id, kind, id, revision, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (org_id, kind, id, revision) DO UPDATE SET body = excluded.body;

-- name: CountRevisions :one
SELECT count(*) FROM config_revisions WHERE org_id = $1;

-- name: ListRevisions :many
SELECT * FROM config_revisions WHERE org_id = @org_id ORDER BY revision DESC LIMIT @max OFFSET @skip;

-- name: RevisionByNumber :one
SELECT * FROM config_revisions WHERE org_id = $1 AND revision = $2;

-- RevisionBefore returns the last earlier revision of the organisation.
-- name: RevisionBefore :one
SELECT coalesce(max(revision), 0)::bigint FROM config_revisions WHERE org_id = $1 AND revision < $2;

-- ObjectsAt returns an organisation's configuration as it was at a revision.
-- name: ObjectsAt :many
SELECT kind, id, body FROM (
    SELECT DISTINCT ON (h.kind, h.id) h.kind, h.id, h.body
    FROM config_history h
    WHERE h.org_id = @org_id AND h.revision <= @revision
    ORDER BY h.kind, h.id, h.revision DESC
) newest
WHERE body IS NOT NULL
ORDER BY kind, id;

-- ChangedBetween returns the objects that a revision after the first and up to
-- the last touched, with what they were at either end; null is absent.
-- name: ChangedBetween :many
SELECT t.kind, t.id,
    (SELECT h.body FROM config_history h WHERE h.org_id = @org_id AND h.kind = t.kind AND h.id = t.id
        AND h.revision <= @first ORDER BY h.revision DESC LIMIT 1) AS before,
    (SELECT h.body FROM config_history h WHERE h.org_id = @org_id AND h.kind = t.kind AND h.id = t.id
        AND h.revision <= @last ORDER BY h.revision DESC LIMIT 1) AS after
FROM (
    SELECT DISTINCT c.kind, c.id FROM config_history c
    WHERE c.org_id = @org_id AND c.revision > @first AND c.revision <= @last
) t
ORDER BY t.kind, t.id;

-- AnyAPIEver reports whether an API was ever defined here. Without one, an empty
-- configuration is more likely the wrong database than a wish.
-- name: AnyAPIEver :one
SELECT EXISTS (SELECT 1 FROM config_history WHERE kind = 'api');

-- BundleAPIs returns all APIs, by the bytes of their ids.
-- name: BundleAPIs :many
SELECT id, definition FROM apis ORDER BY id COLLATE "C";

-- BundlePolicies returns all policies, by the bytes of their ids.
-- name: BundlePolicies :many
SELECT id, body FROM policies ORDER BY id COLLATE "C";

-- ChangedSince returns the objects that a revision after this one touched.
-- name: ChangedSince :many
SELECT DISTINCT kind, id FROM config_history WHERE revision > $1;

-- BundleAPIsByID returns those of the APIs that there are.
-- name: BundleAPIsByID :many
SELECT id, definition FROM apis WHERE id = ANY(@ids::text[]);

-- BundlePoliciesByID returns those of the policies that there are.
-- name: BundlePoliciesByID :many
SELECT id, body FROM policies WHERE id = ANY(@ids::text[]);

-- name: APIByID :one
SELECT * FROM apis WHERE org_id = $1 AND id = $2;

-- APIsOf returns all APIs of an organisation.
-- name: APIsOf :many
SELECT * FROM apis WHERE org_id = $1;

-- PoliciesOf returns all policies of an organisation.
-- name: PoliciesOf :many
SELECT * FROM policies WHERE org_id = $1;

-- APIsTaken returns who holds an id or a route already.
-- name: APIsTaken :many
SELECT id, org_id, name FROM apis
WHERE id = @id OR (@routed::boolean AND routed AND domain = @domain AND listen_path = @listen_path);

-- name: InsertAPI :exec
INSERT INTO apis (id, org_id, name, domain, listen_path, routed, definition, sync_seconds, secrets, events, subgraphs)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: UpdateAPI :one
UPDATE apis SET name = $3, domain = $4, listen_path = $5, routed = $6, definition = $7, sync_seconds = $8, secrets = $9, events = $10, subgraphs = $11,
    version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2
RETURNING version;

-- name: DeleteAPI :exec
DELETE FROM apis WHERE org_id = $1 AND id = $2;

-- SupergraphsOf returns the supergraphs that are composed of one of some APIs.
-- name: SupergraphsOf :many
SELECT id, name, subgraphs FROM apis
WHERE org_id = @org_id AND subgraphs <> '{}' AND subgraphs && @apis::text[]
ORDER BY name, id;

-- KnownAPIs returns which of some APIs the organisation has.
-- name: KnownAPIs :many
SELECT id FROM apis WHERE org_id = @org_id AND id = ANY(@ids::text[]);

-- name: CountAPIs :one
SELECT count(*) FROM apis
WHERE org_id = @org_id
    AND (@search::text = '' OR position(lower(@search) IN lower(name)) > 0 OR id = @search);

-- name: ListAPIs :many
SELECT * FROM apis
WHERE org_id = @org_id
    AND (@search::text = '' OR position(lower(@search) IN lower(name)) > 0 OR id = @search)
ORDER BY
    CASE WHEN @sort::text = 'name' THEN name END,
    CASE WHEN @sort = '-name' THEN name END DESC,
    CASE WHEN @sort = 'created_at' THEN created_at WHEN @sort = 'updated_at' THEN updated_at END,
    CASE WHEN @sort = '-created_at' THEN created_at WHEN @sort = '-updated_at' THEN updated_at END DESC,
    id
LIMIT sqlc.narg('max') OFFSET @skip;

-- name: PolicyByID :one
SELECT * FROM policies WHERE org_id = $1 AND id = $2;

-- name: PolicyTaken :many
SELECT id, org_id, name FROM policies WHERE id = @id OR (org_id = @org_id AND name = @name);

-- name: InsertPolicy :exec
INSERT INTO policies (id, org_id, name, state, apis, body) VALUES ($1, $2, $3, $4, $5, $6);

-- RestorePolicy puts back what a rollback took away, as a further version of it.
-- name: RestorePolicy :exec
INSERT INTO policies (id, org_id, name, state, apis, body, version, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: UpdatePolicy :one
UPDATE policies SET name = $3, state = $4, apis = $5, body = $6, version = version + 1, updated_at = now()
WHERE org_id = $1 AND id = $2
RETURNING version;

-- name: DeletePolicy :exec
DELETE FROM policies WHERE org_id = $1 AND id = $2;

-- PoliciesNaming returns the policies that name an API.
-- name: PoliciesNaming :many
SELECT id, name FROM policies WHERE org_id = @org_id AND apis @> ARRAY[@api::text] ORDER BY name;

-- name: PoliciesByID :many
SELECT body FROM policies WHERE org_id = @org_id AND id = ANY(@ids::text[]);

-- name: CountPolicies :one
SELECT count(*) FROM policies
WHERE org_id = @org_id
    AND (@search::text = '' OR position(lower(@search) IN lower(name)) > 0 OR id = @search)
    AND (@state::text = '' OR state = @state)
    AND (@api::text = '' OR apis @> ARRAY[@api])
    AND (cardinality(@ids::text[]) = 0 OR id = ANY(@ids));

-- name: ListPolicies :many
SELECT * FROM policies
WHERE org_id = @org_id
    AND (@search::text = '' OR position(lower(@search) IN lower(name)) > 0 OR id = @search)
    AND (@state::text = '' OR state = @state)
    AND (@api::text = '' OR apis @> ARRAY[@api])
    AND (cardinality(@ids::text[]) = 0 OR id = ANY(@ids))
ORDER BY
    CASE WHEN @sort::text = 'name' THEN name END,
    CASE WHEN @sort = '-name' THEN name END DESC,
    CASE WHEN @sort = 'created_at' THEN created_at WHEN @sort = 'updated_at' THEN updated_at END,
    CASE WHEN @sort = '-created_at' THEN created_at WHEN @sort = '-updated_at' THEN updated_at END DESC,
    id
LIMIT sqlc.narg('max') OFFSET @skip;

-- CountObjectHistory counts the revisions that touched an object.
-- name: CountObjectHistory :one
SELECT count(*) FROM config_history WHERE org_id = @org_id AND kind = @kind AND id = @id;

-- ObjectHistory returns the revisions that touched an object, newest first, with what it
-- was before and after each; null is absent.
-- name: ObjectHistory :many
SELECT h.revision, r.author, r.source, r.reason, r.created_at, h.body AS after,
    (SELECT b.body FROM config_history b WHERE b.org_id = h.org_id AND b.kind = h.kind AND b.id = h.id
        AND b.revision < h.revision ORDER BY b.revision DESC LIMIT 1) AS before
FROM config_history h JOIN config_revisions r ON r.revision = h.revision
WHERE h.org_id = @org_id AND h.kind = @kind AND h.id = @id
ORDER BY h.revision DESC LIMIT @max OFFSET @skip;

-- ValueHistory returns the newest revisions up to one that touched an object, each with the
-- digest of a part of the object after it; '' is an absent part.
-- name: ValueHistory :many
SELECT h.revision, r.author, r.source, r.reason, r.created_at,
    coalesce(md5((h.body #> @path::text[])::text), '')::text AS value
FROM config_history h JOIN config_revisions r ON r.revision = h.revision
WHERE h.org_id = @org_id AND h.kind = @kind AND h.id = @id AND h.revision <= @until
ORDER BY h.revision DESC LIMIT @max;
