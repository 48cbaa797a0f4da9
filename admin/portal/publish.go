package portal

import (
	"context"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/portal/webhooks"
	"github.com/sluicegate/sluice/admin/store"
)

// raiseAPIEvents returns a hook that queues the messages about the APIs that a change
// of the configuration created, updated or deleted.
func raiseAPIEvents(hooks *webhooks.Service) store.PublishHook {
	return func(ctx context.Context, by store.Author, c *store.Change) error {
		return hooks.EmitAll(ctx, c.Tx(), apiEvents(by.Org, c))
	}
}

// apiEvent is the data of an event about an API. The definition is left out: it may
// hold addresses of upstreams and credentials.
type apiEvent struct {
	ID       string `json:"api_id"`
	Name     string `json:"name"`
	Org      string `json:"org_id"`
	Revision int64  `json:"revision"` // of the configuration, that the change made
}

// apiEvents returns the events of a change.
func apiEvents(org string, c *store.Change) (events []model.Event) {
	types := map[string]string{"created": model.APICreated, "updated": model.APIUpdated, "deleted": model.APIDeleted}
	for _, made := range c.Made() {
		if event := types[made.Action]; made.Kind == "api" && event != "" {
			events = append(events, model.Event{Org: org, Type: event, Data: apiEvent{made.ID, made.Name, org, c.Revision()}})
		}
	}
	return events
}
