package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/certs"
)

const noCertificate = "Certificate does not exist"

func (s *Server) certificateRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/certs", Summary: "List certificates; private keys are not shown", Tag: "Certificates", Role: rest.Viewer, Gateway: true,
			Reply: certificateList{}, Handle: s.listCertificates,
		},
		{
			Method: "POST", Path: "/api/certs", Summary: "Add a certificate, with or without its private key", Tag: "Certificates", Role: rest.Editor, Gateway: true,
			Body: certificateUpload{}, Reply: rest.Envelope{}, Status: 201, Wrong: []int{400, 409, 413, 415}, Handle: s.addCertificate,
		},
		{
			Method: "GET", Path: "/api/certs/{id}", Summary: "Tell of a certificate", Tag: "Certificates", Role: rest.Viewer, Gateway: true,
			Reply: certs.Info{}, Wrong: []int{404}, Handle: s.getCertificate,
		},
		{
			Method: "DELETE", Path: "/api/certs/{id}", Summary: "Delete a certificate; nobody is let in by it any more", Tag: "Certificates", Role: rest.Editor, Gateway: true,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.deleteCertificate,
		},
		{
			Method: "GET", Path: "/api/gateway/certs", Summary: "Take all certificates, for a gateway; with keys=true, private keys too", Tag: "Gateways", Role: rest.Gateway,
			Query: []string{"keys"}, Reply: certs.Delivery{}, Handle: s.deliverCertificates,
		},
	}
}

// certificateUpload is the body of a call that adds a certificate.
type certificateUpload struct {
	// Certificate in PEM form, followed by those that lead to its authority and, if gateways are to
	// show it, its private key.
	PEM string `json:"pem"`
}

// certificateList is every certificate of an organisation.
type certificateList struct {
	// All certificates of the organisation, without their private keys.
	Certificates []certs.Info `json:"certificates"`
}

func (s *Server) listCertificates(ctx context.Context, c *rest.Call) (any, error) {
	rows, err := s.deps.Store.ListCertificates(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	list := &certificateList{Certificates: make([]certs.Info, 0, len(rows))}
	for i := range rows {
		info, err := certificateInfo(&rows[i])
		if err != nil {
			return nil, err
		}
		list.Certificates = append(list.Certificates, info)
	}
	return list, nil
}

func (s *Server) getCertificate(ctx context.Context, c *rest.Call) (any, error) {
	sum, err := s.certificateSum(ctx, c)
	if err != nil {
		return nil, err
	}
	row, err := s.deps.Store.CertificateBySum(ctx, c.Who.Org, sum)
	if err != nil {
		return nil, rest.Missing(err, noCertificate)
	}
	return certificateInfo(&row)
}

func certificateInfo(row *store.Certificate) (certs.Info, error) {
	c, err := certs.Parse([]byte(row.Pem))
	if err != nil {
		return certs.Info{}, fmt.Errorf("reading the stored certificate %s: %w", row.OrgID+row.Sum, err)
	}
	return c.Info(row.OrgID, len(row.SealedKey) > 0), nil
}

// certificateSum returns the SHA-256 in the id that the path of a call holds. The call is
// about the organisation in the id, unless the caller may not act for that.
func (s *Server) certificateSum(ctx context.Context, c *rest.Call) (string, error) {
	org, sum, ok := certs.SplitID(c.Param("id"))
	if ok && org != c.Who.Org {
		var err error
		if ok, err = s.mayActFor(ctx, c, org); err != nil {
			return "", err
		}
	}
	if !ok {
		return "", rest.NotFound(noCertificate)
	}
	c.Who.Org = org
	return sum, nil
}

// addCertificate stores a certificate. One that is stored already gets the private key
// that comes with it, and never loses one.
func (s *Server) addCertificate(ctx context.Context, c *rest.Call) (any, error) {
	var up certificateUpload
	if err := c.Decode(&up); err != nil {
		return nil, err
	}
	cert, err := certs.Parse([]byte(up.PEM))
	if err != nil {
		problem := "pem: " + err.Error()
		return nil, rest.BadRequest("Validation failed: "+problem, problem)
	}
	info := cert.Info(c.Who.Org, cert.Key != nil)
	entry, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("writing a certificate for the audit log: %w", err)
	}
	sealed, err := s.sealCertificateKey(cert, c.Who.Org)
	if err != nil {
		return nil, err
	}
	n := store.NewCertificate{Sum: cert.Sum, PEM: string(cert.PublicPEM()), SealedKey: sealed, Claims: cert.Claims(cert.Key != nil), Entry: entry}
	_, err = s.deps.Store.CertificateBySum(ctx, c.Who.Org, cert.Sum)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		if err := checkCertificate(ctx, change, cert, len(n.PEM)+len(sealed)); err != nil {
			return err
		}
		return change.PutCertificate(ctx, n)
	})
	if err != nil {
		return nil, err
	}
	if known {
		c.AnswerWith(fasthttp.StatusOK)
	}
	answer := rest.Done("Certificate added", info)
	answer.ID = info.ID
	return answer, nil
}

// checkCertificate refuses a certificate with a name that another organisation has, and
// one more than an organisation may have. Changes of the configuration run one after
// another, so that what is checked here still holds when the change is committed.
func checkCertificate(ctx context.Context, change *store.Change, c *certs.Certificate, size int) error {
	count, bytes, err := change.CertificatesBeside(ctx, c.Sum)
	if err != nil {
		return err
	}
	if err := certs.CheckCapacity(count, bytes, size); err != nil {
		return rest.Refuse(fasthttp.StatusConflict, "The certificate "+err.Error())
	}
	rivals := c.Rivals()
	if len(rivals) == 0 {
		return nil
	}
	if err := claimOlderCertificates(ctx, change); err != nil {
		return err
	}
	taken, err := change.RivalClaims(ctx, rivals)
	if err != nil {
		return err
	}
	if err := c.Taken(taken); err != nil {
		return rest.Refuse(fasthttp.StatusConflict, "The certificate "+err.Error())
	}
	return nil
}

// claimOlderCertificates stores the claims of certificates that a release added which
// did not store claims.
func claimOlderCertificates(ctx context.Context, change *store.Change) error {
	rows, err := change.UnclaimedCertificates(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		claims := []string{}
		if c, err := certs.Parse([]byte(rows[i].Pem)); err == nil { // no gateway serves one that cannot be parsed
			claims = c.Claims(len(rows[i].SealedKey) > 0)
		}
		if err := change.ClaimCertificate(ctx, &rows[i], claims); err != nil {
			return err
		}
	}
	return nil
}

// sealCertificateKey returns the private key of a certificate as it is stored; nil for
// none.
func (s *Server) sealCertificateKey(c *certs.Certificate, org string) ([]byte, error) {
	key, err := c.KeyPEM()
	if err != nil || key == nil {
		return nil, err
	}
	return s.deps.MasterKey.Seal(key, certificatePlace(org, c.Sum))
}

// certificatePlace is the additional data that a private key is sealed with.
func certificatePlace(org, sum string) []byte {
	return []byte("certificates " + org + " " + sum + " sealed_key")
}

func (s *Server) deleteCertificate(ctx context.Context, c *rest.Call) (any, error) {
	sum, err := s.certificateSum(ctx, c)
	if err != nil {
		return nil, err
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error { return change.DeleteCertificate(ctx, sum) })
	if err != nil {
		return nil, rest.Missing(err, noCertificate)
	}
	return rest.Done("Certificate deleted", nil), nil
}

func (s *Server) deliverCertificates(ctx context.Context, c *rest.Call) (any, error) {
	body, err := s.certificates(ctx, c.Flag("keys"))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	etag := `"` + hex.EncodeToString(sum[:8]) + `"`
	c.HTTP.Response.Header.Set(fasthttp.HeaderETag, etag)
	if string(c.HTTP.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)) == etag {
		c.HTTP.Response.SetStatusCode(fasthttp.StatusNotModified)
		return nil, nil
	}
	return json.RawMessage(body), nil
}

// Certificates returns the certificates of all organisations with their private keys, a
// certs.Delivery as JSON.
func (s *Server) Certificates(ctx context.Context) ([]byte, error) { return s.certificates(ctx, true) }

// certificates is Certificates. Without keys, private keys are left out and counted.
func (s *Server) certificates(ctx context.Context, keys bool) ([]byte, error) {
	rows, err := s.certificateRows(ctx)
	if err != nil {
		return nil, err
	}
	all := certs.Delivery{Certificates: make([]certs.Delivered, 0, len(rows))}
	for _, row := range rows {
		one := certs.Delivered{ID: row.OrgID + row.Sum, PEM: row.Pem}
		switch {
		case len(row.SealedKey) == 0:
		case !keys:
			all.KeysHeld++
		default:
			key, err := s.deps.MasterKey.Open(row.SealedKey, certificatePlace(row.OrgID, row.Sum))
			if err != nil {
				return nil, fmt.Errorf("admin.master_key: the private key of certificate %s cannot be opened; set the key that it was sealed with, or add the certificate with its private key again: %w", one.ID, err)
			}
			one.Key = string(key)
		}
		all.Certificates = append(all.Certificates, one)
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding certificates: %w", err)
	}
	return body, nil
}
