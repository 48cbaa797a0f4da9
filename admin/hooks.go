package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/redact"
)

const noHook = "Webhook does not exist"

// hookRoutes are the routes of webhooks that event handlers of definitions refer to.
func (s *Server) hookRoutes() []rest.Route {
	const path, tag = "/api/hooks", "Configuration"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List the webhooks that event handlers of APIs can refer to, by name", Tag: tag, Role: rest.Viewer,
			Query: rest.Paging, Reply: hookList{}, Handle: s.listHooks,
		},
		{
			Method: "POST", Path: path, Summary: "Create a webhook for event handlers of APIs, which refer to it by its id", Tag: tag, Role: rest.Editor,
			Body: hookBody{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.createHook,
		},
		{
			Method: "GET", Path: path + "/{id}", Summary: "Get a webhook of event handlers", Tag: tag, Role: rest.Viewer,
			Reply: hookBody{}, Wrong: []int{404}, Handle: s.getHook,
		},
		{
			Method: "PUT", Path: path + "/{id}", Summary: "Replace a webhook of event handlers, which gateways then use at once", Tag: tag, Role: rest.Editor,
			Body: hookBody{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateHook,
		},
		{
			Method: "DELETE", Path: path + "/{id}", Summary: "Delete a webhook that no API refers to", Tag: tag, Role: rest.Editor,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.deleteHook,
		},
	}
}

// hookBody is a webhook as calls have it.
type hookBody struct {
	// Id that handlers name in handler_meta.id. Default: the server makes one.
	ID string `json:"id,omitempty"`
	// Name for people, at most 1024 bytes.
	Name string `json:"name"`
	// Method of the call. Default: GET.
	Method string `json:"method,omitempty" enum:"GET,POST,PUT,PATCH,DELETE"`
	// URL that is called, http or https; viewers see its host only.
	// Example: "https://hooks.example/quota"
	Target string `json:"target_path"`
	// Name of a file in the folder events.templates of the gateways, which the body is made of.
	TemplateFile string `json:"template_path,omitempty"`
	// Template of the body in place of a file, at most 65536 bytes.
	Template string `json:"template,omitempty"`
	// Header fields of the call, at most 50. Values may refer to secrets, such as {secret:NAME}.
	// Example: {"Authorization": "Bearer {secret:hooks}"}
	Headers map[string]string `json:"header_map,omitempty"`
	// Seconds in which the same message is not sent again, at most 86400; 0: it is always sent.
	Cooldown int64 `json:"event_timeout,omitempty"`
}

// hookList is one page of webhooks.
type hookList struct {
	// Webhooks of the page.
	Hooks []hookBody `json:"hooks" nullable:"false"`
	// Number of pages.
	Pages int64 `json:"pages"`
}

func (s *Server) listHooks(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	all, err := s.deps.Store.Hooks(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	list := &hookList{Hooks: []hookBody{}, Pages: rest.Pages(int64(len(all)), page)}
	from := min(page.Skip, len(all))
	for _, one := range all[from:min(from+page.Max, len(all))] {
		list.Hooks = append(list.Hooks, hookBody(one.Webhook))
	}
	return list, nil
}

func (s *Server) getHook(ctx context.Context, c *rest.Call) (any, error) {
	found, err := s.deps.Store.HookByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noHook)
	}
	c.SetVersion(found.Version)
	return hookBody(found.Webhook), nil
}

func (s *Server) createHook(ctx context.Context, c *rest.Call) (any, error) {
	w, err := readHook(c, nil)
	if err != nil {
		return nil, err
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error { return change.CreateHook(ctx, w) })
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	return rest.Done(w.ID, nil), nil
}

func (s *Server) updateHook(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	stored, err := s.deps.Store.HookByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noHook)
	}
	w, err := readHook(c, &stored.Webhook)
	if err != nil {
		return nil, err
	}
	if have == 0 && redact.HasMask(c.HTTP.Request.Body()) {
		have = stored.Version // what was taken over must still be what is stored
	}
	var version int64
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		version, err = change.UpdateHook(ctx, w, have)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, noHook)
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

func (s *Server) deleteHook(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		return change.DeleteHook(ctx, c.Param("id"), have)
	})
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok && conflict.Kind == store.InUse {
		return nil, rest.Refuse(fasthttp.StatusConflict, "APIs refer to this webhook; change them first: "+strings.Join(conflict.With, ", "), conflict.With...)
	}
	if err != nil {
		return nil, rest.Missing(err, noHook)
	}
	return rest.Done("Data deleted", nil), nil
}

// readHook reads a webhook from the body. Masked secrets stay as they are stored; stored is
// nil for a new webhook.
func readHook(c *rest.Call, stored *definition.Webhook) (*definition.Webhook, error) {
	var sent hookBody
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	body, err := rest.Encode(&sent)
	if err != nil {
		return nil, err
	}
	var was []byte
	if stored != nil {
		if was, err = rest.Encode(stored); err != nil {
			return nil, err
		}
	}
	complete, masks := restored(body, was)
	if len(masks) > 0 {
		return nil, &masks
	}
	w := new(definition.Webhook)
	if err := json.Unmarshal(complete, w); err != nil {
		return nil, fmt.Errorf("reading a webhook: %w", err)
	}
	switch {
	case stored == nil && w.ID == "":
		w.ID = rest.NewID()
	case stored != nil && w.ID != "" && w.ID != stored.ID:
		return nil, rest.BadRequest("id: must be " + stored.ID + ", as in the path, or be left out")
	case stored != nil:
		w.ID = stored.ID
	}
	if w.Method == "" {
		w.Method = "GET"
	}
	return w, w.Validate()
}
