package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Certificate is a stored certificate. Its key is sealed by who stores it, and
// empty when there is none.
type Certificate = db.Certificate

// kindCertificate names certificates in the audit log and in summaries of
// revisions. They have no history: one never changes, and a rollback leaves them
// as they are.
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

// AllCertificates returns those of every organisation, ordered by their ids.
func (s *Store) AllCertificates(ctx context.Context) ([]Certificate, error) {
	rows, err := s.queries.AllCertificates(ctx)
	return rows, translate(err)
}

// PutCertificate adds a certificate to the author's organisation. One that is
// there gets the key that comes with it, and else stays as it is. told is what the
// audit log says of it, as JSON.
func (c *Change) PutCertificate(ctx context.Context, sum, pem string, sealedKey, told []byte) error {
	if sealedKey == nil {
		sealedKey = []byte{}
	}
	err := c.q.PutCertificate(ctx, db.PutCertificateParams{OrgID: c.by.Org, Sum: sum, Pem: pem, SealedKey: sealedKey})
	if err != nil {
		return err
	}
	return c.noteCertificate(ctx, created, sum, nil, told)
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
	return audit(ctx, c.q, c.by, Deed{Action: action, Kind: kindCertificate, ID: id, Before: before, After: after, Revision: c.revision})
}
