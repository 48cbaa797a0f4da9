package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/diff"
)

// Bounds of the path of a member.
const (
	maxMemberPath  = 1000 // bytes
	maxMemberNames = 50
)

// originRoutes are the routes that say which change gave a member of an object its value.
func (s *Server) originRoutes() []rest.Route {
	all := []rest.Route{{
		Method: "GET", Path: "/api/keys/{key}/origin", Summary: "Name the change that gave a member of a key the value that it has", Tag: "Keys", Role: rest.Viewer,
		Query: []string{"path", "hashed"}, Reply: memberOrigin{}, Wrong: []int{400, 404}, Handle: s.originInKey,
	}}
	for _, of := range []struct{ path, what, tag, kind string }{
		{"/api/apis", "an API", "APIs", store.APIObject}, {"/api/portal/policies", "a policy", "Policies", store.PolicyObject}, {"/api/policies", "a policy", "Policies", store.PolicyObject},
	} {
		all = append(all, rest.Route{
			Method: "GET", Path: of.path + "/{id}/origin", Summary: "Name the revision that gave a member of " + of.what + " the value that it has, or had as of a revision", Tag: of.tag, Role: rest.Viewer,
			Query: []string{"path", "revision"}, Reply: memberOrigin{}, Wrong: []int{400, 404}, Handle: s.originIn(of.kind),
		})
	}
	return all
}

// memberOrigin says where the value of a member comes from.
type memberOrigin struct {
	// Path of the member, as it was asked for; empty is the whole object.
	Path string `json:"path"`
	// Whether the object has the member.
	Set bool `json:"set"`
	// Newest change that set, changed or removed the member; left out if none of the newest 200
	// changes of the object did.
	Change *memberChange `json:"change,omitempty"`
}

// memberChange is a change of a member.
type memberChange struct {
	// Revision that made the change; left out for keys, which are changed without one.
	Revision int64 `json:"revision,omitempty"`
	// What became of the member.
	Action string `json:"action" enum:"created,updated,deleted"`
	// Name of the actor that made the change: the e-mail address of a user, or the name of a gateway
	// or system task.
	Author string `json:"author"`
	// How the revision came in: api, gateway, seed, rollback or sync; left out for keys.
	Source string `json:"source,omitempty"`
	// Reason that the author gave; empty: none.
	Reason string `json:"reason"`
	// Time of the change.
	At time.Time `json:"at"`
}

// memberPath returns the names that the parameter path consists of.
func memberPath(c *rest.Call) (path string, names []string, err error) {
	path = c.Query("path")
	if len(path) > maxMemberPath {
		return "", nil, rest.BadRequest(fmt.Sprintf("path must have at most %d bytes", maxMemberPath))
	}
	names, err = diff.Names(path)
	if err == nil && len(names) > maxMemberNames {
		err = fmt.Errorf("it has %d names, and %d are the most", len(names), maxMemberNames)
	}
	if err != nil {
		return "", nil, rest.BadRequest("path must be that of a member, such as proxy.listen_path: " + err.Error())
	}
	if names == nil {
		names = []string{} // an absent list is no path to the database
	}
	return path, names, nil
}

func (s *Server) originIn(kind string) rest.Handler {
	return func(ctx context.Context, c *rest.Call) (any, error) {
		path, names, err := memberPath(c)
		if err != nil {
			return nil, err
		}
		until := int64(0)
		if text := c.Query("revision"); text != "" {
			if until, err = revisionNumber(text); err != nil {
				return nil, rest.BadRequest(fmt.Sprintf("revision must be the number of a revision, not %.40q", text))
			}
		}
		change, set, err := s.deps.Store.Origin(ctx, c.Who.Org, store.Part{Kind: kind, ID: c.Param("id"), Path: names}, until)
		return showOrigin(path, change, set, err)
	}
}

func (s *Server) originInKey(ctx context.Context, c *rest.Call) (any, error) {
	path, names, err := memberPath(c)
	if err != nil {
		return nil, err
	}
	found, err := s.key(ctx, c)
	if err != nil {
		return nil, err
	}
	change, set, err := s.deps.Store.OriginInKey(ctx, c.Who.Org, found.hash, names)
	if errors.Is(err, store.ErrNotFound) {
		err = nil // the audit log keeps its entries for a time
	}
	return showOrigin(path, change, set, err)
}

func showOrigin(path string, change *store.Origin, set bool, err error) (any, error) {
	if err != nil {
		return nil, rest.Missing(err, "Nothing is known of an object with this id")
	}
	shown := memberOrigin{Path: path, Set: set}
	if change != nil {
		shown.Change = &memberChange{Revision: change.Revision, Action: change.Action, Author: change.Author, Source: change.Source, Reason: change.Reason, At: change.At.UTC()}
	}
	return shown, nil
}
