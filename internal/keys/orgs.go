package keys

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// The session of an organisation is stored like that of a key, under an identity that
// no key has (credential.OrgIdentity). It has the limits that all keys of the
// organisation share. Calls for keys with such an identity in place of a custom id
// create, return, change and delete it.

// createOrg stores the session of an organisation, and replaces an existing one.
func (k *Service) createOrg(ctx context.Context, identity string, s *definition.Session, suppressReset bool) (Issued, error) {
	session, may, err := k.acceptOrg(identity, s)
	if err != nil {
		return Issued{}, err
	}
	old, err := k.Store.Get(ctx, identity)
	if err != nil && !isAbsent(err) {
		return Issued{}, err
	}
	c := Change{Hash: identity, Session: session, New: err != nil}
	session.DateCreated = k.Now().UTC().Format(time.RFC3339)
	if c.New {
		old = session
	} else {
		session.DateCreated = old.DateCreated
	}
	c.Reset = k.stamp(identity, session, old, suppressReset, may)
	if err := k.Store.Commit(ctx, c); err != nil {
		return Issued{}, err
	}
	return k.issued(identity, identity), nil
}

// CheckOrg reports what is wrong with the limits of an organisation.
func (k *Service) CheckOrg(org string, s *definition.Session) error {
	_, _, err := k.acceptOrg(credential.OrgIdentity(org), s)
	return err
}

// acceptAs is accept for a session that is stored under a known identity.
func (k *Service) acceptAs(identity string, s, old *definition.Session) (*definition.Session, *rights.Rights, error) {
	if credential.IsOrg(identity) {
		return k.acceptOrg(identity, s)
	}
	return k.accept(s, old)
}

// acceptOrg is accept for the session of an organisation.
func (k *Service) acceptOrg(identity string, s *definition.Session) (*definition.Session, *rights.Rights, error) {
	org := credential.OrgOf(identity)
	if !definition.ValidID(org) || s.OrgID != org {
		return nil, nil, &CustomError{Reason: "that begins with " + credential.OrgIdentity("") + " is that of an organisation, whose id must follow, and be the org_id of the session"}
	}
	if err := s.Validate(); err != nil {
		return nil, nil, err
	}
	var wrong definition.Problems
	if len(s.AccessRights) > 0 {
		wrong = append(wrong, definition.Problem{Path: "access_rights", Message: "are those of keys; an organisation has limits alone"})
	}
	if len(s.Policies()) > 0 {
		wrong = append(wrong, definition.Problem{Path: "apply_policies", Message: "are those of keys; an organisation has its limits itself"})
	}
	if s.BasicAuth != nil {
		wrong = append(wrong, definition.Problem{Path: "basic_auth_data", Message: "is that of users; an organisation does not call"})
	}
	if s.TokenSecret() != "" {
		wrong = append(wrong, definition.Problem{Path: "jwt_data.secret", Message: "is that of keys; an organisation does not call"})
	}
	if len(wrong) > 0 {
		return nil, nil, &wrong
	}
	session := s.Clone()
	session.SetQuotas(nil)
	may, err := rights.Effective(session, nil)
	if err != nil {
		return nil, nil, &PolicyError{Cause: err}
	}
	return session, may, nil
}
