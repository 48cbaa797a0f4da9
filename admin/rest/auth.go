package rest

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/valyala/fasthttp"
)

// A Role says what a caller may do. Each of viewer, approver, editor and admin may
// do what the one before may; gateway and developer stand beside them.
type Role string

// The roles.
const (
	Anyone    Role = ""          // a route that asks for nothing
	Viewer    Role = "viewer"    // reads
	Approver  Role = "approver"  // decides on key requests, too, and looks after developers
	Editor    Role = "editor"    // changes configuration, too
	Admin     Role = "admin"     // looks after users, too
	Gateway   Role = "gateway"   // takes configuration
	Developer Role = "developer" // of the portal: sees and changes what is theirs
)

// rank orders the roles of people.
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

// Known tells whether a user can have the role.
func (r Role) Known() bool { return r.rank() > 0 || r == Gateway }

// A Principal is who makes a call.
type Principal struct {
	Org  string
	ID   string // of the user or developer; "" for the gateways' common token
	Name string
	Kind string // user, gateway or developer
	Role Role
}

// CredentialOf returns what the caller shows, bare or as a bearer token.
func CredentialOf(ctx *fasthttp.RequestCtx) []byte { return CredentialIn(&ctx.Request.Header) }

// CredentialIn is CredentialOf for the head of a request.
func CredentialIn(head *fasthttp.RequestHeader) []byte {
	shown := strings.TrimSpace(string(head.Peek(fasthttp.HeaderAuthorization)))
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

// Printable tells whether a text can stand in a list or a letter.
func Printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
}
