package credentials

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// requestList is one page of key requests.
type requestList struct {
	// Key requests.
	Data  []json.RawMessage `json:"Data"`
	Pages int64             `json:"Pages"`
}

// requestPage is what a requestList is described as.
type requestPage struct {
	// Key requests of the page.
	Data []model.KeyRequest `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

const requestsTag = "Key requests"

// Routes lists the routes of key requests.
func (s *Requests) Routes() []rest.Route {
	return append(s.operatorRoutes(), s.ownRoutes()...)
}

func (s *Requests) operatorRoutes() []rest.Route {
	const path, one = "/api/portal/requests", "/api/portal/requests/{id}"
	update := rest.Route{
		Method: "PUT", Path: one, Summary: "Replace a key request that nobody has decided on", Tag: requestsTag, Role: rest.Approver,
		Body: model.KeyRequest{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.update,
	}
	labelled := update
	labelled.Method = rest.Update
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List key requests, newest first; q is the beginning of the developer's address, or a whole id", Tag: requestsTag, Role: rest.Viewer,
			Query: append([]string{"approved", "state", "by_user", "for_plan", "q"}, rest.Paging...), Reply: requestPage{}, Open: true, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: path, Summary: "Ask for a credential; where nobody has to approve, a developer is answered with it, this once", Tag: requestsTag,
			Role: rest.Approver, Developer: true, Secret: true,
			Body: model.KeyRequest{}, Reply: rest.Envelope{}, Wrong: []int{400, 403, 409, 413, 415}, Handle: s.create,
		},
		{
			Method: "GET", Path: one, Summary: "Get a key request", Tag: requestsTag, Role: rest.Viewer,
			Reply: model.KeyRequest{}, Open: true, Wrong: []int{404}, Handle: s.get,
		},
		update, labelled,
		{
			Method: "DELETE", Path: one, Summary: "Delete a key request; a key that it came to stays", Tag: requestsTag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.remove,
		},
		{
			Method: "PUT", Path: path + "/approve/{id}", Summary: "Approve a key request; the answer shows the credential this once", Tag: requestsTag, Role: rest.Approver,
			Body: model.Developer{}, Empty: true, Reply: model.Credential{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: s.approve,
		},
		{
			Method: "PUT", Path: path + "/reject/{id}", Summary: "Reject a key request", Tag: requestsTag, Role: rest.Approver,
			Body: rejection{}, Empty: true, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.reject,
		},
	}
}

func (s *Requests) ownRoutes() []rest.Route {
	const path, one = "/api/portal/me/requests", "/api/portal/me/requests/{id}"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List one's own key requests, newest first", Tag: requestsTag, Role: rest.Developer,
			Query: append([]string{"state"}, rest.Paging...), Reply: requestPage{}, Open: true, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: path, Summary: "Ask for a credential, or for other policies of a key; where nobody has to approve, the answer shows it this once", Tag: requestsTag, Role: rest.Developer,
			Body: model.KeyRequest{}, Reply: rest.Envelope{}, Wrong: []int{400, 403, 409, 413, 415}, Secret: true, Handle: s.create,
		},
		{
			Method: "GET", Path: one, Summary: "Get one's own key request", Tag: requestsTag, Role: rest.Developer,
			Reply: model.KeyRequest{}, Wrong: []int{404}, Handle: s.get,
		},
		{
			Method: "DELETE", Path: one, Summary: "Take back one's own key request that nobody has decided on", Tag: requestsTag, Role: rest.Developer,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.remove,
		},
	}
}

func (s *Requests) list(ctx context.Context, c *rest.Call) (any, error) {
	filter, err := filterOf(c)
	if err != nil {
		return nil, err
	}
	page, err := c.Page(true)
	if err != nil {
		return nil, err
	}
	answer := requestList{Data: []json.RawMessage{}}
	size, step, named := 0, page, s.namedBy(c)
	if page.Max == 0 {
		step.Max = wholeStep
	}
	for {
		rows, total, err := s.d.Store.ListKeyRequests(ctx, c.Who.Org, *filter, step)
		if err != nil {
			return nil, err
		}
		if page.Max == 0 && total > maxWhole {
			return nil, tooMany(total)
		}
		if err := named.developers(ctx, rows); err != nil {
			return nil, err
		}
		for i := range rows {
			shown, err := s.show(ctx, &rows[i], named)
			if err != nil {
				return nil, err
			}
			if size += len(shown); size > maxAnswer {
				return nil, rest.BadRequest(fmt.Sprintf("page_size: the page has more than %d MiB; ask for a smaller one", maxAnswer>>20))
			}
			answer.Data = append(answer.Data, shown)
		}
		answer.Pages = rest.Pages(total, page)
		step.Skip += step.Max
		if page.Max != 0 || len(rows) < step.Max {
			return answer, nil
		}
	}
}

// Bounds of a list that is returned whole, of one read for it, and of the bytes of a
// list.
const (
	maxWhole  = 10_000
	wholeStep = 1000
	maxAnswer = 64 << 20
)

func tooMany(total int64) error {
	return rest.BadRequest(fmt.Sprintf("p must be a page from 1 on: there are %d, and at most %d are given out at once", total, maxWhole))
}

// filterOf returns the filter that a call asks for. Developers see their own requests.
func filterOf(c *rest.Call) (*store.KeyRequestFilter, error) {
	f := &store.KeyRequestFilter{State: c.Query("state"), Developer: c.Query("by_user"), Plan: c.Query("for_plan"), Search: c.Query("q")}
	if c.Who.Role == rest.Developer {
		f = &store.KeyRequestFilter{State: f.State, Developer: c.Who.ID}
	}
	if f.State != "" && !isState(f.State) {
		return nil, rest.BadRequest(fmt.Sprintf("state must be pending, approved or rejected, not %.40q", f.State))
	}
	wanted := ""
	switch approved := c.Query("approved"); approved {
	case "":
		return f, nil
	case "true":
		wanted = string(Approved)
	case "false":
		wanted = store.Unapproved
	default:
		return nil, rest.BadRequest(fmt.Sprintf("approved must be true or false, not %.40q", approved))
	}
	if f.State != "" {
		return nil, rest.BadRequest("approved and state are two ways to say the same; leave one out")
	}
	f.State = wanted
	return f, nil
}

func (s *Requests) get(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.d.Store.KeyRequestByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noRequest)
	}
	if c.Who.Role == rest.Developer && row.DeveloperID != c.Who.ID {
		return nil, rest.NotFound(noRequest)
	}
	named := s.namedBy(c)
	if err := named.developers(ctx, []store.KeyRequest{row}); err != nil {
		return nil, err
	}
	c.SetVersion(row.Version)
	return s.show(ctx, &row, named)
}

// show returns a request as the caller may see it: developers do not see who decided.
func (s *Requests) show(ctx context.Context, row *store.KeyRequest, n *named) (json.RawMessage, error) {
	r, err := s.recordOf(row)
	if err != nil {
		return nil, err
	}
	if n.call.Who.Role == rest.Developer {
		r.DecidedBy = ""
	}
	r.Developer = n.people[row.DeveloperID]
	if r.Entry == nil && len(row.Policies) > 0 {
		if r.Entry, err = n.entry(ctx, row.Policies[0]); err != nil {
			return nil, err
		}
	}
	return model.Write(r)
}
