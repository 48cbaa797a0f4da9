package rest

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/valyala/fasthttp"
)

// A Role is what a caller may do. Each of viewer, approver, editor and admin includes
// the one before; gateway and developer are separate.
type Role string

// The roles.
const (
	Anyone    Role = ""          // a route that needs no credential
	Viewer    Role = "viewer"    // reads
	Approver  Role = "approver"  // also decides on key requests and manages developers
	Editor    Role = "editor"    // also changes configuration
	Admin     Role = "admin"     // also manages users
	Gateway   Role = "gateway"   // reads configuration
	Developer Role = "developer" // a developer of the portal, for objects of their own
)

// rank orders the roles of users.
func (r Role) rank() int {
	switch r {
	case Viewer:
		return 1
	case Approver:
		return 2
	case Editor:
		return 3
	case Admin:
		return 4
	}
	return 0
}

// BelowEditor reports whether users of the role see configuration without its secrets.
func (r Role) BelowEditor() bool { return r.rank() > 0 && r.rank() < Editor.rank() }

// Known reports whether a user can have the role.
func (r Role) Known() bool { return r.rank() > 0 || r == Gateway }

// A Principal is the caller of a route.
type Principal struct {
	Org  string // that the call is about
	Home string // that the caller belongs to; another one than Org where they act for that
	ID   string // of the user or developer; "" for the gateways' common token
	Name string
	Kind string // user, gateway or developer
	Role Role
}

// CredentialOf returns the credential in Authorization, bare or as a bearer token; or,
// without that header, the session in the cookie of a call of our own pages.
func CredentialOf(ctx *fasthttp.RequestCtx) []byte { return CredentialIn(&ctx.Request.Header) }

// CredentialIn is CredentialOf for the head of a request.
func CredentialIn(head *fasthttp.RequestHeader) []byte {
	header := head.Peek(fasthttp.HeaderAuthorization)
	if len(header) == 0 {
		return cookieIn(head)
	}
	shown := strings.TrimSpace(string(header))
	if scheme, rest, found := strings.Cut(shown, " "); found && strings.EqualFold(scheme, "Bearer") {
		shown = strings.TrimSpace(rest)
	}
	return []byte(shown)
}

// NewID returns an identifier of 32 hexadecimal digits.
func NewID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	return hex.EncodeToString(random[:])
}

// Printable reports whether a text has no control characters and no invalid UTF-8.
func Printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
}
