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
)

// listedAPI is an API in a list.
type listedAPI struct {
	ID         string          `json:"api_id"`
	Name       string          `json:"name"`
	Version    int64           `json:"version" doc:"for If-Match"`
	CreatedAt  time.Time       `json:"created_at"`
	UpdatedAt  time.Time       `json:"updated_at"`
	Definition json.RawMessage `json:"api_definition"`
}

// apiList is one page of APIs.
type apiList struct {
	APIs  []listedAPI `json:"apis"`
	Pages int64       `json:"pages"`
}

func (s *Server) listAPIs(ctx context.Context, c *rest.Call) (any, error) {
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
	row, err := s.deps.Store.APIByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve API detail")
	}
	c.SetVersion(row.Version)
	return json.RawMessage(row.Definition), nil
}

func (s *Server) createAPI(ctx context.Context, c *rest.Call) (any, error) {
	api, from, err := s.readAPI(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	if api.ID == "" {
		api.ID = rest.NewID()
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		change.Fetched(from == schemas.Fetched)
		return change.CreateAPI(ctx, api)
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	answer := rest.Done("API created", api.ID)
	answer.ID = api.ID
	return answer, nil
}

func (s *Server) updateAPI(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	id := c.Param("id")
	stored, err := s.deps.Store.APIByID(ctx, c.Who.Org, id)
	if err != nil {
		return nil, rest.Missing(err, "API definition does not exist")
	}
	api, from, err := s.readAPI(ctx, c, &stored)
	if err != nil {
		return nil, err
	}
	if from == schemas.Kept && have == 0 {
		have = stored.Version // what was taken over must still be what is stored
	}
	if api.ID == "" {
		api.ID = id
	} else if api.ID != id {
		return nil, rest.BadRequest("api_id: must be " + id + ", as in the path, or be left out")
	}
	var version int64
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		change.Fetched(from == schemas.Fetched)
		version, err = change.UpdateAPI(ctx, api, have)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, "API definition does not exist")
	}
	c.SetVersion(version)
	return rest.Done("API updated", nil), nil
}

func (s *Server) deleteAPI(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
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

// validateAPI says what saving a definition would say, but for what it may
// collide with.
func (s *Server) validateAPI(_ context.Context, c *rest.Call) (any, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	warnings, err := schemas.Validate(parseAPI(body))
	if err != nil {
		return nil, err
	}
	return rest.Done("API definition is valid", map[string]any{"warnings": append([]string{}, warnings...)}), nil
}

// readAPI reads a definition from the body, bare or wrapped in "api_definition",
// to be saved in place of stored, which may be nil. Where it leaves out the
// GraphQL schema, that is the stored one, or else fetched from the upstream.
func (s *Server) readAPI(ctx context.Context, c *rest.Call, stored *store.API) (api *definition.API, from schemas.Origin, err error) {
	body, err := c.Body()
	if err != nil {
		return nil, from, err
	}
	var before *definition.API
	if stored != nil {
		before = new(definition.API)
		if err := json.Unmarshal(stored.Definition, before); err != nil {
			return nil, from, fmt.Errorf("reading API %s: %w", stored.ID, err)
		}
	}
	api, unread := parseAPI(body)
	from, err = s.schemas.Complete(ctx, api, unread, before)
	return api, from, err
}

// parseAPI reads a definition that is to be saved. What gateways would serve
// although it is hardly meant is an error here, where somebody can correct it.
func parseAPI(body []byte) (*definition.API, error) {
	api, err := definition.ParseAPI(unwrap(body, "api_definition"))
	problems := definition.Problems(api.Doubts())
	if wrong, ok := errors.AsType[*definition.Problems](err); ok {
		problems = append(problems, *wrong...)
	}
	if len(problems) == 0 {
		return api, err
	}
	return api, &problems
}

// unwrap returns the member of an object that holds what is meant, if there is
// one. What is not JSON stays as it is, for the parser to complain about.
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

// publish makes a change of configuration and tells of it in the log.
func (s *Server) publish(ctx context.Context, c *rest.Call, change func(context.Context, *store.Change) error) error {
	by := c.Author(c.Source())
	revision, err := s.portal.Publish(ctx, by, change)
	if err != nil {
		return err
	}
	s.log.Info("configuration changed", "revision", revision, "by", by.Name, "route", c.Route.Name())
	return nil
}
