package auth

import "github.com/sluicegate/sluice/internal/definition"

// kind is what a session has to be found by: what names one of a kind opens none
// of another.
type kind uint8

// The kinds.
const (
	ofKey    kind = iota // the key itself, which is secret
	ofUser               // a name, with a password beside it
	ofSigner             // a name, in a token that was signed with what the session has
	ofClient             // a token of an OAuth client, which is secret
)

var scopeNames = [...]string{ofKey: "org:", ofUser: "users:", ofSigner: "signers:", ofClient: "clients:"}

func kindOf(s *definition.Session) kind {
	switch {
	case s.HasPassword():
		return ofUser
	case s.TokenSecret() != "":
		return ofSigner
	case s.OAuthClient() != "":
		return ofClient
	}
	return ofKey
}

// finds tells whether credentials of a kind may find a session.
func (k kind) finds(s *definition.Session) bool { return k == kindOf(s) }
