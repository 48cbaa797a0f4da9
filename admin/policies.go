package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/apply"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/redact"
)

// policyRoutes are the routes of policies, which have two paths.
func (s *Server) policyRoutes() (all []rest.Route) {
	for _, path := range []string{"/api/portal/policies", "/api/policies"} {
		all = append(all, s.policyRoutesAt(path)...)
	}
	return all
}

func (s *Server) policyRoutesAt(path string) []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List policies", Tag: "Policies", Role: rest.Viewer, Gateway: true,
			Query: append([]string{"view", "label", "active"}, rest.Searching...), Reply: policyList{}, Rows: policyRows{}, Handle: s.listPolicies,
		},
		{
			Method: "GET", Path: path + "/search", Summary: "Search policies", Tag: "Policies", Role: rest.Viewer, Gateway: true,
			Query: append([]string{"view", "label", "policy_ids", "state", "api_id"}, rest.Searching...), Reply: policyList{}, Rows: policyRows{}, Handle: s.listPolicies,
		},
		{
			Method: "POST", Path: path, Summary: "Create a policy", Tag: "Policies", Role: rest.Editor, Gateway: true,
			Query: strictly, Body: definition.Policy{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.createPolicy,
		},
		{
			Method: "GET", Path: path + "/{id}", Summary: "Get a policy", Tag: "Policies", Role: rest.Viewer, Gateway: true,
			Reply: definition.Policy{}, Wrong: []int{404}, Handle: s.getPolicy,
		},
		{
			Method: "PUT", Path: path + "/{id}", Summary: "Replace a policy", Tag: "Policies", Role: rest.Editor, Gateway: true,
			Query: strictly, Body: definition.Policy{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updatePolicy,
		},
		{
			Method: "DELETE", Path: path + "/{id}", Summary: "Delete a policy", Tag: "Policies", Role: rest.Editor, Gateway: true,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.deletePolicy,
		},
	}
}

// policyList is one page of policies.
type policyList struct {
	// Policies of the page, each as GET /api/portal/policies/{id} answers it.
	Data []rest.Raw[definition.Policy] `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

func (s *Server) listPolicies(ctx context.Context, c *rest.Call) (any, error) {
	if rows, err := rest.WantsRows(c, "label"); err != nil || rows {
		return s.answerRows(ctx, c, err, s.listPolicyRows)
	}
	filter := store.PolicyFilter{Search: c.Query("q"), State: c.Query("state"), API: c.Query("api_id")}
	switch c.Query("active") {
	case "":
	case "true":
		filter.State = "active"
	case "false":
		filter.State = "deny"
	default:
		return nil, rest.BadRequest("active must be true or false")
	}
	for _, list := range c.HTTP.QueryArgs().PeekMulti("policy_ids") {
		filter.IDs = append(filter.IDs, strings.Split(string(list), ",")...)
	}
	page, err := c.Page(true)
	if err != nil {
		return nil, err
	}
	sort, err := c.Sort()
	if err != nil {
		return nil, err
	}
	rows, total, err := s.deps.Store.ListPolicies(ctx, c.Who.Org, filter, sort, page)
	if err != nil {
		return nil, err
	}
	list := policyList{Data: make([]rest.Raw[definition.Policy], 0, len(rows)), Pages: rest.Pages(total, page)}
	for _, row := range rows {
		shown, err := showPolicy(row)
		if err != nil {
			return nil, err
		}
		list.Data = append(list.Data, rest.Raw[definition.Policy](shown))
	}
	return list, nil
}

func (s *Server) getPolicy(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.locate(ctx, c, store.PolicyObject, c.Param("id")); err != nil {
		return nil, err
	}
	row, err := s.deps.Store.PolicyByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve portal object.")
	}
	c.SetVersion(row.Version)
	return showPolicy(row)
}

func (s *Server) createPolicy(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.claimBody(ctx, c, ""); err != nil {
		return nil, err
	}
	p, warnings, err := readPolicy(c, nil)
	if err != nil {
		return nil, err
	}
	if p.ID == "" {
		p.ID = rest.NewID()
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error { return change.CreatePolicy(ctx, p) })
	if err != nil {
		return nil, nameTaken(err)
	}
	c.SetVersion(1)
	answer := rest.Done(p.ID, nil)
	answer.Warnings = warnings
	return answer, nil
}

func (s *Server) updatePolicy(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	if err := s.claimBody(ctx, c, ""); err != nil {
		return nil, err
	}
	if err := s.locate(ctx, c, store.PolicyObject, c.Param("id")); err != nil {
		return nil, err
	}
	id := c.Param("id")
	stored, err := s.deps.Store.PolicyByID(ctx, c.Who.Org, id)
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve portal object.")
	}
	p, warnings, err := readPolicy(c, stored.Body)
	if err != nil {
		return nil, err
	}
	if have == 0 && redact.HasMask(c.HTTP.Request.Body()) {
		have = stored.Version // what was taken over must still be what is stored
	}
	if p.ID == "" {
		p.ID = id
	} else if p.ID != id {
		return nil, rest.BadRequest("id: must be " + id + ", as in the path, or be left out")
	}
	var version int64
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		version, err = change.UpdatePolicy(ctx, p, have)
		return err
	})
	if err != nil {
		return nil, nameTaken(rest.Missing(err, "Could not retrieve portal object."))
	}
	c.SetVersion(version)
	answer := rest.Done("Data updated", nil)
	answer.Warnings = warnings
	return answer, nil
}

func (s *Server) deletePolicy(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	if err := s.locate(ctx, c, store.PolicyObject, c.Param("id")); err != nil {
		return nil, err
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		return change.DeletePolicy(ctx, c.Param("id"), have)
	})
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve object for deletion")
	}
	return rest.Done("Data deleted", nil), nil
}

// nameTaken answers 400 for a name that another policy has.
func nameTaken(err error) error {
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok && conflict.Kind == store.TakenName {
		return rest.BadRequest("This policy name has already been used. Enter a unique policy name.")
	}
	return err
}

// readPolicy reads a policy from the body. Its id, under either name, is in ID, and its
// access rights are in AccessRights alone. Masked secrets stay as they are stored; stored
// is nil for a new policy. The warnings are about unknown members.
func readPolicy(c *rest.Call, stored []byte) (p *definition.Policy, warnings []string, err error) {
	body, err := c.Body()
	if err != nil {
		return nil, nil, err
	}
	body, masks := restored(body, stored)
	if len(masks) > 0 {
		return nil, nil, &masks
	}
	if p, err = definition.ParseNewPolicy(body); err != nil {
		return nil, nil, err
	}
	warnings, refused := unknownMembers(c, p, false)
	if len(refused) > 0 {
		return nil, nil, &refused
	}
	p.ID, p.StoreID = p.Key(), ""
	if p.AccessRights, err = rightsOf(p.AccessRights, p.AccessList); err != nil {
		return nil, nil, err
	}
	p.AccessList = nil
	return p, warnings, nil
}

// rightsOf returns the access rights by API, which may be written as an array.
func rightsOf(rights map[string]*definition.Access, list []*definition.Access) (map[string]*definition.Access, error) {
	rights, problems := apply.AccessRights(rights, list)
	if problems != nil {
		return nil, rest.BadRequest("Validation failed", problems...)
	}
	return rights, nil
}

// showPolicy returns a policy as it is shown: under both names of its id, with its
// access rights as map and as array.
func showPolicy(row store.Policy) (json.RawMessage, error) {
	p := new(definition.Policy)
	if err := json.Unmarshal(row.Body, p); err != nil {
		return nil, fmt.Errorf("reading policy %s: %w", row.ID, err)
	}
	p.ID, p.StoreID = row.ID, row.ID
	for _, id := range slices.Sorted(maps.Keys(p.AccessRights)) {
		access := p.AccessRights[id].Clone()
		if access.APIID == "" {
			access.APIID = id
		}
		p.AccessList = append(p.AccessList, access)
	}
	return rest.Encode(p)
}
