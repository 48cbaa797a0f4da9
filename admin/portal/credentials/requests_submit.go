package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// maxPending bounds the pending requests of a developer.
const maxPending = 100

// noRequest is the message about a request that does not exist.
const noRequest = "Could not retrieve key request."

// create answers POST: operators submit requests for developers, developers their own.
func (s *Requests) create(ctx context.Context, c *rest.Call) (any, error) {
	r, err := readRequest(c)
	if err != nil {
		return nil, err
	}
	if c.Who.Role == rest.Developer {
		return s.createOwn(ctx, c, r)
	}
	if err := s.checkDeveloper(ctx, c.Who.Org, r.ByUser); err != nil {
		return nil, err
	}
	a, err := s.resolve(ctx, c.Who.Org, r)
	if err != nil {
		return nil, err
	}
	row, err := s.row(rest.NewID(), c.Who.Org, a)
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	err = s.d.Keys.InTx(ctx, by, func(w *KeyTx) error {
		if _, err := w.Tx.HoldRequester(ctx, by.Org, r.ByUser); err != nil {
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

// submitted is the answer for a pending request.
func submitted(c *rest.Call, id string) *rest.Envelope {
	c.SetVersion(1)
	c.NoSecret()
	return rest.Done(id, nil)
}

func (s *Requests) checkDeveloper(ctx context.Context, org, id string) error {
	if id == "" {
		return rest.BadRequest("by_user: must be the id of the developer who asks")
	}
	found, err := s.d.Store.Requesters(ctx, org, []string{id})
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

func (s *Requests) insert(ctx context.Context, w *KeyTx, row *store.KeyRequest) (store.KeyRequest, error) {
	made, err := w.Tx.CreateKeyRequest(ctx, w.By, row)
	if err != nil {
		return made, err
	}
	return made, s.emit(ctx, w.Tx, model.RequestSubmitted, &made)
}

// emit raises an event about a request. It does not show who decided, as developers see
// it.
func (s *Requests) emit(ctx context.Context, tx *store.Tx, kind string, row *store.KeyRequest) error {
	r, err := s.recordOf(row)
	if err != nil {
		return err
	}
	r.DecidedBy = ""
	body, err := model.Write(r)
	if err != nil {
		return err
	}
	return s.d.Events.Emit(ctx, tx, model.Event{Org: row.OrgID, Developer: row.DeveloperID, Type: kind, Data: body})
}

// createOwn submits a developer's request. If no approval is required, the answer has
// the credential.
func (s *Requests) createOwn(ctx context.Context, c *rest.Call, r *model.KeyRequest) (any, error) {
	r.ByUser = c.Who.ID
	a, err := s.resolve(ctx, c.Who.Org, r)
	if err != nil {
		return nil, err
	}
	terms, err := s.terms(ctx, c.Who.Org, a)
	if err != nil {
		return nil, err
	}
	if terms.redirect != "" {
		return nil, elsewhere(c, terms.redirect)
	}
	if err := terms.check(a); err != nil {
		return nil, err
	}
	if err := a.normalise(); err != nil {
		return nil, err
	}
	row, err := s.row(rest.NewID(), c.Who.Org, a)
	if err != nil {
		return nil, err
	}
	var prepared *Password
	if !terms.approval && a.kind == Basic && a.hash == "" {
		if prepared, err = s.d.Keys.NewPassword(ctx); err != nil {
			return nil, err
		}
	}
	var shown *model.Credential
	by := c.Author("portal")
	err = s.d.Keys.InTx(ctx, by, func(w *KeyTx) error {
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

// normalise replaces the descriptive members of a developer's request by what approving
// it would give, for the operator who decides.
func (a *resolved) normalise() error {
	r := a.record
	if r.ForPlan != "" && len(r.ApplyPolicies) > 0 && !slices.Contains(a.policies, r.ForPlan) && !slices.Contains(r.ApplyPolicies, r.ForPlan) {
		return rest.BadRequest("for_plan: must be one of apply_policies, or be left out")
	}
	offers := make([]model.Entry, 0, len(a.entries))
	for _, e := range a.entries {
		offers = append(offers, *offered(e))
	}
	if r.Entry != nil {
		if r.Entry = nil; len(offers) > 0 {
			r.Entry = &offers[0]
		}
	}
	if r.Entries != nil {
		r.Entries = offers
	}
	return nil
}

// insertOwn adds a developer's request, unless too many are pending.
func (s *Requests) insertOwn(ctx context.Context, w *KeyTx, row *store.KeyRequest) (store.KeyRequest, error) {
	if _, err := w.Tx.LockRequester(ctx, w.By.Org, row.DeveloperID); err != nil {
		return store.KeyRequest{}, err
	}
	waiting, err := w.Tx.CountKeyRequests(ctx, w.By.Org, row.DeveloperID, string(Pending))
	if err != nil {
		return store.KeyRequest{}, err
	}
	if waiting >= maxPending {
		return store.KeyRequest{}, rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("%d requests wait for a decision, which is the most; wait, or delete one", waiting))
	}
	return s.insert(ctx, w, row)
}

// terms are the rules for requests for some entries.
type terms struct {
	approval bool     // approval is required
	multiple bool     // one request may name several policies
	redirect string   // where requests are made instead; "" for here
	required []string // fields
}

// terms returns the strictest rules of all entries.
func (s *Requests) terms(ctx context.Context, org string, a *resolved) (*terms, error) {
	t := &terms{multiple: true}
	entries := a.entries
	if len(entries) == 0 { // a change that only removes policies
		entries = []*model.Entry{nil}
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

// elsewhere refuses a request that is to be made on another page, to which browsers are
// sent. Programs, which would follow the redirect and take the page for the answer, get 403.
func elsewhere(c *rest.Call, page string) error {
	status := fasthttp.StatusForbidden
	if strings.Contains(string(c.HTTP.Request.Header.Peek(fasthttp.HeaderAccept)), "text/html") {
		status = fasthttp.StatusSeeOther
	}
	fault := rest.Refuse(status, "Keys are not requested here, but at "+page)
	fault.Header = map[string]string{fasthttp.HeaderLocation: page}
	return fault
}

// check refuses requests that developers cannot make.
func (t *terms) check(a *resolved) error {
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
