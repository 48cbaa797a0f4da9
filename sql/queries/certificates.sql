-- PutCertificate adds a certificate. One that is there stays as it is, but for its
-- private key when one comes: it can only be the same, perhaps sealed anew. What
-- it claims comes with the key.
-- name: PutCertificate :exec
INSERT INTO certificates (org_id, sum, pem, sealed_key, claims) VALUES (@org_id, @sum, @pem, @sealed_key, @claims::text[])
ON CONFLICT (org_id, sum) DO UPDATE SET sealed_key = excluded.sealed_key, claims = excluded.claims
WHERE octet_length(excluded.sealed_key) > 0;

-- name: CertificateBySum :one
SELECT org_id, sum, pem, sealed_key, created_at, claims FROM certificates WHERE org_id = $1 AND sum = $2;

-- name: ListCertificates :many
SELECT org_id, sum, pem, sealed_key, created_at, claims FROM certificates WHERE org_id = $1 ORDER BY sum;

-- AllCertificates are those of every organisation: gateways serve them all.
-- name: AllCertificates :many
SELECT org_id, sum, pem, sealed_key, created_at, claims FROM certificates ORDER BY org_id, sum;

-- CertificatesUse is how many certificates an organisation has beside one, and how
-- large they are.
-- name: CertificatesUse :one
SELECT count(*) AS certificates, coalesce(sum(octet_length(pem) + octet_length(sealed_key)), 0)::bigint AS bytes
FROM certificates WHERE org_id = @org_id AND certificates.sum <> @beside;

-- UnclaimedCertificates are those of an older release.
-- name: UnclaimedCertificates :many
SELECT org_id, sum, pem, sealed_key, created_at, claims FROM certificates WHERE claims IS NULL ORDER BY org_id, sum;

-- name: ClaimCertificate :exec
UPDATE certificates SET claims = @claims::text[] WHERE org_id = @org_id AND sum = @sum;

-- RivalClaims are those of other organisations, of certificates that claim
-- something of a list.
-- name: RivalClaims :many
SELECT unnest(claims)::text FROM certificates WHERE org_id <> @org_id AND claims && @claims::text[];

-- name: DeleteCertificate :execrows
DELETE FROM certificates WHERE org_id = $1 AND sum = $2;
