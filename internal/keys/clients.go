package keys

import (
	"context"

	"github.com/sluicegate/sluice/internal/definition"
)

// All tokens of an OAuth client share the client's session: they have one quota, and
// expire with the session. No key has that session. Each token is stored under its own
// hash, with the identity of its client and its expiry.

// CreateClient stores s as the session of the OAuth client with that id. It does not
// change s. It returns the identity, the hash under which the session is stored.
func (k *Service) CreateClient(ctx context.Context, id string, s *definition.Session) (Issued, error) {
	session := s.Clone()
	if session.Extra == nil {
		session.Extra = new(definition.Extra)
	}
	session.Extra.OAuthClientID = id
	if session.HasPassword() || session.TokenSecret() != "" || session.Extra.Certificate != "" {
		return Issued{}, problem("oauth_client_id", "is of a session that callers show a password, a token of their own or a certificate for; a client has its tokens alone")
	}
	issued, err := k.create(ctx, "", session, false)
	issued.Key = "" // never returned: the client is used by its tokens only
	return issued, err
}

// checkClient refuses a session that the caller declares to be a client's.
func checkClient(s, old *definition.Session) error {
	if id := s.OAuthClient(); id != "" && id != old.OAuthClient() {
		return problem("oauth_client_id", "must be left out: clients are made in the portal")
	}
	return nil
}

// keepClient marks a session as a client's. A password or a token secret is refused.
func keepClient(session, old *definition.Session) error {
	if session.HasPassword() || session.TokenSecret() != "" {
		return problem("oauth_client_id", "is that of an OAuth client, which has neither a password nor a token of its own; make another key")
	}
	if session.Extra == nil {
		session.Extra = new(definition.Extra)
	}
	session.Extra.OAuthClientID = old.OAuthClient()
	return nil
}
