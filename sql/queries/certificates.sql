-- PutCertificate adds a certificate. One that is there stays as it is, but for its
-- private key when one comes: it can only be the same, perhaps sealed anew.
-- name: PutCertificate :exec
INSERT INTO certificates (org_id, sum, pem, sealed_key) VALUES ($1, $2, $3, $4)
ON CONFLICT (org_id, sum) DO UPDATE SET sealed_key = excluded.sealed_key
WHERE octet_length(excluded.sealed_key) > 0;

-- name: CertificateBySum :one
SELECT org_id, sum, pem, sealed_key, created_at FROM certificates WHERE org_id = $1 AND sum = $2;

-- name: ListCertificates :many
SELECT org_id, sum, pem, sealed_key, created_at FROM certificates WHERE org_id = $1 ORDER BY sum;

-- AllCertificates are those of every organisation: gateways serve them all.
-- name: AllCertificates :many
SELECT org_id, sum, pem, sealed_key, created_at FROM certificates ORDER BY org_id, sum;

-- name: DeleteCertificate :execrows
DELETE FROM certificates WHERE org_id = $1 AND sum = $2;
