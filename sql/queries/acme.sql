-- name: ACMEEntry :one
SELECT sealed_value FROM acme_entries WHERE name = @name AND (expires_at IS NULL OR expires_at > now());

-- name: ACMECertificates :many
SELECT name, sealed_value FROM acme_entries
WHERE name LIKE '%.certificate.%' AND (expires_at IS NULL OR expires_at > now()) ORDER BY name;

-- PutACMEEntry stores an entry, unless there are too many others. Zero seconds: it does not
-- expire.
-- name: PutACMEEntry :execrows
INSERT INTO acme_entries (name, sealed_value, expires_at)
SELECT @name, @sealed_value, CASE WHEN @seconds::bigint > 0 THEN now() + make_interval(secs => @seconds::bigint) END
WHERE (SELECT count(*) FROM acme_entries others WHERE others.name <> @name) < @most::bigint
ON CONFLICT (name) DO UPDATE SET sealed_value = excluded.sealed_value, expires_at = excluded.expires_at;

-- name: DeleteACMEEntry :exec
DELETE FROM acme_entries WHERE name = @name;

-- name: DeleteExpiredACMEEntries :exec
DELETE FROM acme_entries WHERE expires_at <= now();

-- TakeACMELease returns no row while another attempt has the lease.
-- name: TakeACMELease :one
INSERT INTO acme_leases AS lease (name, holder, until)
SELECT @name, @holder, now() + make_interval(secs => @seconds::bigint)
WHERE (SELECT count(*) FROM acme_leases others WHERE others.name <> @name) < @most::bigint
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE lease.until <= now()
RETURNING failures;

-- SettleACMELease ends an attempt. The next one may begin after some seconds.
-- name: SettleACMELease :execrows
UPDATE acme_leases SET until = now() + make_interval(secs => @seconds::bigint), failures = @failures, error = @error
WHERE name = @name AND holder = @holder;

-- name: DeleteOldACMELeases :exec
DELETE FROM acme_leases WHERE until < now() - interval '30 days';

-- name: ACMEFailures :many
SELECT name, until, failures, error FROM acme_leases WHERE failures > 0 ORDER BY name;

-- ForgetACMECertificates removes the certificates of a domain, whichever authority issued
-- them: names of entries begin with 17 bytes for the authority.
-- name: ForgetACMECertificates :execrows
DELETE FROM acme_entries WHERE substr(name, 18) = 'certificate.' || @domain::text;

-- name: ForgetACMELeases :execrows
DELETE FROM acme_leases WHERE substr(name, 18) = 'certificate.' || @domain::text;
