// Package certs keeps certificates for gateways. Private keys are sealed before
// they reach the database, and leave it for gateways alone.
package certs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/secret"
)

// Keeper keeps certificates in a store.
type Keeper struct {
	store *store.Store
	key   secret.Key
}

// New returns a keeper that seals private keys with key.
func New(s *store.Store, key secret.Key) *Keeper { return &Keeper{store: s, key: key} }

// Info is what is told of a certificate.
type Info = certs.Info

// Delivery is every certificate for gateways.
type Delivery = certs.Delivery

// Upload is what is sent to be kept.
type Upload struct {
	PEM string `json:"pem" doc:"certificate, those that lead to its authority, and perhaps its private key"`
}

// List is every certificate of an organisation.
type List struct {
	Certificates []Info `json:"certificates"`
}

// InvalidError says what is wrong with what was sent.
type InvalidError struct{ Cause error }

// Error says what is wrong.
func (e *InvalidError) Error() string { return "pem: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Cause }

// ConflictError says why a certificate cannot be beside those that there are:
// *certs.TakenError or *certs.FullError.
type ConflictError struct{ Cause error }

// Error says what is in the way.
func (e *ConflictError) Error() string { return "The certificate " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *ConflictError) Unwrap() error { return e.Cause }

// A Publisher runs a change of the configuration, of which gateways are told.
type Publisher func(ctx context.Context, change func(context.Context, *store.Change) error) error

// Add keeps a certificate. One that is kept already gets the private key that
// comes with it, sealed with the keeper's key, and never loses one. The error is
// *InvalidError when there is none in the PEM, and *ConflictError for a name that
// is another organisation's and for one certificate too many.
func (k *Keeper) Add(ctx context.Context, org string, up Upload, publish Publisher) (Info, error) {
	c, err := certs.Parse([]byte(up.PEM))
	if err != nil {
		return Info{}, &InvalidError{err}
	}
	info := c.Info(org)
	told, err := json.Marshal(info)
	if err != nil {
		return Info{}, fmt.Errorf("telling of a certificate: %w", err)
	}
	sealed, err := k.seal(c, org)
	if err != nil {
		return Info{}, err
	}
	n := store.NewCertificate{Sum: c.Sum, PEM: string(c.PublicPEM()), SealedKey: sealed, Claims: c.Claims(c.Key != nil), Told: told}
	return info, publish(ctx, func(ctx context.Context, change *store.Change) error {
		if err := admit(ctx, change, c, len(n.PEM)+len(sealed)); err != nil {
			return err
		}
		return change.PutCertificate(ctx, n)
	})
}

// admit refuses a certificate with a name of another organisation's, and one too
// many. Changes follow one another, so that nobody comes in between.
func admit(ctx context.Context, change *store.Change, c *certs.Certificate, size int) error {
	count, bytes, err := change.CertificatesBeside(ctx, c.Sum)
	if err != nil {
		return err
	}
	if err := certs.Room(count, bytes, size); err != nil {
		return &ConflictError{err}
	}
	rivals := c.Rivals()
	if len(rivals) == 0 {
		return nil
	}
	if err := claimOlder(ctx, change); err != nil {
		return err
	}
	taken, err := change.RivalClaims(ctx, rivals)
	if err != nil {
		return err
	}
	if err := c.Taken(taken); err != nil {
		return &ConflictError{err}
	}
	return nil
}

// claimOlder notes what certificates claim that an older release has added.
func claimOlder(ctx context.Context, change *store.Change) error {
	rows, err := change.UnclaimedCertificates(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		claims := []string{}
		if c, err := certs.Parse([]byte(rows[i].Pem)); err == nil { // else no gateway shows it either
			claims = c.Claims(len(rows[i].SealedKey) > 0)
		}
		if err := change.ClaimCertificate(ctx, &rows[i], claims); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) seal(c *certs.Certificate, org string) ([]byte, error) {
	key, err := c.KeyPEM()
	if err != nil || key == nil {
		return nil, err
	}
	return k.key.Seal(key, place(org, c.Sum))
}

// place is what a sealed key belongs to.
func place(org, sum string) []byte { return []byte("certificates " + org + " " + sum + " sealed_key") }

// Get tells of a certificate, or returns store.ErrNotFound.
func (k *Keeper) Get(ctx context.Context, org, id string) (Info, error) {
	sum, err := sumOf(org, id)
	if err != nil {
		return Info{}, err
	}
	row, err := k.store.CertificateBySum(ctx, org, sum)
	if err != nil {
		return Info{}, err
	}
	return infoOf(&row)
}

// List tells of all certificates of an organisation, ordered by their ids.
func (k *Keeper) List(ctx context.Context, org string) (*List, error) {
	rows, err := k.store.ListCertificates(ctx, org)
	if err != nil {
		return nil, err
	}
	list := &List{Certificates: make([]Info, 0, len(rows))}
	for i := range rows {
		info, err := infoOf(&rows[i])
		if err != nil {
			return nil, err
		}
		list.Certificates = append(list.Certificates, info)
	}
	return list, nil
}

func infoOf(row *store.Certificate) (Info, error) {
	c, err := certs.Parse([]byte(row.Pem))
	if err != nil {
		return Info{}, fmt.Errorf("reading the stored certificate %s: %w", row.OrgID+row.Sum, err)
	}
	info := c.Info(row.OrgID)
	info.HasPrivate = len(row.SealedKey) > 0
	return info, nil
}

// Delete forgets a certificate, or returns store.ErrNotFound.
func (k *Keeper) Delete(ctx context.Context, org, id string, publish Publisher) error {
	sum, err := sumOf(org, id)
	if err != nil {
		return err
	}
	return publish(ctx, func(ctx context.Context, change *store.Change) error { return change.DeleteCertificate(ctx, sum) })
}

// sumOf returns the sum in an id of the organisation's.
func sumOf(org, id string) (string, error) {
	of, sum, ok := certs.SplitID(id)
	if !ok || of != org {
		return "", store.ErrNotFound
	}
	return sum, nil
}

// Deliver returns every certificate for gateways, as a Delivery, and its
// entity tag. Private keys are left out without keys, and counted.
func (k *Keeper) Deliver(ctx context.Context, keys bool) (body []byte, etag string, err error) {
	rows, err := k.store.AllCertificates(ctx)
	if err != nil {
		return nil, "", err
	}
	all := Delivery{Certificates: make([]certs.Delivered, 0, len(rows))}
	for _, row := range rows {
		one := certs.Delivered{ID: row.OrgID + row.Sum, PEM: row.Pem}
		switch {
		case len(row.SealedKey) == 0:
		case !keys:
			all.KeysHeld++
		default:
			key, err := k.key.Open(row.SealedKey, place(row.OrgID, row.Sum))
			if err != nil {
				return nil, "", fmt.Errorf("admin.master_key: the private key of certificate %s cannot be opened; set the key that it was sealed with, or add the certificate with its private key again: %w", one.ID, err)
			}
			one.Key = string(key)
		}
		all.Certificates = append(all.Certificates, one)
	}
	if body, err = json.Marshal(all); err != nil {
		return nil, "", fmt.Errorf("encoding certificates: %w", err)
	}
	sum := sha256.Sum256(body)
	return body, `"` + hex.EncodeToString(sum[:8]) + `"`, nil
}
