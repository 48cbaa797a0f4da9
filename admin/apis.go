package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/redact"
)

func (s *Server) apiRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/apis", Summary: "List APIs", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Query: append(apiRowQuery, rest.Searching...), Reply: apiList{}, Rows: apiRows{}, Handle: s.listAPIs,
		},
		{
			Method: "GET", Path: "/api/apis/search", Summary: "Search APIs by name or id", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Query: append(apiRowQuery, rest.Searching...), Reply: apiList{}, Rows: apiRows{}, Handle: s.listAPIs,
		},
		{
			Method: "POST", Path: "/api/apis", Summary: "Create an API", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Query: strictly, Body: definition.API{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.createAPI,
		},
		{
			Method: "POST", Path: "/api/apis/validate", Summary: "Check a definition without saving it", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Query: append([]string{"report"}, strictly...), Body: definition.API{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Handle: rest.Reported(s.validateAPI),
		},
		{
			Method: "GET", Path: "/api/apis/{id}", Summary: "Get an API's definition", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Reply: definition.API{}, Wrong: []int{404}, Handle: s.getAPI,
		},
		{
			Method: "PUT", Path: "/api/apis/{id}", Summary: "Replace an API's definition", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Query: strictly, Body: definition.API{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateAPI,
		},
		{
			Method: "DELETE", Path: "/api/apis/{id}", Summary: "Delete an API", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Query: []string{"force"}, Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.deleteAPI,
		},
		{
			Method: "DELETE", Path: "/api/apis/{id}/cache", Summary: "Have every gateway forget the answers that it keeps for an API", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.forgetAnswers,
		},
	}
}

// listedAPI is an API in a list.
type listedAPI struct {
	// Id of the API.
	ID string `json:"api_id"`
	// Name of the API.
	Name string `json:"name"`
	// Version of the object, for If-Match; it grows with each change.
	Version int64 `json:"version"`
	// Time at which the API was created.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last change.
	UpdatedAt time.Time `json:"updated_at"`
	// Definition of the API, as GET /api/apis/{id} answers it; secrets are masked for users below
	// editor.
	Definition rest.Raw[definition.API] `json:"api_definition"`
}

// apiList is one page of APIs.
type apiList struct {
	// APIs of the page; empty beyond the last page.
	APIs []listedAPI `json:"apis"`
	// Number of pages that the search has.
	Pages int64 `json:"pages"`
}

func (s *Server) listAPIs(ctx context.Context, c *rest.Call) (any, error) {
	if rows, err := rest.WantsRows(c, "kind", "auth", "active", "label"); err != nil || rows {
		return s.answerRows(ctx, c, err, s.listAPIRows)
	}
	page, err := c.Page(true)
	if err != nil {
		return nil, err
	}
	sort, err := c.Sort()
	if err != nil {
		return nil, err
	}
	rows, total, err := s.deps.Store.ListAPIs(ctx, c.Who.Org, c.Query("q"), sort, page)
	if err != nil {
		return nil, err
	}
	list := apiList{APIs: make([]listedAPI, 0, len(rows)), Pages: rest.Pages(total, page)}
	for _, row := range rows {
		list.APIs = append(list.APIs, listedAPI{
			ID: row.ID, Name: row.Name, Version: row.Version,
			CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, Definition: row.Definition,
		})
	}
	return list, nil
}

func (s *Server) getAPI(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.locate(ctx, c, store.APIObject, c.Param("id")); err != nil {
		return nil, err
	}
	row, err := s.deps.Store.APIByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve API detail")
	}
	c.SetVersion(row.Version)
	return json.RawMessage(row.Definition), nil
}

func (s *Server) createAPI(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.claimBody(ctx, c, "api_definition"); err != nil {
		return nil, err
	}
	given, err := s.readAPI(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	api := given.API
	if api.ID == "" {
		api.ID = rest.NewID()
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		change.Fetched(given.from == schemas.Fetched)
		return change.CreateAPI(ctx, api)
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	answer := rest.Done("API created", api.ID)
	answer.ID, answer.Warnings = api.ID, given.warnings
	return answer, nil
}

func (s *Server) updateAPI(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	id := c.Param("id")
	if err := s.claimBody(ctx, c, "api_definition"); err != nil {
		return nil, err
	}
	if err := s.locate(ctx, c, store.APIObject, id); err != nil {
		return nil, err
	}
	stored, err := s.deps.Store.APIByID(ctx, c.Who.Org, id)
	if err != nil {
		return nil, rest.Missing(err, "API definition does not exist")
	}
	given, err := s.readAPI(ctx, c, &stored)
	if err != nil {
		return nil, err
	}
	api := given.API
	if have == 0 && (given.from == schemas.Kept || redact.HasMask(c.HTTP.Request.Body())) {
		have = stored.Version // what was taken over must still be what is stored
	}
	if api.ID == "" {
		api.ID = id
	} else if api.ID != id {
		return nil, rest.BadRequest("api_id: must be " + id + ", as in the path, or be left out")
	}
	var version int64
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		change.Fetched(given.from == schemas.Fetched)
		version, err = change.UpdateAPI(ctx, api, have)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, "API definition does not exist")
	}
	c.SetVersion(version)
	answer := rest.Done("API updated", nil)
	answer.Warnings = given.warnings
	return answer, nil
}

func (s *Server) deleteAPI(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	if err := s.locate(ctx, c, store.APIObject, c.Param("id")); err != nil {
		return nil, err
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		return change.DeleteAPI(ctx, c.Param("id"), have, c.Flag("force"))
	})
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve API detail")
	}
	return rest.Done("API deleted", nil), nil
}

// validateAPI reports the problems that saving a definition would report, but for
// conflicts with other APIs.
func (s *Server) validateAPI(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.claimBody(ctx, c, "api_definition"); err != nil {
		return nil, err
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	api, unknown, unread := parseAPI(c, body, nil)
	warnings, err := s.schemas.Validate(ctx, c.Who.Org, api, unread)
	if err != nil {
		return nil, err
	}
	outdated, err := s.schemas.Outdated(ctx, c.Who.Org, api)
	if err != nil {
		return nil, err
	}
	effects, err := s.effectsOf(ctx, c.Who.Org, api)
	if err != nil {
		return nil, err
	}
	warnings = append(append(warnings, outdated...), schemas.Warnings(effects)...)
	if err := s.deps.Store.CheckHooks(ctx, c.Who.Org, api); err != nil {
		return nil, err
	}
	answer := rest.Done("API definition is valid", map[string]any{"warnings": append([]string{}, warnings...), "effects": effects})
	answer.Warnings = unknown
	return answer, nil
}

// effectsOf returns what saving a valid definition would mean for the clients of GraphQL
// APIs.
func (s *Server) effectsOf(ctx context.Context, org string, api *definition.API) ([]*schemas.ClientEffect, error) {
	if !api.IsGraphQL() || api.ID == "" {
		return []*schemas.ClientEffect{}, nil
	}
	row, err := s.deps.Store.APIByID(ctx, org, api.ID)
	if errors.Is(err, store.ErrNotFound) {
		return []*schemas.ClientEffect{}, nil
	}
	if err != nil {
		return nil, err
	}
	before := new(definition.API)
	if err := json.Unmarshal(row.Definition, before); err != nil {
		return nil, fmt.Errorf("reading API %s: %w", row.ID, err)
	}
	return s.schemas.EffectsOnClients(ctx, org, api, before)
}

// A givenAPI is a definition that is to be saved.
type givenAPI struct {
	*definition.API
	from     schemas.Origin
	warnings []string // about its unknown members, and about clients
}

// readAPI reads a definition from the body, bare or in the member api_definition.
// Stored is the definition that it replaces, or nil. Masked secrets stay as they are
// stored. If the body has no GraphQL schema, the stored one is kept, or else the schema is
// fetched from the upstream.
func (s *Server) readAPI(ctx context.Context, c *rest.Call, stored *store.API) (*givenAPI, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	var before *definition.API
	var was []byte
	if stored != nil {
		before, was = new(definition.API), stored.Definition
		if err := json.Unmarshal(was, before); err != nil {
			return nil, fmt.Errorf("reading API %s: %w", stored.ID, err)
		}
	}
	api, warnings, unread := parseAPI(c, body, was)
	from, err := s.schemas.Complete(ctx, c.Who.Org, api, unread, before)
	if err != nil {
		return nil, err
	}
	outdated, err := s.schemas.Outdated(ctx, c.Who.Org, api)
	if err != nil {
		return nil, err
	}
	effects, err := s.schemas.EffectsOnClients(ctx, c.Who.Org, api, before)
	return &givenAPI{api, from, append(append(warnings, outdated...), schemas.Warnings(effects)...)}, err
}

// restored returns an object to be saved with the stored secrets in place of their masks.
// stored is nil for a new object. The problems name masks that stand for nothing.
func restored(body, stored []byte) (complete []byte, problems definition.Problems) {
	complete, unrestorable := redact.Restore(body, stored)
	for _, path := range unrestorable {
		problems = append(problems, definition.Problem{Path: path, Message: redact.Unrestorable})
	}
	return complete, problems
}

// parseAPI parses a definition to be saved. What gateways would serve, but probably not
// as intended, is an error here, where the author can correct it.
// stored is the definition that it replaces, or nil.
func parseAPI(c *rest.Call, body, stored []byte) (api *definition.API, unknown []string, err error) {
	inner := unwrap(body, "api_definition")
	return parseInner(c, inner, stored, len(inner) < len(body) && isStrict(body))
}

// parseInner is parseAPI for a bare definition.
func parseInner(c *rest.Call, inner, stored []byte, strict bool) (api *definition.API, unknown []string, err error) {
	complete, problems := restored(inner, stored)
	api, err = definition.ParseAPI(complete)
	problems = append(append(problems, api.Warnings()...), api.GatewayFiles()...)
	unknown, refused := unknownMembers(c, api, strict)
	problems = append(problems, refused...)
	if wrong, ok := errors.AsType[*definition.Problems](err); ok {
		problems = append(problems, *wrong...)
	}
	if len(problems) == 0 {
		return api, unknown, err
	}
	return api, nil, &problems
}

// strictly are the parameters of calls that take an object.
var strictly = []string{"strict"}

// unknownMembers returns warnings about the unknown members of an object, or problems if
// the call is strict: by its query, by the member strict, or otherwise.
func unknownMembers(c *rest.Call, of definition.Object, strict bool) (warnings []string, refused definition.Problems) {
	strict = of.TakeSwitch("strict") || strict || c.Flag("strict")
	unknown := of.UnknownMembers()
	switch {
	case strict:
		return nil, unknown
	case len(unknown) == 0:
		return nil, nil
	}
	return unknown.Texts(), nil
}

// isStrict reports whether an object that wraps a definition has strict: true.
func isStrict(body []byte) bool {
	var outer struct {
		Strict json.RawMessage `json:"strict"`
	}
	return json.Unmarshal(body, &outer) == nil && string(outer.Strict) == "true"
}

// unwrap returns the member name of an object, or the body itself without one. Text
// that is not JSON is returned as it is, for the parser to reject.
func unwrap(body []byte, name string) []byte {
	if !strings.Contains(string(body[:min(len(body), 1<<10)]), name) {
		return body // the usual case, decided without decoding everything
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) == nil && len(outer[name]) > 0 && outer[name][0] == '{' {
		return outer[name]
	}
	return body
}

// publish makes a change of the configuration and logs it.
func (s *Server) publish(ctx context.Context, c *rest.Call, change func(context.Context, *store.Change) error) error {
	by := c.Author(c.Source())
	revision, err := s.deps.Store.Publish(ctx, by, change)
	if err != nil {
		return err
	}
	s.log.Info("configuration changed", "revision", revision, "by", by.Name, "route", c.Route.Name())
	return nil
}
