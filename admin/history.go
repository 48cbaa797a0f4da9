package admin

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/diff"
)

// mostHistory bounds a page of a history: definitions may have MiBs each.
const mostHistory = 20

// historyRoutes are the routes that say what became of an object, to everybody who may see
// it. The audit log, which also says from where, is for admins.
func (s *Server) historyRoutes() []rest.Route {
	var all []rest.Route
	for _, of := range []struct{ path, what, tag, kind string }{
		{"/api/apis", "an API", "APIs", store.APIObject}, {"/api/portal/policies", "a policy", "Policies", store.PolicyObject}, {"/api/policies", "a policy", "Policies", store.PolicyObject},
	} {
		all = append(all, rest.Route{
			Method: "GET", Path: of.path + "/{id}/history", Summary: "List the revisions that changed " + of.what + ", newest first, at most 20 on a page", Tag: of.tag, Role: rest.Viewer,
			Query: rest.Paging, Reply: objectHistory{}, Wrong: []int{400, 404}, Handle: s.historyOf(of.kind),
		})
	}
	return all
}

// objectHistory is one page of the changes of an object, newest first.
type objectHistory struct {
	// Changes of the page, newest first.
	Changes []objectChange `json:"changes" nullable:"false"`
	// Number of pages.
	Pages int64 `json:"pages"`
}

// objectChange is what one revision did to an object.
type objectChange struct {
	// Revision that made the change.
	Revision int64 `json:"revision"`
	// What the revision did to the object.
	Action string `json:"action" enum:"created,updated,deleted"`
	// E-mail address of the user, or name of the gateway or system task, that made the change.
	Author string `json:"author"`
	// How the change came in: a call of a user, a gateway, the demo, a rollback or a schema that was
	// fetched.
	Source string `json:"source" enum:"api,gateway,seed,rollback,sync"`
	// Reason that the author gave; empty: none.
	Reason string `json:"reason"`
	// Time of the change.
	At time.Time `json:"at"`
	// Members that were changed; empty when the object was created or deleted.
	Members []diff.Member `json:"members" nullable:"false"`
}

func (s *Server) historyOf(kind string) rest.Handler {
	return func(ctx context.Context, c *rest.Call) (any, error) {
		c.PageSize = min(c.PageSize, mostHistory)
		page, err := c.Page(false)
		if err != nil {
			return nil, err
		}
		if page.Max > mostHistory {
			return nil, rest.BadRequest("page_size must be at most 20 for a history")
		}
		if err := s.locate(ctx, c, kind, c.Param("id")); err != nil {
			return nil, err
		}
		rows, total, err := s.deps.Store.ObjectHistory(ctx, c.Who.Org, kind, c.Param("id"), page)
		if err != nil {
			return nil, err
		}
		if total == 0 {
			return nil, rest.NotFound("Nothing is known of an object with this id")
		}
		list := objectHistory{Changes: make([]objectChange, 0, len(rows)), Pages: rest.Pages(total, page)}
		for i := range rows {
			one, err := newObjectChange(&rows[i], store.Difference{Kind: kind, ID: c.Param("id"), Before: rows[i].Before, After: rows[i].After}, c.Who.Role)
			if err != nil {
				return nil, err
			}
			list.Changes = append(list.Changes, one)
		}
		return list, nil
	}
}

// newObjectChange returns a change as a role may see it.
func newObjectChange(row *store.ObjectChangeRow, d store.Difference, to rest.Role) (objectChange, error) {
	shown, err := showDifferences([]store.Difference{d}, to)
	if err != nil {
		return objectChange{}, err
	}
	one := objectChange{
		Revision: row.Revision, Action: shown[0].Action, Author: row.Author, Source: row.Source, Reason: row.Reason, At: row.CreatedAt, Members: []diff.Member{},
	}
	if one.Action == "updated" {
		one.Members = shown[0].Changes
	}
	return one, nil
}
