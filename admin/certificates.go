package admin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/certs"
	"github.com/sluicegate/sluice/admin/store"
)

const noCertificate = "Certificate does not exist"

func (s *Server) certificateRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/certs", summary: "List certificates; private keys are not shown", tag: "Certificates", role: roleViewer, gateway: true,
			reply: certs.List{}, handle: func(ctx context.Context, c *call) (any, error) { return s.certs.List(ctx, c.who.org) },
		},
		{
			method: "POST", path: "/api/certs", summary: "Add a certificate, with or without its private key", tag: "Certificates", role: roleEditor, gateway: true,
			body: certs.Upload{}, reply: envelope{}, wrong: []int{400, 413, 415}, handle: s.addCertificate,
		},
		{
			method: "GET", path: "/api/certs/{id}", summary: "Tell of a certificate", tag: "Certificates", role: roleViewer, gateway: true,
			reply: certs.Info{}, wrong: []int{404}, handle: func(ctx context.Context, c *call) (any, error) {
				info, err := s.certs.Get(ctx, c.who.org, c.param("id"))
				return info, missing(err, noCertificate)
			},
		},
		{
			method: "DELETE", path: "/api/certs/{id}", summary: "Delete a certificate; nobody is let in by it any more", tag: "Certificates", role: roleEditor, gateway: true,
			reply: envelope{}, wrong: []int{404}, handle: s.deleteCertificate,
		},
		{
			method: "GET", path: "/api/gateway/certs", summary: "Take all certificates, for a gateway; with keys=true, private keys too", tag: "Gateways", role: roleGateway,
			query: []string{"keys"}, reply: certs.Delivery{}, handle: s.deliverCertificates,
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
func (s *Server) publisher(c *call) certs.Publisher {
	return func(ctx context.Context, change func(context.Context, *store.Change) error) error {
		return s.publish(ctx, c, change)
	}
}

func (s *Server) addCertificate(ctx context.Context, c *call) (any, error) {
	var up certs.Upload
	if err := c.decode(&up); err != nil {
		return nil, err
	}
	info, err := s.certs.Add(ctx, c.who.org, up, s.publisher(c))
	if invalid, ok := errors.AsType[*certs.InvalidError](err); ok {
		return nil, badRequest("Validation failed: "+invalid.Error(), invalid.Error())
	}
	if err != nil {
		return nil, err
	}
	answer := done("Certificate added", info)
	answer.ID = info.ID
	return answer, nil
}

func (s *Server) deleteCertificate(ctx context.Context, c *call) (any, error) {
	if err := s.certs.Delete(ctx, c.who.org, c.param("id"), s.publisher(c)); err != nil {
		return nil, missing(err, noCertificate)
	}
	return done("Certificate deleted", nil), nil
}

func (s *Server) deliverCertificates(ctx context.Context, c *call) (any, error) {
	body, etag, err := s.certs.Deliver(ctx, c.flag("keys"))
	if err != nil {
		return nil, err
	}
	c.http.Response.Header.Set(fasthttp.HeaderETag, etag)
	if string(c.http.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)) == etag {
		c.http.Response.SetStatusCode(fasthttp.StatusNotModified)
		return nil, nil
	}
	return json.RawMessage(body), nil
}
