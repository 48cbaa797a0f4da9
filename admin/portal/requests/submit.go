package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/requests"
)

// maxPending is how many requests of a developer may wait for a decision.
const maxPending = 100

// noRequest is the answer about a request that is not there.
const noRequest = "Could not retrieve key request."

// create answers POST: an operator asks for a developer, a developer for
// themselves.
func (s *Service) create(ctx context.Context, c *rest.Call) (any, error) {
	r, err := read(c)
	if err != nil {
		return nil, err
	}
	if c.Who.Role == rest.Developer {
		return s.createOwn(ctx, c, r)
	}
	if err := s.checkDeveloper(ctx, c.Who.Org, r.ByUser); err != nil {
		return nil, err
	}
	a, err := s.ask(ctx, c.Who.Org, r)
	if err != nil {
		return nil, err
	}
	row, err := s.row(rest.NewID(), c.Who.Org, a)
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	err = s.d.Credentials.InTx(ctx, by, func(w *credentials.Work) error {
		if _, err := kept.HoldRequester(ctx, w.Tx, by.Org, r.ByUser); err != nil {
			return unknownDeveloper(err, r.ByUser)
		}
		_, err := s.insert(ctx, w, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("key request submitted", "request", row.ID, "by", c.Who.Name)
	return submitted(c, row.ID), nil
}

// submitted is the answer about a request that waits.
func submitted(c *rest.Call, id string) *rest.Envelope {
	c.SetVersion(1)
	c.NoSecret()
	return rest.Done(id, nil)
}

func (s *Service) checkDeveloper(ctx context.Context, org, id string) error {
	if id == "" {
		return rest.BadRequest("by_user: must be the id of the developer who asks")
	}
	found, err := kept.Requesters(ctx, s.d.Store, org, []string{id})
	if err == nil && len(found) == 0 {
		err = unknownDeveloper(store.ErrNotFound, id)
	}
	return err
}

func unknownDeveloper(err error, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return rest.BadRequest(fmt.Sprintf("by_user: developer %.80q does not exist", id))
	}
	return err
}

func (s *Service) insert(ctx context.Context, w *credentials.Work, row *kept.Request) (kept.Request, error) {
	made, err := kept.Insert(ctx, w.Tx, w.By, row)
	if err != nil {
		return made, err
	}
	return made, s.emit(ctx, w.Tx, record.RequestSubmitted, &made)
}

// emit tells of a request: developers as well, who do not see who decided.
func (s *Service) emit(ctx context.Context, tx *store.Tx, kind string, row *kept.Request) error {
	r, err := s.recordOf(row)
	if err != nil {
		return err
	}
	r.DecidedBy = ""
	body, err := record.Write(r)
	if err != nil {
		return err
	}
	return s.d.Events.Emit(ctx, tx, record.Event{Org: row.OrgID, Developer: row.DeveloperID, Type: kind, Data: body})
}

// createOwn answers a developer, at once with the credential where nobody has to
// approve.
func (s *Service) createOwn(ctx context.Context, c *rest.Call, r *record.KeyRequest) (any, error) {
	r.ByUser = c.Who.ID
	a, err := s.ask(ctx, c.Who.Org, r)
	if err != nil {
		return nil, err
	}
	terms, err := s.terms(ctx, c.Who.Org, a)
	if err != nil {
		return nil, err
	}
	if err := terms.check(a); err != nil {
		return nil, err
	}
	if err := a.settle(); err != nil {
		return nil, err
	}
	row, err := s.row(rest.NewID(), c.Who.Org, a)
	if err != nil {
		return nil, err
	}
	var prepared *credentials.Password
	if !terms.approval && a.kind == credentials.Basic && a.hash == "" {
		if prepared, err = s.d.Credentials.NewPassword(ctx); err != nil {
			return nil, err
		}
	}
	var shown *record.Credential
	by := c.Author("portal")
	err = s.d.Credentials.InTx(ctx, by, func(w *credentials.Work) error {
		made, err := s.insertOwn(ctx, w, row)
		if err != nil || terms.approval {
			return err
		}
		credential, err := s.approveLocked(ctx, w, &made, prepared)
		shown = &credential
		return err
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("key request submitted", "request", row.ID, "by", c.Who.Name, "approved", shown != nil)
	if shown == nil {
		return submitted(c, row.ID), nil
	}
	c.SetVersion(2)
	return rest.Done(row.ID, shown), nil
}

// settle has a developer's record say what approving it comes to, whatever they
// wrote about that: who decides reads it.
func (a *asked) settle() error {
	r := a.record
	if r.ForPlan != "" && len(r.ApplyPolicies) > 0 && !slices.Contains(a.policies, r.ForPlan) && !slices.Contains(r.ApplyPolicies, r.ForPlan) {
		return rest.BadRequest("for_plan: must be one of apply_policies, or be left out")
	}
	offered := make([]record.Entry, 0, len(a.entries))
	for _, e := range a.entries {
		offered = append(offered, record.Entry{
			ID: e.ID, Name: e.Name, ShortDescription: e.ShortDescription, Show: e.Show, APIID: e.APIID, PolicyID: e.PolicyID,
			Documentation: e.Documentation, Version: e.Version, Fields: e.Fields, AuthType: e.AuthType,
		})
	}
	if r.Entry != nil {
		if r.Entry = nil; len(offered) > 0 {
			r.Entry = &offered[0]
		}
	}
	if r.Entries != nil {
		r.Entries = offered
	}
	return nil
}

// insertOwn adds a developer's request, unless too many of theirs wait.
func (s *Service) insertOwn(ctx context.Context, w *credentials.Work, row *kept.Request) (kept.Request, error) {
	if _, err := kept.LockRequester(ctx, w.Tx, w.By.Org, row.DeveloperID); err != nil {
		return kept.Request{}, err
	}
	waiting, err := kept.CountOf(ctx, w.Tx, w.By.Org, row.DeveloperID, string(Pending))
	if err != nil {
		return kept.Request{}, err
	}
	if waiting >= maxPending {
		return kept.Request{}, rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("%d requests wait for a decision, which is the most; wait, or delete one", waiting))
	}
	return s.insert(ctx, w, row)
}

// terms are what a portal says of requests for some entries.
type terms struct {
	approval bool     // somebody has to approve
	multiple bool     // several policies may be asked for at once
	redirect string   // where requests are made instead; "" here
	required []string // fields
}

// terms are those of all entries together: the strictest hold.
func (s *Service) terms(ctx context.Context, org string, a *asked) (*terms, error) {
	t := &terms{multiple: true}
	entries := a.entries
	if len(entries) == 0 { // of a change that only takes
		entries = []*record.Entry{nil}
	}
	for _, e := range entries {
		config, err := s.d.Catalogue.ConfigurationFor(ctx, org, e)
		if err != nil {
			return nil, err
		}
		t.approval = t.approval || config.RequireKeyApproval
		t.multiple = t.multiple && config.EnableMultiSelection
		if config.RedirectOnKeyRequest && t.redirect == "" {
			t.redirect = config.RedirectTo
		}
		t.required = append(t.required, config.KeyRequestFields...)
	}
	return t, nil
}

// check refuses what developers cannot ask for.
func (t *terms) check(a *asked) error {
	if t.redirect != "" {
		fault := rest.Refuse(fasthttp.StatusForbidden, "Keys are not requested here, but at "+t.redirect)
		fault.Header = map[string]string{fasthttp.HeaderLocation: t.redirect}
		return fault
	}
	if len(a.policies) > 1 && !t.multiple {
		return rest.BadRequest("apply_policies: one policy at a time can be asked for")
	}
	for i, e := range a.entries {
		switch {
		case e == nil || !e.Show:
			return rest.BadRequest(fmt.Sprintf("apply_policies: policy %.80q is not offered", a.policies[i]))
		case e.IsKeyless:
			return rest.BadRequest(fmt.Sprintf("apply_policies: no key is needed for %.80q", e.Name))
		}
	}
	if missing := missingFields(a.record, t.required); missing != nil {
		return rest.BadRequest("fields: must have " + strings.Join(missing, ", "))
	}
	return nil
}
