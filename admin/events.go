package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/definition"
)

func (s *Server) eventRoutes() []rest.Route {
	return []rest.Route{{
		Method: "GET", Path: "/api/events", Summary: "List the handlers of events of all APIs; of addresses the host alone", Tag: "Configuration", Role: rest.Viewer,
		Reply: handlerList{}, Handle: s.listHandlers,
	}}
}

// handlerList are the handlers of events, by API and event.
type handlerList struct {
	Handlers []handlerRow `json:"handlers"`
}

// handlerRow is one handler of one event of an API.
type handlerRow struct {
	API      string `json:"api_id"`
	Name     string `json:"api_name"`
	Event    string `json:"event"`
	Handler  string `json:"handler" enum:"eh_log_handler,eh_web_hook_handler"`
	Target   string `json:"target" doc:"host of a webhook, or the text in front of a line of the log"`
	Cooldown int64  `json:"event_timeout" doc:"seconds in which the same message is not sent again"`
	Disabled bool   `json:"disabled"`
}

func (s *Server) listHandlers(ctx context.Context, c *rest.Call) (any, error) {
	rows, err := s.deps.Store.EventHandlers(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	list := handlerList{Handlers: []handlerRow{}}
	for _, row := range rows {
		var api struct {
			Handlers struct {
				Events map[string][]definition.EventHandler `json:"events"`
			} `json:"event_handlers"`
		}
		if err := json.Unmarshal(row.Definition, &api); err != nil {
			return nil, fmt.Errorf("reading the event handlers of API %s: %w", row.ID, err)
		}
		events := api.Handlers.Events
		for _, event := range slices.Sorted(maps.Keys(events)) {
			for _, h := range events[event] {
				one := handlerRow{API: row.ID, Name: row.Name, Event: event, Handler: h.Name, Target: h.Meta.Prefix, Cooldown: h.Meta.Cooldown, Disabled: h.Meta.Disabled}
				if target, err := url.Parse(h.Meta.Target); err == nil && target.Host != "" {
					one.Target = target.Scheme + "://" + target.Host // the path of a webhook is often its credential
				}
				list.Handlers = append(list.Handlers, one)
			}
		}
	}
	return list, nil
}
