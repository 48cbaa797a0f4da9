package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"

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
	// Handlers of all APIs of the organisation, by name of the API and event.
	Handlers []handlerRow `json:"handlers"`
}

// handlerRow is one handler of one event of an API.
type handlerRow struct {
	// Id of the API that has the handler.
	API string `json:"api_id"`
	// Name of the API that has the handler.
	Name string `json:"api_name"`
	// Event that the handler is for.
	// Example: "QuotaExceeded"
	Event string `json:"event"`
	// Kind of the handler: eh_log_handler writes a line to the log, eh_web_hook_handler calls a
	// webhook.
	Handler string `json:"handler" enum:"eh_log_handler,eh_web_hook_handler"`
	// Scheme and host of a webhook, or the text in front of a line of the log. The path of a webhook
	// is never shown.
	// Example: "https://hooks.example"
	Target string `json:"target"`
	// Seconds in which the same message is not sent again; 0: it is always sent.
	Cooldown int64 `json:"event_timeout"`
	// Whether the handler is switched off in the definition.
	Disabled bool `json:"disabled"`
}

// A handlerMemo keeps the lists of handlers of one revision, by organisation: finding them
// reads every definition.
type handlerMemo struct {
	mu    sync.Mutex
	at    int64 // revision
	lists map[string]handlerList
}

// get returns the list of an organisation, if it is that of a revision.
func (m *handlerMemo) get(org string, revision int64) (handlerList, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, found := m.lists[org]
	return list, found && m.at == revision
}

// mostMemo bounds the organisations whose lists are kept.
const mostMemo = 100

func (m *handlerMemo) put(org string, revision int64, list handlerList) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lists == nil || revision != m.at || len(m.lists) >= mostMemo {
		m.at, m.lists = revision, make(map[string]handlerList)
	}
	m.lists[org] = list
}

func (s *Server) listHandlers(ctx context.Context, c *rest.Call) (any, error) {
	// Read before the definitions: a change meanwhile makes what is kept outdated, never
	// the other way round.
	state, err := s.deps.Store.State(ctx)
	if err != nil {
		return nil, err
	}
	if list, found := s.handlers.get(c.Who.Org, state.Revision); found {
		return list, nil
	}
	list, err := s.findHandlers(ctx, c.Who.Org)
	if err == nil {
		s.handlers.put(c.Who.Org, state.Revision, list)
	}
	return list, err
}

// findHandlers returns the handlers of an organisation's APIs.
func (s *Server) findHandlers(ctx context.Context, org string) (list handlerList, err error) {
	rows, err := s.deps.Store.EventHandlers(ctx, org)
	if err != nil {
		return list, err
	}
	hooks, err := s.deps.Store.Hooks(ctx, org)
	if err != nil {
		return list, err
	}
	stored := func(id string) *definition.Webhook {
		for i := range hooks {
			if hooks[i].Webhook.ID == id {
				return &hooks[i].Webhook
			}
		}
		return nil
	}
	list = handlerList{Handlers: []handlerRow{}}
	for _, row := range rows {
		var some struct {
			Handlers *definition.EventHandlers `json:"event_handlers"`
		}
		if err := json.Unmarshal(row.Definition, &some); err != nil {
			return list, fmt.Errorf("reading the event handlers of API %s: %w", row.ID, err)
		}
		if some.Handlers == nil {
			continue
		}
		api := definition.API{EventHandlers: some.Handlers}
		api.TakeWebhooks(stored)
		events := api.EventHandlers.Events
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
