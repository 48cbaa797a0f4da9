package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

func (s *Server) orgRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/orgs", Summary: "List the organisations that the caller may act for", Tag: "Organisations", Role: rest.Viewer, Gateway: true,
			Query: []string{"p", "page_size", "q"}, Reply: orgList{}, Handle: s.listOrgs,
		},
		{
			Method: "POST", Path: "/api/orgs", Summary: "Create an organisation, and its first admin, whose access key is shown this once", Tag: "Organisations", Role: rest.Admin,
			Body: newOrg{}, Reply: rest.Envelope{}, Status: 201, Wrong: []int{400, 409, 413, 415}, Secret: true, Handle: s.createOrg,
		},
		{
			Method: "GET", Path: "/api/orgs/{id}", Summary: "Get an organisation, with its limits and what is left of its quota", Tag: "Organisations", Role: rest.Viewer, Gateway: true,
			Reply: org{}, Wrong: []int{404}, Handle: s.getOrg,
		},
		{
			Method: "PUT", Path: "/api/orgs/{id}", Summary: "Change an organisation's name or limits; what is left out stays, and null removes the limits", Tag: "Organisations", Role: rest.Admin,
			Query: []string{"reset_quota"}, Body: changedOrg{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateOrg,
		},
		{
			Method: "DELETE", Path: "/api/orgs/{id}", Summary: "End an organisation; with force, delete all that it still has", Tag: "Organisations", Role: rest.Admin,
			Query: []string{"force"}, Reply: rest.Envelope{}, Wrong: []int{404, 409}, Within: applyWithin, Handle: s.endOrg,
		},
	}
}

// org is an organisation as REST shows one.
type org struct {
	// Id of the organisation.
	ID string `json:"id"`
	// Name of the organisation for people, at most 512 bytes.
	Name string `json:"name"`
	// Rate and quota that all calls of the organisation share; left out if they are not limited. Lists
	// never have it.
	Limits *definition.Session `json:"limits,omitempty"`
	// Time at which the organisation was created.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last change.
	UpdatedAt time.Time `json:"updated_at"`
}

// orgList is one page of organisations, without their limits.
type orgList struct {
	// Organisations of the page: all of them for admins of the first organisation and gateways, else
	// one's own.
	Data []org `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// newOrg is the body of a call that creates an organisation.
type newOrg struct {
	// Id of the organisation: letters, digits, hyphens, underscores and full stops. Default: the
	// server makes one.
	// Example: "acme"
	ID string `json:"id,omitempty"`
	// Name of the organisation for people, at most 512 bytes.
	Name string `json:"name"`
	// Rate and quota that all calls of the organisation share: rate, per, quota_max,
	// quota_renewal_rate and is_inactive of a key. Default: no limits.
	Limits *definition.Session `json:"limits,omitempty"`
	// First user of the organisation, whose role is admin and whose access key the answer has.
	// Default: none is made.
	Admin *user `json:"admin,omitempty"`
}

// changedOrg is the body of a call that changes an organisation.
type changedOrg struct {
	// Name of the organisation for people, at most 512 bytes. Default: it stays.
	Name *string `json:"name,omitempty"`
	// Rate and quota that all calls of the organisation share: rate, per, quota_max,
	// quota_renewal_rate and is_inactive of a key; null: none. Default: they stay.
	Limits json.RawMessage `json:"limits,omitempty"`
}

// noOrg is the answer about an organisation that is not there, or that the caller may
// not act for.
const noOrg = "Organisation does not exist"

func (s *Server) listOrgs(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(true)
	if err != nil {
		return nil, err
	}
	all, err := s.actsForAll(ctx, c)
	if err != nil {
		return nil, err
	}
	if !all {
		row, err := s.deps.Store.OrgByID(ctx, c.Who.Home)
		if err != nil {
			return nil, err
		}
		return orgList{Data: []org{showOrg(&row)}, Pages: 1}, nil
	}
	rows, total, err := s.deps.Store.ListOrgs(ctx, c.Query("q"), page)
	if err != nil {
		return nil, err
	}
	list := orgList{Data: make([]org, 0, len(rows)), Pages: rest.Pages(total, page)}
	for i := range rows {
		list.Data = append(list.Data, showOrg(&rows[i]))
	}
	return list, nil
}

func showOrg(row *store.Org) org {
	return org{ID: row.ID, Name: row.Name, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}
}

// org returns the organisation in the path, which the call is about from now on.
func (s *Server) org(ctx context.Context, c *rest.Call) (store.Org, error) {
	id := c.Param("id")
	may, err := s.mayActFor(ctx, c, id)
	if err != nil {
		return store.Org{}, err
	}
	if !may {
		return store.Org{}, rest.NotFound(noOrg)
	}
	row, err := s.deps.Store.OrgByID(ctx, id)
	if err != nil {
		return row, rest.Missing(err, noOrg)
	}
	c.Who.Org = id
	return row, nil
}

// managedOrg is org for callers who may change it: its own users may not, since its
// limits bind them.
func (s *Server) managedOrg(ctx context.Context, c *rest.Call) (store.Org, error) {
	row, err := s.org(ctx, c)
	if err != nil {
		return row, err
	}
	return row, s.mustManageOrgs(ctx, c)
}

func (s *Server) getOrg(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.org(ctx, c)
	if err != nil {
		return nil, err
	}
	shown := showOrg(&row)
	if shown.Limits, err = s.limitsOfOrg(ctx, c); err != nil {
		return nil, err
	}
	c.SetVersion(row.Version)
	return shown, nil
}

// limitsOfOrg returns the limits of the organisation that a call is about, or nil. What
// is left of the quota is missing if the counters are unavailable.
func (s *Server) limitsOfOrg(ctx context.Context, c *rest.Call) (*definition.Session, error) {
	service, err := s.service(ctx, c)
	if err != nil {
		return nil, err
	}
	session, _, err := service.Get(ctx, orgRef(c.Who.Org))
	switch {
	case errors.Is(err, keys.ErrNotFound):
		return nil, nil
	case errors.Is(err, counter.ErrUnavailable):
		s.log.Warn("the quota of an organisation could not be looked at", "org", c.Who.Org, "err", err)
	case err != nil:
		return nil, keyFault(err)
	}
	return session, nil
}

// orgRef names the session of an organisation.
func orgRef(id string) keys.Ref { return keys.Ref{ID: credential.OrgIdentity(id), Org: id} }

func (s *Server) createOrg(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.mustManageOrgs(ctx, c); err != nil {
		return nil, err
	}
	var wanted newOrg
	if err := c.Decode(&wanted); err != nil {
		return nil, err
	}
	if wanted.ID == "" {
		wanted.ID = rest.NewID()
	}
	by := c.Author(c.Source())
	first, err := s.checkNewOrg(ctx, c, &wanted)
	if err != nil {
		return nil, err
	}
	answer := rest.Done("Organisation created", wanted.ID)
	answer.ID = wanted.ID
	if first == nil {
		c.NoSecret()
	} else {
		answer.AccessKey = NewAccessKey()
		first.ID, first.AccessKeyHash = rest.NewID(), rest.HashOf([]byte(answer.AccessKey))
	}
	row := store.Org{ID: wanted.ID, Name: wanted.Name}
	if err := s.deps.Store.CreateOrg(ctx, by, &row, first); err != nil {
		return nil, addressTaken(err)
	}
	if wanted.Limits != nil {
		if err := s.setOrgLimits(ctx, c, wanted.Limits); err != nil {
			return nil, err
		}
		answer.Warnings = s.orgWarnings()
	}
	s.log.Info("organisation created", "org", row.ID, "by", by.Name)
	c.SetVersion(row.Version)
	return answer, nil
}

// checkNewOrg checks the body of a call that creates an organisation, and returns its
// first user, nil for none. The call is about the new organisation from now on.
func (s *Server) checkNewOrg(ctx context.Context, c *rest.Call, wanted *newOrg) (first *store.User, err error) {
	var problems []string
	if !definition.ValidID(wanted.ID) {
		problems = append(problems, `id: must consist of letters, digits, "-", "_" and ".", and be at most 128 bytes`)
	}
	problems = append(problems, orgNameProblems(wanted.Name)...)
	if wanted.Admin != nil {
		wanted.Admin.Role = string(rest.Admin)
		var wrong []string
		first, wrong = checkUser(wanted.Admin)
		for _, one := range wrong {
			problems = append(problems, "admin."+one)
		}
		if wanted.Admin.Invite != "" {
			problems = append(problems, "admin.invite: must be left out; POST /api/users/{id}/actions/invite?org_id= invites the user")
		}
	}
	if problems != nil {
		return nil, rest.BadRequest("Validation failed", problems...)
	}
	c.Who.Org = wanted.ID
	if wanted.Limits == nil {
		return first, nil
	}
	service, err := s.service(ctx, c)
	if err != nil {
		return nil, err
	}
	return first, keyFault(checkOrgLimits(service, wanted.ID, wanted.Limits))
}

func orgNameProblems(name string) []string {
	if name == "" || len(name) > rest.MaxText || !rest.Printable(name) {
		return []string{fmt.Sprintf("name: must be 1 to %d bytes of printable text", rest.MaxText)}
	}
	return nil
}

// checkOrgLimits checks limits and gives them the id of their organisation.
func checkOrgLimits(service *keys.Service, id string, limits *definition.Session) error {
	if limits.OrgID != "" && limits.OrgID != id {
		return rest.BadRequest("Validation failed", "limits.org_id: must be "+id+", or be left out")
	}
	limits.OrgID = id
	return service.CheckOrg(id, limits)
}

// setOrgLimits stores the limits of the organisation that a call is about; nil removes
// them.
func (s *Server) setOrgLimits(ctx context.Context, c *rest.Call, limits *definition.Session) error {
	service, err := s.service(ctx, c)
	if err != nil {
		return err
	}
	ref, keep := orgRef(c.Who.Org), !c.Flag("reset_quota")
	if limits == nil {
		_, err = service.Delete(ctx, ref)
		if errors.Is(err, keys.ErrNotFound) {
			err = nil
		}
		return keyFault(err)
	}
	if err := checkOrgLimits(service, c.Who.Org, limits); err != nil {
		return keyFault(err)
	}
	_, err = service.Update(ctx, ref, limits, keep)
	if errors.Is(err, keys.ErrNotFound) {
		_, err = service.Create(ctx, ref.ID, limits, keep)
	}
	return keyFault(err)
}

// orgWarnings returns what callers should know who set limits of organisations.
func (s *Server) orgWarnings() []string {
	if s.deps.OrgLimits {
		return nil
	}
	return []string{"limits: are stored but not enforced: enforce_org_quotas is off in the configuration of this admin; turn it on here and on every gateway"}
}

func (s *Server) updateOrg(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	row, err := s.managedOrg(ctx, c)
	if err != nil {
		return nil, err
	}
	var wanted changedOrg
	if err := c.Decode(&wanted); err != nil {
		return nil, err
	}
	limits, err := wanted.limits()
	if err != nil {
		return nil, err
	}
	if err := store.CheckVersion(have, row.Version); err != nil {
		return nil, err
	}
	if wanted.Name != nil {
		if problems := orgNameProblems(*wanted.Name); problems != nil {
			return nil, rest.BadRequest("Validation failed", problems...)
		}
		row.Name = *wanted.Name
	}
	answer := rest.Done("Organisation updated", nil)
	if wanted.Limits != nil {
		if err := s.setOrgLimits(ctx, c, limits); err != nil {
			return nil, err
		}
		if limits != nil {
			answer.Warnings = s.orgWarnings()
		}
	}
	if err := s.deps.Store.RenameOrg(ctx, by, &row, have); err != nil {
		return nil, rest.Missing(err, noOrg)
	}
	s.log.Info("organisation changed", "org", row.ID, "by", by.Name)
	c.SetVersion(row.Version)
	return answer, nil
}

// limits returns the limits in the body, nil if they are to be removed or stay.
func (w *changedOrg) limits() (*definition.Session, error) {
	if w.Name == nil && w.Limits == nil {
		return nil, rest.BadRequest("Validation failed", "name or limits: one of them must be there")
	}
	if w.Limits == nil || bytes.Equal(w.Limits, []byte("null")) {
		return nil, nil
	}
	session, err := definition.ParseSession(w.Limits)
	if problems, ok := errors.AsType[*definition.Problems](err); ok {
		for i := range *problems {
			(*problems)[i].Path = "limits." + (*problems)[i].Path
		}
	}
	return session, err
}

func (s *Server) endOrg(ctx context.Context, c *rest.Call) (any, error) {
	home := c.Who.Home
	row, err := s.managedOrg(ctx, c)
	if err != nil {
		return nil, err
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		return change.EndOrg(ctx, home, c.Flag("force"))
	})
	if err != nil {
		return nil, rest.Missing(err, noOrg)
	}
	s.log.Info("organisation ended", "org", row.ID, "by", c.Who.Name)
	return rest.Done("Organisation ended", nil), nil
}

// actsForAll reports whether the caller may act for every organisation: gateways, which
// serve all of them, and admins of the first one.
func (s *Server) actsForAll(ctx context.Context, c *rest.Call) (bool, error) {
	switch c.Who.Role {
	case rest.Gateway:
		return true, nil
	case rest.Admin:
		return s.deps.Store.IsFirstOrg(ctx, c.Who.Home)
	}
	return false, nil
}

// mayActFor reports whether the caller may act for an organisation.
func (s *Server) mayActFor(ctx context.Context, c *rest.Call, org string) (bool, error) {
	if org == c.Who.Home {
		return true, nil
	}
	return s.actsForAll(ctx, c)
}

// mustManageOrgs refuses callers who may not change organisations and their limits.
func (s *Server) mustManageOrgs(ctx context.Context, c *rest.Call) error {
	may, err := s.actsForAll(ctx, c)
	if err == nil && !may {
		err = rest.Refuse(fasthttp.StatusForbidden, "access denied: only admins of the first organisation manage organisations and their limits")
	}
	return err
}

// actFor makes a call one about the organisation in the query, if the caller may act for
// it.
func (s *Server) actFor(ctx context.Context, c *rest.Call) error {
	wanted := c.Query("org_id")
	if wanted == "" || c.Who.Role == rest.Developer {
		return nil
	}
	c.OrgNamed = true
	if wanted == c.Who.Org {
		return nil
	}
	may, err := s.mayActFor(ctx, c, wanted)
	if err != nil {
		return err
	}
	if !may {
		return rest.Refuse(fasthttp.StatusForbidden, "access denied: org_id: you may act for organisation "+c.Who.Home+" alone")
	}
	if _, err := s.deps.Store.OrgByID(ctx, wanted); err != nil {
		return rest.Missing(err, "org_id: there is no such organisation")
	}
	c.Who.Org = wanted
	return nil
}

// claim makes a call one about the organisation in the object that it sends, which must
// be one that the caller may act for. Without one the call stays about the same.
func (s *Server) claim(ctx context.Context, c *rest.Call, org string) error {
	if org == "" || org == c.Who.Org {
		c.OrgNamed = c.OrgNamed || org != ""
		return nil
	}
	may, err := s.mayActFor(ctx, c, org)
	if err != nil {
		return err
	}
	if !may {
		return rest.Refuse(fasthttp.StatusForbidden, "access denied: org_id: must be "+c.Who.Home+", the organisation that you may act for, or be left out")
	}
	if c.OrgNamed {
		return rest.BadRequest("Validation failed", "org_id: must be "+c.Who.Org+", as in the query, or be left out")
	}
	if _, err := s.deps.Store.OrgByID(ctx, org); errors.Is(err, store.ErrNotFound) {
		return rest.BadRequest("Validation failed", "org_id: names no organisation")
	} else if err != nil {
		return err
	}
	c.Who.Org, c.OrgNamed = org, true
	return nil
}

// claimBody is claim for the object in the body of a call, bare or in the member that
// wraps it. What cannot be parsed is left to the handler.
func (s *Server) claimBody(ctx context.Context, c *rest.Call, wrapper string) error {
	body := c.HTTP.Request.Body()
	if wrapper != "" {
		body = unwrap(body, wrapper)
	}
	var object struct {
		Org json.RawMessage `json:"org_id"`
	}
	var org string
	if json.Unmarshal(body, &object) != nil || object.Org == nil || json.Unmarshal(object.Org, &org) != nil {
		return nil
	}
	return s.claim(ctx, c, org)
}

// locate makes a call of a gateway one about the organisation of the object that its
// path names: a gateway serves all organisations, and its callers name objects by their
// ids alone.
func (s *Server) locate(ctx context.Context, c *rest.Call, kind, id string) error {
	if c.Who.Role != rest.Gateway || c.OrgNamed {
		return nil
	}
	org, err := s.deps.Store.OrgOf(ctx, kind, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	c.Who.Org = org
	return nil
}
