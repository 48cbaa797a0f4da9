package developers

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store/accounts"
)

// never is how records write a time that did not come.
const never = "0001-01-01T00:00:00Z"

func stamp(at *time.Time) string {
	if at == nil {
		return never
	}
	return at.UTC().Format(time.RFC3339)
}

// recordOf returns the record of a developer, without secrets.
func (s *Service) recordOf(d *accounts.Developer, has *accounts.Holdings) (*record.Developer, error) {
	r, err := record.Parse[record.Developer](d.Extra)
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
	r.DateCreated, r.LastLogin, r.PasswordUpdated = stamp(&d.CreatedAt), stamp(d.LastLoginAt), never
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
	r.OAuthClients = make(map[string][]record.Client, len(has.Clients))
	for policy, clients := range has.Clients {
		for _, one := range clients {
			r.OAuthClients[policy] = append(r.OAuthClients[policy], record.Client{
				ClientID: one.ClientID, RedirectURI: one.RedirectUri, AppDescription: one.AppDescription,
				UseCase: one.UseCase, DateCreated: stamp(&one.CreatedAt),
			})
		}
	}
	return r, nil
}

// shownTo is a record as a caller may see it: what other systems identify a
// developer by is for those who look after developers, and notes of operators are
// for operators.
func shownTo(r *record.Developer, who rest.Role) *record.Developer {
	if who == rest.Viewer || who == rest.Developer {
		r.Nonce, r.SSOKey = "", ""
	}
	if who == rest.Developer {
		r.Unknown = record.Developer{}.Unknown
	}
	return r
}

// fieldsOf reads a developer's fields; the map is never nil.
func fieldsOf(d *accounts.Developer) (map[string]string, error) {
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

// extraOf returns the members of a developer that are not known, as JSON, and the
// password among them, which no record holds.
func extraOf(body []byte, r *record.Developer) (extra []byte, password string, err error) {
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
