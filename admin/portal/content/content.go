// Package content is what an organisation writes for its portal besides the catalogue:
// pages in Markdown, and the menu that leads to them.
package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// Visitor returns the organisation of a call that needs no credential.
type Visitor func(ctx context.Context, c *rest.Call) (org string, err error)

// Service keeps pages and menus. Make one with New.
type Service struct {
	store   *store.Store
	visitor Visitor
}

// New returns a Service.
func New(st *store.Store, visitor Visitor) *Service { return &Service{st, visitor} }

const tag = "Catalogue"

// Routes lists the routes of pages and menus.
func (s *Service) Routes() []rest.Route {
	const pages, menus, public = "/api/portal/pages", "/api/portal/menus", "/api/portal/public"
	all := []rest.Route{
		{
			Method: "GET", Path: pages, Summary: "Get the pages that the organisation wrote for its portal", Tag: tag, Role: rest.Viewer,
			Reply: Pages{}, Handle: s.getPages,
		},
		{
			Method: "POST", Path: pages, Summary: "Create the portal's pages", Tag: tag, Role: rest.Editor,
			Body: Pages{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.postPages,
		},
		{
			Method: "PUT", Path: pages, Summary: "Replace the portal's pages", Tag: tag, Role: rest.Editor,
			Body: Pages{}, Reply: rest.Envelope{}, Match: true, Wrong: []int{400, 409, 413, 415}, Handle: s.putPages,
		},
		{
			Method: "GET", Path: menus, Summary: "Get the menu of the portal", Tag: tag, Role: rest.Viewer,
			Reply: Menu{}, Handle: s.getMenu,
		},
		{
			Method: "POST", Path: menus, Summary: "Create the menu of the portal", Tag: tag, Role: rest.Editor,
			Body: Menu{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.postMenu,
		},
		{
			Method: "PUT", Path: menus, Summary: "Replace the menu of the portal", Tag: tag, Role: rest.Editor,
			Body: Menu{}, Reply: rest.Envelope{}, Match: true, Wrong: []int{400, 409, 413, 415}, Handle: s.putMenu,
		},
		{
			Method: "GET", Path: public + "/menu", Summary: "The menu of the portal, for its pages", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Reply: ShownMenu{}, Wrong: []int{404, 503}, Handle: s.showMenu,
		},
		{
			Method: "GET", Path: public + "/pages/{path}", Summary: "One page of the portal, made safe to show", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Reply: ShownPage{}, Wrong: []int{404, 503}, Handle: s.showPage,
		},
	}
	return append(all, refusedRoutes()...)
}

// refusedRoutes are the routes for an organisation's own style sheets and scripts. They
// answer why the portal does not take any.
func refusedRoutes() (all []rest.Route) {
	for _, kind := range []struct{ path, what string }{{"/api/portal/css", "style sheets"}, {"/api/portal/js", "scripts"}} {
		message := "The portal takes no " + kind.what + " of an organisation's own: they would run in the origin where developers sign in. " +
			"PUT /api/portal/brand sets its name, logo, colours, texts and links, and PUT /api/portal/pages adds pages"
		refuse := func(context.Context, *rest.Call) (any, error) { return nil, rest.Refuse(fasthttp.StatusGone, message) }
		for _, method := range []string{"GET", "POST", "PUT"} {
			role := rest.Editor
			if method == "GET" {
				role = rest.Viewer
			}
			all = append(all, rest.Route{
				Method: method, Path: kind.path, Summary: "Refused: the portal takes no " + kind.what + "; see /api/portal/brand", Tag: tag, Role: role,
				Reply: rest.Envelope{}, Wrong: []int{fasthttp.StatusGone}, Handle: refuse,
			})
		}
	}
	return all
}

// load decodes an organisation's object into a value, and returns its version; 0: there is
// none, and the value is left as it is.
func (s *Service) load(ctx context.Context, org string, kind store.PortalObjectKind, into any) (id string, version int64, err error) {
	row, err := s.store.PortalObject(ctx, org, kind)
	if errors.Is(err, store.ErrNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	if err := json.Unmarshal(row.Body, into); err != nil {
		return "", 0, fmt.Errorf("reading the stored portal %s: %w", kind, err)
	}
	return row.ID, row.Version, nil
}

// A sending is an object as a call sends it.
type sending struct {
	kind  store.PortalObjectKind
	id    string // as it was sent; "": that of the stored object, or a new one
	value any    // what is stored, beside its id
	fresh bool   // there must be none yet

	body []byte // value as JSON
	have int64  // version that the caller saw; 0: any
}

// save stores an object in place of the one that the organisation has.
func (s *Service) save(ctx context.Context, c *rest.Call, sent sending) (any, error) {
	var err error
	if sent.have, err = c.IfMatch(); err != nil {
		return nil, err
	}
	if sent.body, err = rest.Encode(sent.value); err != nil {
		return nil, err
	}
	var row store.PortalObject
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		row, err = saveIn(ctx, tx, c, &sent)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(row.Version)
	if sent.fresh {
		return rest.Done(row.ID, nil), nil
	}
	return rest.Done("Data updated", nil), nil
}

func saveIn(ctx context.Context, tx *store.Tx, c *rest.Call, sent *sending) (store.PortalObject, error) {
	row, err := tx.LockPortalObject(ctx, c.Who.Org, sent.kind)
	none := errors.Is(err, store.ErrNotFound)
	if err != nil && !none {
		return row, err
	}
	by := c.Author(c.Source())
	switch {
	case !none && sent.fresh:
		f := rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("There are portal %s already, with the id %s; PUT replaces them", sent.kind, row.ID))
		f.ETag = rest.ETagOf(row.Version)
		return row, f
	case !none && sent.id != "" && sent.id != row.ID:
		return row, rest.BadRequest("id: must be " + row.ID + ", or be left out")
	}
	if err := store.CheckVersion(sent.have, row.Version); err != nil {
		return row, err
	}
	if none {
		row = store.PortalObject{Kind: string(sent.kind), ID: rest.NewID(), Body: sent.body, Version: 1}
		return row, tx.CreatePortalObject(ctx, by, &row)
	}
	row.Version, err = tx.ReplacePortalObject(ctx, by, &row, sent.body)
	return row, err
}

// refuse answers a call whose body has problems.
func refuse(problems []string) error {
	message := "Validation failed"
	if len(problems) == 1 {
		message += ": " + problems[0]
	}
	return rest.BadRequest(message, problems...)
}
