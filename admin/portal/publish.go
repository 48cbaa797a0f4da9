package portal

import (
	"context"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/store"
)

// Publish changes the configuration as the store's Publish does, and tells the
// organisation's webhooks of the APIs that it changed, in the same transaction.
func (p *Portal) Publish(ctx context.Context, by store.Author, change func(context.Context, *store.Change) error) (revision int64, err error) {
	return p.store.Publish(ctx, by, func(ctx context.Context, c *store.Change) error {
		if err := change(ctx, c); err != nil {
			return err
		}
		return p.hooks.EmitAll(ctx, c.Tx(), apiEvents(by.Org, c))
	})
}

// apiEvent is what events about APIs hold: a definition may name upstreams and
// credentials, which leave the house in no message.
type apiEvent struct {
	ID       string `json:"api_id"`
	Name     string `json:"name"`
	Org      string `json:"org_id"`
	Revision int64  `json:"revision"` // of the configuration, that the change made
}

// apiEvents are the events of a change.
func apiEvents(org string, c *store.Change) (events []record.Event) {
	kinds := map[string]string{"created": record.APICreated, "updated": record.APIUpdated, "deleted": record.APIDeleted}
	for _, did := range c.Made() {
		if kind := kinds[did.Action]; did.Kind == "api" && kind != "" {
			events = append(events, record.Event{Org: org, Type: kind, Data: apiEvent{did.ID, did.Name, org, c.Revision()}})
		}
	}
	return events
}
