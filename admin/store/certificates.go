package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Certificate is a stored certificate. Its private key is sealed, and empty if there is
// none.
type Certificate = db.Certificate

// kindCertificate names certificates in the audit log and in summaries of
// revisions. They have no history: they never change, and a rollback leaves them as they
// are.
const kindCertificate = "certificate"

// CertificateBySum returns an organisation's certificate.
func (s *Store) CertificateBySum(ctx context.Context, org, sum string) (Certificate, error) {
	row, err := s.queries.CertificateBySum(ctx, db.CertificateBySumParams{OrgID: org, Sum: sum})
	return row, translate(err)
}

// ListCertificates returns all certificates of an organisation, ordered by their
// sums.
func (s *Store) ListCertificates(ctx context.Context, org string) ([]Certificate, error) {
	rows, err := s.queries.ListCertificates(ctx, org)
	return rows, translate(err)
}

// AllCertificates returns the certificates of all organisations, ordered by their ids.
func (s *Store) AllCertificates(ctx context.Context) ([]Certificate, error) {
	rows, err := s.queries.AllCertificates(ctx)
	return rows, translate(err)
}

// NewCertificate is a certificate to be added.
type NewCertificate struct {
	Sum       string
	PEM       string
	SealedKey []byte   // nil: none
	Claims    []string // names that other organisations cannot use
	Entry     []byte   // entry of the audit log, as JSON
}

// PutCertificate adds a certificate to the author's organisation. One that exists gets
// the private key that comes with it, and otherwise stays as it is.
func (c *Change) PutCertificate(ctx context.Context, n NewCertificate) error {
	sealed, claims := n.SealedKey, n.Claims
	if sealed == nil {
		sealed = []byte{}
	}
	if claims == nil {
		claims = []string{}
	}
	err := c.q.PutCertificate(ctx, db.PutCertificateParams{OrgID: c.by.Org, Sum: n.Sum, Pem: n.PEM, SealedKey: sealed, Claims: claims})
	if err != nil {
		return err
	}
	return c.noteCertificate(ctx, created, n.Sum, nil, n.Entry)
}

// CertificatesBeside returns the number and the bytes of the certificates of the author's
// organisation, without the one with a sum.
func (c *Change) CertificatesBeside(ctx context.Context, sum string) (count int, bytes int64, err error) {
	row, err := c.q.CertificatesUse(ctx, db.CertificatesUseParams{OrgID: c.by.Org, Beside: sum})
	return int(row.Certificates), row.Bytes, err
}

// RivalClaims returns the claims of the certificates of other organisations that have one
// of the given claims.
func (c *Change) RivalClaims(ctx context.Context, some []string) ([]string, error) {
	return c.q.RivalClaims(ctx, db.RivalClaimsParams{OrgID: c.by.Org, Claims: some})
}

// UnclaimedCertificates returns the certificates of all organisations that a release
// without claims added.
func (c *Change) UnclaimedCertificates(ctx context.Context) ([]Certificate, error) {
	return c.q.UnclaimedCertificates(ctx)
}

// ClaimCertificate stores the claims of a certificate of any organisation.
func (c *Change) ClaimCertificate(ctx context.Context, of *Certificate, claims []string) error {
	return c.q.ClaimCertificate(ctx, db.ClaimCertificateParams{OrgID: of.OrgID, Sum: of.Sum, Claims: claims})
}

// DeleteCertificate removes a certificate of the author's organisation.
func (c *Change) DeleteCertificate(ctx context.Context, sum string) error {
	gone, err := c.q.DeleteCertificate(ctx, db.DeleteCertificateParams{OrgID: c.by.Org, Sum: sum})
	if err != nil {
		return err
	}
	if gone == 0 {
		return ErrNotFound
	}
	return c.noteCertificate(ctx, deleted, sum, nil, nil)
}

func (c *Change) noteCertificate(ctx context.Context, action, sum string, before, after []byte) error {
	id := c.by.Org + sum
	c.made = append(c.made, ObjectChange{kindCertificate, id, sum[:12], action})
	return audit(ctx, c.q, c.by, AuditEntry{Action: action, Kind: kindCertificate, ID: id, Before: before, After: after, Revision: c.revision})
}
