package credentials

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// row returns a request as it is stored. Members that the portal sets, and the secret, are
// not in the body.
func (s *Requests) row(id, org string, a *resolved) (*store.KeyRequest, error) {
	stored := *a.record
	stored.ID, stored.OrgID, stored.Key = id, org, ""
	stored.Developer, stored.DateCreated, stored.State, stored.Reason = nil, "", "", ""
	stored.DecidedBy, stored.DecidedAt, stored.JWTSecret = "", "", ""
	sealed, err := s.seal(id, a.record.JWTSecret)
	if err != nil {
		return nil, err
	}
	body, err := model.Write(&stored)
	if err != nil {
		return nil, err
	}
	if len(body) > 2*maxRecord {
		return nil, rest.Refuse(fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("A key request has at most %d bytes", maxRecord))
	}
	return &store.KeyRequest{
		ID: id, OrgID: org, DeveloperID: stored.ByUser, Plan: stored.ForPlan, Policies: a.policies,
		KeyHash: a.hash, AuthType: a.kind, SealedSecret: sealed, Body: body,
	}, nil
}

// seal seals a secret; nil for none.
func (s *Requests) seal(id, secret string) ([]byte, error) {
	switch {
	case secret == "":
		return nil, nil
	case s.d.MasterKey.ID() == "":
		return nil, rest.Refuse(fasthttp.StatusServiceUnavailable, "jwt_secret: cannot be kept, as admin.master_key is not set")
	}
	return s.d.MasterKey.Seal([]byte(secret), sealPlace(id))
}

func (s *Requests) open(r *store.KeyRequest) (string, error) {
	if len(r.SealedSecret) == 0 {
		return "", nil
	}
	secret, err := s.d.MasterKey.Open(r.SealedSecret, sealPlace(r.ID))
	if err != nil {
		return "", fmt.Errorf("admin.master_key: the secret of key request %s cannot be opened: %w", r.ID, err)
	}
	return string(secret), nil
}

// sealPlace is the additional data that a secret is sealed with.
func sealPlace(id string) []byte { return []byte("key_requests " + id + " sealed_secret") }

// recordOf returns a stored request as it is shown, without the developer.
func (s *Requests) recordOf(row *store.KeyRequest) (*model.KeyRequest, error) {
	r, err := model.Parse[model.KeyRequest](row.Body)
	if err != nil {
		// %v, as *definition.Problems would be answered as a fault of the caller.
		return nil, fmt.Errorf("reading key request %s: %v", row.ID, err)
	}
	r.ID, r.OrgID, r.ByUser = row.ID, row.OrgID, row.DeveloperID
	r.State, r.Approved, r.Reason = row.State, row.State == string(Approved), row.Reason
	r.DateCreated = row.CreatedAt.UTC().Format(time.RFC3339)
	r.KeyID = s.d.Keys.PublicID(row.KeyHash)
	r.DecidedBy = row.DecidedBy
	if row.DecidedAt != nil {
		r.DecidedAt = row.DecidedAt.UTC().Format(time.RFC3339)
	}
	if r.Fields == nil {
		r.Fields = map[string]json.RawMessage{}
	}
	return r, nil
}

// merged returns the policies that a key has after a change.
func merged(have, more, fewer []string) []string {
	left := slices.DeleteFunc(have, func(id string) bool { return slices.Contains(fewer, id) })
	for _, id := range more {
		if !slices.Contains(left, id) {
			left = append(left, id)
		}
	}
	return left
}

// fieldText returns a field of a request that is a text.
func fieldText(r *model.KeyRequest, name string) string {
	var text string
	_ = json.Unmarshal(r.Fields[name], &text) // "" if it is no text
	return text
}

// missingFields returns which of some fields a request leaves out.
func missingFields(r *model.KeyRequest, required []string) []string {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(setOf(required))) {
		switch string(r.Fields[name]) {
		case "", "null", `""`:
			missing = append(missing, name)
		}
	}
	return missing
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
