package store

import (
	"context"
	"errors"

	"github.com/sluicegate/sluice/admin/store/db"
)

// maxACME bounds the entries and the leases of ACME that are stored.
const maxACME = 2000

// ErrFull means that no more of a kind are stored.
var ErrFull = errors.New("there are too many already")

// ACMEEntry returns the sealed value of an entry.
func (s *Store) ACMEEntry(ctx context.Context, name string) ([]byte, error) {
	sealed, err := s.queries.ACMEEntry(ctx, name)
	return sealed, translate(err)
}

// ACMECertificates returns the entries that are certificates, ordered by name.
func (s *Store) ACMECertificates(ctx context.Context) ([]db.ACMECertificatesRow, error) {
	rows, err := s.queries.ACMECertificates(ctx)
	return rows, translate(err)
}

// PutACMEEntry stores an entry, and forgets those that have expired. Zero seconds: the entry
// does not expire. The error is ErrFull beyond the limit.
func (s *Store) PutACMEEntry(ctx context.Context, name string, sealed []byte, seconds int64) error {
	if err := s.queries.DeleteExpiredACMEEntries(ctx); err != nil {
		return translate(err)
	}
	n, err := s.queries.PutACMEEntry(ctx, db.PutACMEEntryParams{Name: name, SealedValue: sealed, Seconds: seconds, Most: maxACME})
	if err == nil && n == 0 {
		return ErrFull
	}
	return translate(err)
}

// DeleteACMEEntry removes an entry. It is no error if there is none.
func (s *Store) DeleteACMEEntry(ctx context.Context, name string) error {
	return translate(s.queries.DeleteACMEEntry(ctx, name))
}

// TakeACMELease gives a lease to a holder for some seconds, and returns how many attempts
// failed before. It is not granted while another holder has it.
func (s *Store) TakeACMELease(ctx context.Context, name, holder string, seconds int64) (failures int32, granted bool, err error) {
	if err := s.queries.DeleteOldACMELeases(ctx); err != nil {
		return 0, false, translate(err)
	}
	failures, err = s.queries.TakeACMELease(ctx, db.TakeACMELeaseParams{Name: name, Holder: holder, Seconds: seconds, Most: maxACME})
	if err = translate(err); errors.Is(err, ErrNotFound) {
		return 0, false, nil
	}
	return failures, err == nil, err
}

// An ACMEOutcome is how an attempt to obtain a certificate ended.
type ACMEOutcome struct {
	Seconds  int64 // until the next attempt may begin
	Failures int32 // attempts that failed one after another; 0: this one did not
	Error    string
	Name     string // of the lease
	Holder   string
}

// SettleACMELease ends an attempt. It returns ErrNotFound if the lease has passed to another.
func (s *Store) SettleACMELease(ctx context.Context, o ACMEOutcome) error {
	n, err := s.queries.SettleACMELease(ctx, db.SettleACMELeaseParams(o))
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return translate(err)
}

// ACMEFailures returns the leases whose last attempt failed, ordered by name.
func (s *Store) ACMEFailures(ctx context.Context) ([]db.ACMEFailuresRow, error) {
	rows, err := s.queries.ACMEFailures(ctx)
	return rows, translate(err)
}

// ForgetACME removes the certificates and the failures of a domain. It returns ErrNotFound if
// the domain has neither.
func (s *Store) ForgetACME(ctx context.Context, domain string) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		certificates, err := q.ForgetACMECertificates(ctx, domain)
		if err != nil {
			return err
		}
		leases, err := q.ForgetACMELeases(ctx, domain)
		if err == nil && certificates+leases == 0 {
			return ErrNotFound
		}
		return err
	})
}
