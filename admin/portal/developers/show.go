package developers

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// stamp returns a time in JSON; "", which is left out, for one that never was.
func stamp(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// recordOf returns a developer as REST shows one, without secrets.
func (s *Service) recordOf(d *store.Developer, has *store.Holdings) (*model.Developer, error) {
	r, err := model.Parse[model.Developer](d.Extra)
	if err != nil {
		return nil, fmt.Errorf("reading developer %s: %s", d.ID, err.Error()) // not the caller's fault
	}
	fields, err := fieldsOf(d)
	if err != nil {
		return nil, err
	}
	verified := d.VerifiedAt != nil
	r.ID, r.OrgID, r.Email, r.Inactive, r.Verified = d.ID, d.OrgID, d.Email, d.Inactive, &verified
	r.Fields, r.Nonce, r.SSOKey = fields, d.Nonce, d.SsoKey
	r.DateCreated, r.LastLogin, r.PasswordUpdated = stamp(&d.CreatedAt), stamp(d.LastLoginAt), ""
	if d.PasswordHash != "" {
		r.PasswordUpdated = stamp(&d.PasswordUpdated)
	}
	r.PasswordMaxDays, r.PasswordHistory = int64(d.PasswordMaxDays), []string{}
	r.Keys, r.Subscriptions = make(map[string][]string, len(has.Keys)), make(map[string]string, len(has.Subscriptions))
	for hash, policies := range has.Keys {
		r.Keys[s.KeyID(hash)] = policies
	}
	for policy, hash := range has.Subscriptions {
		r.Subscriptions[policy] = s.KeyID(hash)
	}
	r.OAuthClients = make(map[string][]model.Client, len(has.Clients))
	for policy, clients := range has.Clients {
		for _, one := range clients {
			r.OAuthClients[policy] = append(r.OAuthClients[policy], model.Client{
				ClientID: one.ClientID, RedirectURI: one.RedirectUri, AppDescription: one.AppDescription,
				UseCase: one.UseCase, DateCreated: stamp(&one.CreatedAt),
			})
		}
	}
	return r, nil
}

// shownTo removes what a caller may not see: the identities in other systems are for
// approvers, unknown members for operators.
func shownTo(r *model.Developer, who rest.Role) *model.Developer {
	if who == rest.Viewer || who == rest.Developer {
		r.Nonce, r.SSOKey = "", ""
	}
	if who == rest.Developer {
		r.Unknown = model.Developer{}.Unknown
	}
	return r
}

// fieldsOf reads a developer's fields; the map is never nil.
func fieldsOf(d *store.Developer) (map[string]string, error) {
	fields := make(map[string]string)
	if err := json.Unmarshal(d.Fields, &fields); err != nil {
		return nil, fmt.Errorf("reading the fields of developer %s: %w", d.ID, err)
	}
	return fields, nil
}

func encodeFields(fields map[string]string) ([]byte, error) {
	if fields == nil {
		fields = map[string]string{}
	}
	return rest.Encode(fields)
}

// extraOf returns the unknown members of a developer as JSON, and the password, which is
// not part of the model.
func extraOf(body []byte, r *model.Developer) (extra []byte, password string, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, "", fmt.Errorf("reading a developer's members: %w", err)
	}
	for name, value := range members {
		switch {
		case strings.EqualFold(name, "password"):
			if json.Unmarshal(value, &password) != nil {
				return nil, "", rest.BadRequest("Validation failed", "password: must be a string")
			}
			delete(members, name)
		case r.Unknown.Get(name) == nil:
			delete(members, name)
		}
	}
	extra, err = rest.Encode(members)
	return extra, password, err
}
