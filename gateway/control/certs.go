package control

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/valyala/fasthttp"
)

// Certificates stores the certificates that definitions refer to and that clients see.
type Certificates interface {
	// List returns all certificates of an organisation ordered by id, or with "" all
	// that the caller may see.
	List(ctx context.Context, org string) ([]certs.Info, error)

	// Add stores a certificate and returns its id.
	Add(ctx context.Context, org string, text []byte) (id string, err error)

	// Get returns a certificate, or ErrNotFound.
	Get(ctx context.Context, id string) (certs.Info, error)

	// Delete removes a certificate, or returns ErrNotFound.
	Delete(ctx context.Context, id string) error
}

// certificateAdded is the response to an added certificate.
type certificateAdded struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func (a *API) listCertificates(ctx context.Context, c *call) (any, error) {
	mode := c.query["mode"]
	if mode != "" && mode != "detailed" {
		return nil, refuse(fasthttp.StatusBadRequest, `Query parameter "mode" must be detailed, or be left out`)
	}
	list, err := a.deps.Certificates.List(ctx, c.query["org_id"])
	if err != nil {
		return nil, err
	}
	if mode == "detailed" {
		return map[string][]certs.Info{"certs": list}, nil
	}
	ids := make([]string, 0, len(list))
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return map[string][]string{"certs": ids}, nil
}

func (a *API) addCertificate(ctx context.Context, c *call) (any, error) {
	org := c.query["org_id"]
	if org != "" && !definition.ValidID(org) {
		return nil, refuse(fasthttp.StatusBadRequest, `Query parameter "org_id" must be the id of an organisation: letters, digits, "-", "_" and "."`)
	}
	text, err := c.body()
	if err != nil {
		return nil, err
	}
	if _, err := certs.Parse(text); err != nil {
		return nil, refuse(fasthttp.StatusForbidden, "The certificate "+err.Error())
	}
	id, err := a.deps.Certificates.Add(ctx, org, text)
	if err != nil {
		return nil, err
	}
	return &certificateAdded{ID: id, Status: "ok", Message: "Certificate added"}, nil
}

func (a *API) getCertificate(ctx context.Context, c *call) (any, error) {
	info, err := a.deps.Certificates.Get(ctx, c.id)
	if err != nil {
		return nil, noCertificate(err)
	}
	return info, nil
}

func (a *API) deleteCertificate(ctx context.Context, c *call) (any, error) {
	if err := a.deps.Certificates.Delete(ctx, c.id); err != nil {
		return nil, noCertificate(err)
	}
	return &outcome{Status: "ok", Message: "Certificate removed"}, nil
}

func noCertificate(err error) error {
	if errors.Is(err, ErrNotFound) {
		return refuse(fasthttp.StatusNotFound, "Certificate not found")
	}
	return err
}

const certsPath = "/api/certs"

// adminCertificates are the certificates that the admin stores.
type adminCertificates struct{ *Admin }

// Certificates returns the certificates that the admin stores.
func (a *Admin) Certificates() Certificates { return adminCertificates{a} }

// List implements Certificates.
func (c adminCertificates) List(ctx context.Context, org string) ([]certs.Info, error) {
	orgs, err := c.orgs(ctx, org)
	if err != nil {
		return nil, err
	}
	all := []certs.Info{}
	for _, one := range orgs {
		var list struct {
			Certificates []certs.Info `json:"certificates"`
		}
		if err := c.do(ctx, fasthttp.MethodGet, certsPath+ofOrg("?", one), nil, &list); err != nil {
			return nil, err
		}
		all = append(all, list.Certificates...)
	}
	slices.SortFunc(all, func(a, b certs.Info) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// Add implements Certificates. Without an organisation the admin uses that of its
// gateways.
func (c adminCertificates) Add(ctx context.Context, org string, text []byte) (id string, err error) {
	var made reply
	err = c.do(ctx, fasthttp.MethodPost, certsPath+ofOrg("?", org), map[string]string{"pem": string(text)}, &made)
	return made.ID, err
}

// Get implements Certificates.
func (c adminCertificates) Get(ctx context.Context, id string) (info certs.Info, err error) {
	path, err := at(certsPath, id)
	if err != nil {
		return info, err
	}
	return info, said(c.do(ctx, fasthttp.MethodGet, path, nil, &info), "certificate")
}

// Delete implements Certificates.
func (c adminCertificates) Delete(ctx context.Context, id string) error {
	path, err := at(certsPath, id)
	if err != nil {
		return err
	}
	return said(c.do(ctx, fasthttp.MethodDelete, path, nil, nil), "certificate")
}
