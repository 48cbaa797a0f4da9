package keys

import (
	"encoding/json"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// checkNames refuses a session that names what does not exist, or that has numbers that
// would limit nothing. What old has in the same place may have ceased to exist since, and
// stays; old is nil for a new key.
func (k *Service) checkNames(s, old *definition.Session, may *rights.Rights) error {
	for _, id := range may.Missing {
		if old == nil || !slices.Contains(old.Policies(), id) {
			return &PolicyError{Cause: &rights.MissingError{Policy: id}}
		}
	}
	if (old == nil || old.OrgID != s.OrgID) && !k.knowsOrg(s) {
		return problem("org_id", "names an organisation that has no API here")
	}
	wrong := k.doubts(s)
	if k.Failed != nil {
		if err := k.Failed(); err != nil {
			return err
		}
	}
	if len(wrong) > 0 && old != nil {
		known := k.doubts(old)
		wrong = slices.DeleteFunc(wrong, func(p definition.Problem) bool { return slices.Contains(known, p) })
	}
	if len(wrong) > 0 {
		return &wrong
	}
	return nil
}

// knowsOrg reports whether the organisation of a session exists, as far as that is known:
// it has an API. APIs without an organisation are for the keys of all.
func (k *Service) knowsOrg(s *definition.Session) bool {
	if k.Orgs == nil || s.OrgID == "" || len(s.AccessRights) == 0 || slices.Contains(k.Orgs(), s.OrgID) {
		return true
	}
	for id := range s.AccessRights {
		if api := k.API(id); api != nil && (api.OrgID == "" || api.OrgID == s.OrgID) {
			return true
		}
	}
	return false
}

// doubts returns what a session names that does not exist, and its numbers that would
// limit nothing.
func (k *Service) doubts(s *definition.Session) definition.Problems {
	known := rights.Catalog{API: func(id string) *definition.API {
		api := k.API(id)
		if api != nil && s.OrgID != "" && api.OrgID != "" && api.OrgID != s.OrgID {
			return nil // rights never reach beyond an organisation
		}
		return api
	}}
	return append(definition.Problems(s.Warnings()), known.Check(s.AccessRights)...)
}

// TakeID takes the key that a caller of POST has chosen out of the members of a session,
// and returns it; "" if there is none.
func TakeID(s *definition.Session) (string, error) {
	raw := s.Unknown.Take("key")
	if raw == nil {
		return "", nil
	}
	var id *string
	if err := json.Unmarshal(raw, &id); err != nil {
		return "", problem("key", "must be a text, the key to be created; leave it out to have one generated")
	}
	if id == nil {
		return "", nil
	}
	return *id, nil
}
