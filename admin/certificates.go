package admin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/certs"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

const noCertificate = "Certificate does not exist"

func (s *Server) certificateRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/certs", Summary: "List certificates; private keys are not shown", Tag: "Certificates", Role: rest.Viewer, Gateway: true,
			Reply: certs.List{}, Handle: func(ctx context.Context, c *rest.Call) (any, error) { return s.certs.List(ctx, c.Who.Org) },
		},
		{
			Method: "POST", Path: "/api/certs", Summary: "Add a certificate, with or without its private key", Tag: "Certificates", Role: rest.Editor, Gateway: true,
			Body: certs.Upload{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.addCertificate,
		},
		{
			Method: "GET", Path: "/api/certs/{id}", Summary: "Tell of a certificate", Tag: "Certificates", Role: rest.Viewer, Gateway: true,
			Reply: certs.Info{}, Wrong: []int{404}, Handle: func(ctx context.Context, c *rest.Call) (any, error) {
				info, err := s.certs.Get(ctx, c.Who.Org, c.Param("id"))
				return info, rest.Missing(err, noCertificate)
			},
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

// Certificates returns every certificate, with private keys, as gateways take
// them.
func (s *Server) Certificates(ctx context.Context) ([]byte, error) {
	all, _, err := s.certs.Deliver(ctx, true)
	return all, err
}

// publisher publishes what a call changes.
func (s *Server) publisher(c *rest.Call) certs.Publisher {
	return func(ctx context.Context, change func(context.Context, *store.Change) error) error {
		return s.publish(ctx, c, change)
	}
}

func (s *Server) addCertificate(ctx context.Context, c *rest.Call) (any, error) {
	var up certs.Upload
	if err := c.Decode(&up); err != nil {
		return nil, err
	}
	info, err := s.certs.Add(ctx, c.Who.Org, up, s.publisher(c))
	if invalid, ok := errors.AsType[*certs.InvalidError](err); ok {
		return nil, rest.BadRequest("Validation failed: "+invalid.Error(), invalid.Error())
	}
	if conflict, ok := errors.AsType[*certs.ConflictError](err); ok {
		return nil, rest.Refuse(fasthttp.StatusConflict, conflict.Error())
	}
	if err != nil {
		return nil, err
	}
	answer := rest.Done("Certificate added", info)
	answer.ID = info.ID
	return answer, nil
}

func (s *Server) deleteCertificate(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.certs.Delete(ctx, c.Who.Org, c.Param("id"), s.publisher(c)); err != nil {
		return nil, rest.Missing(err, noCertificate)
	}
	return rest.Done("Certificate deleted", nil), nil
}

func (s *Server) deliverCertificates(ctx context.Context, c *rest.Call) (any, error) {
	body, etag, err := s.certs.Deliver(ctx, c.Flag("keys"))
	if err != nil {
		return nil, err
	}
	c.HTTP.Response.Header.Set(fasthttp.HeaderETag, etag)
	if string(c.HTTP.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)) == etag {
		c.HTTP.Response.SetStatusCode(fasthttp.StatusNotModified)
		return nil, nil
	}
	return json.RawMessage(body), nil
}
