package webhooks

import (
	"context"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

const noWebhook = "Webhook does not exist"

// Routes lists the routes of webhooks.
func (s *Service) Routes() []rest.Route {
	all := []rest.Route{{
		Method: "GET", Path: "/api/portal/webhooks/events", Summary: "List the types of events that webhooks can subscribe to", Tag: "Webhooks", Role: rest.Viewer, Developer: true,
		Query: []string{"developer"}, Reply: Types{}, Handle: s.listTypes,
	}, s.ingestRoute()}
	all = append(all, s.routes(routeSet{"/api/portal/webhooks", "Webhooks", rest.Viewer, rest.Approver, []string{"q", "developer", "p", "page_size"}})...)
	return append(all, s.routes(routeSet{"/api/portal/me/webhooks", "Portal", rest.Developer, rest.Developer, rest.Paging})...)
}

// routeSet configures the routes of operators or of developers.
type routeSet struct {
	path, tag   string
	read, write rest.Role
	query       []string // of the list
}

func (s *Service) routes(d routeSet) []rest.Route {
	one := d.path + "/{id}"
	return []rest.Route{
		{
			Method: "GET", Path: d.path, Summary: "List webhooks", Tag: d.tag, Role: d.read,
			Query: d.query, Reply: List{}, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: d.path, Summary: "Add a webhook; the secret that its messages are signed with is shown once", Tag: d.tag, Role: d.write,
			Body: Wanted{}, Status: 201, Reply: rest.Envelope{}, Secret: true, Wrong: []int{400, 409, 413, 415}, Handle: s.create,
		},
		{
			Method: "GET", Path: one, Summary: "Get a webhook", Tag: d.tag, Role: d.read,
			Reply: Webhook{}, Wrong: []int{404}, Handle: s.get,
		},
		{
			Method: "PUT", Path: one, Summary: "Change a webhook's name, URL and events", Tag: d.tag, Role: d.write,
			Body: Webhook{}, Reply: rest.Envelope{}, Match: true, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.update,
		},
		{
			Method: "DELETE", Path: one, Summary: "Delete a webhook; what waits for it is not sent", Tag: d.tag, Role: d.write,
			Reply: rest.Envelope{}, Match: true, Wrong: []int{404, 409}, Handle: s.remove,
		},
		{
			Method: "POST", Path: one + "/secret", Summary: "Give a webhook another secret; messages are signed with the former, too, for a while", Tag: d.tag, Role: d.write,
			Body: Rotation{}, Empty: true, Reply: rest.Envelope{}, Secret: true, Wrong: []int{400, 404, 413, 415}, Handle: s.rotate,
		},
		{
			Method: "POST", Path: one + "/ping", Summary: "Send a webhook a message to try it; its delivery is the answer's ID", Tag: d.tag, Role: d.write,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Handle: s.ping,
		},
		{
			Method: "POST", Path: one + "/enable", Summary: "Enable a webhook again", Tag: d.tag, Role: d.write,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.enable,
		},
		{
			Method: "POST", Path: one + "/disable", Summary: "Disable a webhook; deliveries that wait for it are given up", Tag: d.tag, Role: d.write,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.disableByCall,
		},
		{
			Method: "GET", Path: one + "/deliveries", Summary: "List what was sent to a webhook, or waits for it, newest first", Tag: d.tag, Role: d.read,
			Query: append([]string{"delivery_state"}, rest.Paging...), Reply: delivery.Log{}, Wrong: []int{400, 404}, Handle: s.deliveries,
		},
	}
}

// listTypes lists those of the caller, or of the developer that an operator names.
func (s *Service) listTypes(ctx context.Context, c *rest.Call) (any, error) {
	developer := c.Query("developer")
	if isDeveloper(c) {
		developer = c.Who.ID
	}
	all, err := s.typesFor(ctx, c.Who.Org, developer)
	if err != nil {
		return nil, err
	}
	return Types{Data: all, Pages: 1}, nil
}

func isDeveloper(c *rest.Call) bool { return c.Who.Role == rest.Developer }

func (s *Service) list(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	f := store.WebhookFilter{Developer: c.Query("developer"), Prefix: c.Query("q")}
	if isDeveloper(c) {
		f = store.WebhookFilter{Developer: c.Who.ID}
	}
	rows, total, err := s.deps.Store.ListWebhooks(ctx, c.Who.Org, f, page)
	if err != nil {
		return nil, err
	}
	list := &List{Data: make([]Webhook, 0, len(rows)), Pages: rest.Pages(total, page)}
	for i := range rows {
		list.Data = append(list.Data, webhookFor(c, &rows[i]))
	}
	return list, nil
}

// find returns the webhook in the path, if the caller may see it.
func (s *Service) find(ctx context.Context, c *rest.Call) (store.Webhook, error) {
	row, err := s.deps.Store.WebhookByID(ctx, c.Who.Org, c.Param("id"))
	if err == nil && !mayRead(c, &row) {
		err = rest.NotFound(noWebhook)
	}
	return row, rest.Missing(err, noWebhook)
}

// mayRead reports whether the caller may see a webhook. Developers see their own.
func mayRead(c *rest.Call, r *store.Webhook) bool {
	return !isDeveloper(c) || r.DeveloperID != nil && *r.DeveloperID == c.Who.ID
}

func (s *Service) get(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.find(ctx, c)
	if err != nil {
		return nil, err
	}
	c.SetVersion(row.Version)
	return webhookFor(c, &row), nil
}

func (s *Service) deliveries(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.find(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.deps.Queue.List(ctx, c, store.MessageFilter{Target: row.ID})
}
