package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// A role says what a user may do. Each of viewer, editor and admin may do what
// the one before may; gateway stands beside them.
type role string

// The roles.
const (
	roleNone    role = "" // a route that asks for nothing
	roleViewer  role = "viewer"
	roleEditor  role = "editor"
	roleAdmin   role = "admin"
	roleGateway role = "gateway"
)

// rank orders the roles of people.
func (r role) rank() int {
	switch r {
	case roleViewer:
		return 1
	case roleEditor:
		return 2
	case roleAdmin:
		return 3
	}
	return 0
}

func (r role) known() bool { return r.rank() > 0 || r == roleGateway }

// A principal is who makes a call.
type principal struct {
	org  string
	id   string // of the user; "" for the gateways' common token
	name string
	kind string // user or gateway
	role role
}

// authorise finds out who calls and whether they may.
func (s *Server) authorise(ctx context.Context, c *call) (principal, error) {
	if c.route.role == roleNone {
		return principal{}, nil
	}
	credential := credentialOf(c.http)
	if len(credential) == 0 {
		return principal{}, refuse(fasthttp.StatusUnauthorized, "Not authorised")
	}
	who, err := s.identify(ctx, credential)
	if errors.Is(err, store.ErrNotFound) {
		return principal{}, s.notAuthorised(c)
	}
	if err != nil {
		return principal{}, err
	}
	if !c.route.allows(who.role) {
		path := truncate(string(c.http.Path()), maxText)
		return principal{}, refuse(fasthttp.StatusForbidden, "access denied: You do not have permission to access  "+path)
	}
	return who, nil
}

// credentialOf returns what the caller shows, bare or as a bearer token.
func credentialOf(ctx *fasthttp.RequestCtx) []byte {
	shown := strings.TrimSpace(string(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)))
	if scheme, rest, found := strings.Cut(shown, " "); found && strings.EqualFold(scheme, "Bearer") {
		shown = strings.TrimSpace(rest)
	}
	return []byte(shown)
}

// identify returns who has a credential; store.ErrNotFound is nobody.
func (s *Server) identify(ctx context.Context, credential []byte) (principal, error) {
	if s.deps.GatewayToken.Equal(credential) {
		org, err := s.deps.Store.FirstOrg(ctx)
		if errors.Is(err, store.ErrNotFound) {
			err = nil // before the first start is complete there is nothing to own
		}
		return principal{org: org, name: "gateway", kind: "gateway", role: roleGateway}, err
	}
	user, err := s.deps.Store.UserByKey(ctx, hashOf(credential))
	if err != nil {
		return principal{}, err
	}
	who := principal{org: user.OrgID, id: user.ID, name: user.Email, kind: "user", role: role(user.Role)}
	if who.role == roleGateway {
		who.kind = "gateway"
	}
	return who, nil
}

// hashOf is how an access key is stored. The key has 256 random bits, so that
// neither salt nor cost would add anything.
func hashOf(credential []byte) []byte {
	sum := sha256.Sum256(credential)
	return sum[:]
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewAccessKey returns an access key for a user, which people and scanners
// recognise: "sla_" and 43 letters and digits, 256 random bits.
func NewAccessKey() string {
	key := []byte("sla_")
	var random [64]byte
	for len(key) < len("sla_")+43 {
		_, _ = rand.Read(random[:]) // documented never to fail
		for _, b := range random {
			// Beyond the last multiple of 62 some letters would come more often.
			if b < 62*4 && len(key) < len("sla_")+43 {
				key = append(key, alphabet[b%62])
			}
		}
	}
	return string(key)
}

// newID returns an identifier of 32 hexadecimal digits.
func newID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	return hex.EncodeToString(random[:])
}

// Bootstrap makes the first organisation with an admin who has that access key,
// on a database that has none; created tells.
func (s *Server) Bootstrap(ctx context.Context, key secret.Value) (created bool, err error) {
	created, err = s.deps.Store.Bootstrap(ctx, "default", store.User{
		OrgID: newID(), ID: newID(), Email: "admin@localhost", FirstName: "First", LastName: "Admin",
		Role: string(roleAdmin), Active: true, AccessKeyHash: hashOf([]byte(key.Reveal())),
	})
	if err != nil {
		return false, fmt.Errorf("making the first organisation and its admin: %w", err)
	}
	if created {
		s.log.Info("first organisation and admin were created", "user", "admin@localhost")
	}
	return created, nil
}

// printable tells whether a text can stand in a list or a letter.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
}

// notAuthorised counts a failed authentication and returns the answer to it.
func (s *Server) notAuthorised(c *call) *fault {
	wait := s.guard.Failed(c.http.RemoteIP())
	if wait == 0 {
		return refuse(fasthttp.StatusUnauthorized, "Not authorised")
	}
	f := refuse(fasthttp.StatusTooManyRequests, "Too many failed attempts from this address; try again later")
	f.header = map[string]string{fasthttp.HeaderRetryAfter: strconv.Itoa(int(wait.Seconds()) + 1)}
	return f
}
