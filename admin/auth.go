package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// authorise identifies the caller and checks the role that the route needs.
func (s *Server) authorise(ctx context.Context, c *rest.Call) (rest.Principal, error) {
	if c.Route.Role == rest.Anyone {
		return rest.Principal{}, nil
	}
	credential := rest.CredentialOf(c.HTTP)
	if len(credential) == 0 {
		return rest.Principal{}, rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised")
	}
	byCookie := rest.ByCookie(c.HTTP)
	who, err := s.identify(ctx, credential)
	switch {
	case errors.Is(err, store.ErrNotFound) && byCookie:
		// Not counted: open tabs go on asking after their session has ended.
		return rest.Principal{}, rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised: the session has ended")
	case errors.Is(err, store.ErrNotFound), err == nil && !byCookie && isSession(credential):
		return rest.Principal{}, s.notAuthorised(c)
	case err != nil:
		return rest.Principal{}, err
	}
	if err := rest.CheckCSRF(c.HTTP); err != nil {
		return rest.Principal{}, err
	}
	if !c.Route.Allows(who.Role) {
		path := rest.Truncate(string(c.HTTP.Path()), rest.MaxText)
		return rest.Principal{}, rest.Refuse(fasthttp.StatusForbidden, "access denied: You do not have permission to access  "+path)
	}
	c.Who = who
	err = s.actFor(ctx, c)
	return c.Who, err
}

// identify returns the principal of a credential, or store.ErrNotFound.
func (s *Server) identify(ctx context.Context, credential []byte) (rest.Principal, error) {
	if s.isGatewayToken(credential) {
		org, err := s.gatewayOrg(ctx)
		return rest.Principal{Org: org, Home: org, Name: "gateway", Kind: "gateway", Role: rest.Gateway}, err
	}
	if bytes.HasPrefix(credential, []byte(portal.SessionPrefix)) {
		return s.portal.Identify(ctx, credential)
	}
	if isSession(credential) {
		return s.signin.Identify(ctx, credential)
	}
	return s.userByKey(ctx, rest.HashOf(credential))
}

// isSession reports whether a credential is the session of a user, which only a cookie
// shows.
func isSession(credential []byte) bool {
	return bytes.HasPrefix(credential, []byte(rest.SessionPrefix))
}

// isGatewayToken reports whether a credential is the token of the gateways, or the former
// one.
func (s *Server) isGatewayToken(credential []byte) bool {
	current, former := s.deps.GatewayToken.Equal(credential), s.deps.FormerGatewayToken.Equal(credential)
	return current || former
}

// NewAccessKey returns an access key for a user: "sla_", which scanners recognise, and
// 43 letters and digits that hold 256 random bits.
func NewAccessKey() string { return "sla_" + rest.RandomText(rest.Alphanumeric, rest.KeyDigits) }

// Bootstrap creates the first organisation with an admin who has the access key, in a
// database without organisations. Created reports whether it did.
func (s *Server) Bootstrap(ctx context.Context, key secret.Value) (created bool, err error) {
	created, err = s.deps.Store.Bootstrap(ctx, "default", store.User{
		OrgID: rest.NewID(), ID: rest.NewID(), Email: "admin@localhost", FirstName: "First", LastName: "Admin",
		Role: string(rest.Admin), Active: true, AccessKeyHash: rest.HashOf([]byte(key.Reveal())),
	})
	if err != nil {
		return false, fmt.Errorf("making the first organisation and its admin: %w", err)
	}
	if created {
		s.log.Info("first organisation and admin were created", "user", "admin@localhost")
	}
	return created, nil
}

// notAuthorised counts a failed authentication and returns the answer to it.
func (s *Server) notAuthorised(c *rest.Call) *rest.Fault {
	wait := s.throttle.Failed(c.HTTP.RemoteIP())
	if wait == 0 {
		return rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised")
	}
	f := rest.Refuse(fasthttp.StatusTooManyRequests, "Too many failed attempts from this address; try again later")
	f.Header = map[string]string{fasthttp.HeaderRetryAfter: strconv.Itoa(int(wait.Seconds()) + 1)}
	return f
}
