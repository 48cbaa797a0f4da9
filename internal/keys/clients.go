package keys

import (
	"context"

	"github.com/sluicegate/sluice/internal/definition"
)

// The session of an OAuth client is that of all its tokens: they have one quota,
// and end with it. No key stands for it by itself. Each token is stored under its
// own hash, and says whose it is and when it ends.

// CreateClient makes the session of an OAuth client from s, which it leaves as it
// is, and returns its identity, the hash that it is stored under. id is what the
// client is called by.
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
	issued.Key = "" // nobody is told, so that only tokens stand for the client
	return issued, err
}

// checkClient refuses a session that says of itself that it is a client's.
func checkClient(s, old *definition.Session) error {
	if id := s.OAuthClient(); id != "" && id != old.OAuthClient() {
		return problem("oauth_client_id", "must be left out: clients are made in the portal")
	}
	return nil
}

// keepClient has the session of a client stay one.
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
