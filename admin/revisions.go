package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/admin/apply"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/diff"
	"github.com/sluicegate/sluice/internal/redact"
)

func (s *Server) configRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/config", Summary: "Which revision is in force, and how many gateways serve it", Tag: "Configuration", Role: rest.Viewer, Gateway: true,
			Reply: configState{}, Handle: s.getConfig,
		},
		{
			Method: "GET", Path: "/api/config/revisions", Summary: "List revisions, newest first", Tag: "Configuration", Role: rest.Viewer,
			Query: rest.Paging, Reply: revisionList{}, Handle: s.listRevisions,
		},
		{
			Method: "GET", Path: "/api/config/revisions/{n}", Summary: "Get a revision with the whole configuration as of then", Tag: "Configuration", Role: rest.Viewer,
			Reply: revision{}, Wrong: []int{404}, Handle: s.getRevision,
		},
		{
			Method: "GET", Path: "/api/config/revisions/{n}/diff", Summary: "Compare a revision with the one before, or another", Tag: "Configuration", Role: rest.Viewer,
			Query: []string{"against"}, Reply: revisionDiff{}, Wrong: []int{400, 404}, Handle: s.diffRevision,
		},
		{
			Method: "GET", Path: "/api/config/revisions/{n}/concerned", Summary: "Name the keys that the difference between a revision and the one before, or another, concerns today", Tag: "Configuration", Role: rest.Viewer,
			Query: []string{"against"}, Reply: apply.Whom{}, Wrong: []int{400, 404}, Handle: s.concernedByRevision,
		},
		{
			Method: "POST", Path: "/api/config/revisions/{n}/rollback", Summary: "Make the configuration what it was at a revision", Tag: "Configuration", Role: rest.Admin,
			Body: rollbackReason{}, Empty: true, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.rollback,
		},
		{
			Method: "GET", Path: "/api/audit", Summary: "List the audit log, newest first", Tag: "Configuration", Role: rest.Admin,
			Query: append([]string{"object_kind", "object_id", "actor"}, rest.Paging...), Reply: auditList{}, Handle: s.listAudit,
		},
	}
}

// configState is the revision in force and how many gateways serve it.
type configState struct {
	// Revision of the configuration in force; it grows with each change.
	Revision int64 `json:"revision"`
	// Number of reloads that were asked for without a change.
	Generation int64 `json:"generation"`
	// Number of gateways that reported within two minutes.
	Gateways int `json:"gateways"`
	// Number of those gateways that serve the revision without an error.
	UpToDate int `json:"up_to_date"`

	// Names of the other gateways among them.
	Behind []string `json:"behind"`

	// URL at which callers reach the gateways: the setting portal.gateway_url, or the address of the
	// gateway in the same process.
	// Example: "https://api.example.com"
	Address string `json:"gateway_url,omitempty"`
}

// revisionList is one page of revisions, newest first.
type revisionList struct {
	// Revisions of the page, newest first, without their objects.
	Revisions []revision `json:"revisions"`
	// Number of pages.
	Pages int64 `json:"pages"`
}

// revisionDiff is the difference between two revisions.
type revisionDiff struct {
	// Earlier state: the revision that was compared with.
	From int64 `json:"from"`
	// Later state: the revision in the path.
	To int64 `json:"to"`
	// Objects that differ.
	Objects []difference `json:"objects"`
}

// A revision is one change of configuration.
type revision struct {
	// Number of the revision, which grows with each change of configuration.
	Revision int64 `json:"revision"`
	// E-mail address of the user, or name of the gateway or system task, that made the change.
	Author string `json:"author"`
	// How the change came in: a call of a user, a gateway, the demo, a rollback or a schema that was
	// fetched.
	Source string `json:"source" enum:"api,gateway,seed,rollback,sync"`
	// Reason that the author gave; empty: none.
	Reason string `json:"reason"`
	// Time of the change.
	At time.Time `json:"at"`
	// What changed: kind, id, name and action of each object.
	// Example: [{"kind": "api", "id": "orders", "name": "Orders", "action": "updated"}]
	Summary rest.Raw[[]store.ObjectChange] `json:"summary"`

	// All definitions as of this revision; in the answer about one revision only.
	APIs []rest.Raw[definition.API] `json:"apis,omitempty"`
	// All policies as of this revision; in the answer about one revision only.
	Policies []rest.Raw[definition.Policy] `json:"policies,omitempty"`
}

// newRevision returns a revision as it is shown, without its objects.
func newRevision(row store.Revision) revision {
	return revision{
		Revision: row.Revision, Author: row.Author, Source: row.Source, Reason: row.Reason,
		At: row.CreatedAt, Summary: row.Summary,
	}
}

// A difference is one object that differs.
type difference struct {
	// Kind of the object.
	Kind string `json:"kind" enum:"api,policy"`
	// Id of the object.
	ID string `json:"id"`
	// What became of the object between the two revisions.
	Action string `json:"action" enum:"created,updated,deleted"`
	// Members that differ; secrets are masked for users below editor.
	Changes []diff.Member `json:"changes"`
}

// showDifferences returns what differs between two revisions as a role may see it.
func showDifferences(rows []store.Difference, to rest.Role) ([]difference, error) {
	all := make([]difference, 0, len(rows))
	for _, d := range rows {
		one := difference{Kind: d.Kind, ID: d.ID, Action: "updated"}
		switch {
		case d.Before == nil:
			one.Action = "created"
		case d.After == nil:
			one.Action = "deleted"
		}
		var err error
		if one.Changes, err = diff.JSON(d.Before, d.After); err != nil {
			return nil, fmt.Errorf("comparing %s %s: %w", d.Kind, d.ID, err)
		}
		for i := range one.Changes {
			if m := &one.Changes[i]; to.BelowEditor() {
				m.Before, m.After = redact.At(m.Names, m.Before), redact.At(m.Names, m.After)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *Server) getConfig(ctx context.Context, _ *rest.Call) (any, error) { return s.configState(ctx) }

// configState returns the revision in force and how many gateways serve it.
func (s *Server) configState(ctx context.Context) (configState, error) {
	state, err := s.deps.Store.State(ctx)
	if err != nil {
		return configState{}, err
	}
	gateways, err := s.deps.Store.ListGateways(ctx)
	if err != nil {
		return configState{}, err
	}
	told := configState{Revision: state.Revision, Generation: state.Generation, Behind: []string{}}
	if address := s.deps.Portal.Gateway; address != nil {
		told.Address = address()
	}
	for _, g := range gateways {
		if time.Since(g.SeenAt) > silentAfter {
			continue
		}
		told.Gateways++
		if g.Error == "" && g.Revision == strconv.FormatInt(state.Revision, 10) {
			told.UpToDate++
		} else {
			told.Behind = append(told.Behind, g.Name)
		}
	}
	return told, nil
}

func (s *Server) listRevisions(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	rows, total, err := s.deps.Store.ListRevisions(ctx, c.Who.Org, page)
	if err != nil {
		return nil, err
	}
	list := revisionList{Revisions: make([]revision, 0, len(rows)), Pages: rest.Pages(total, page)}
	for _, row := range rows {
		list.Revisions = append(list.Revisions, newRevision(row))
	}
	return list, nil
}

func (s *Server) getRevision(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.revision(ctx, c)
	if err != nil {
		return nil, err
	}
	objects, err := s.deps.Store.ObjectsAt(ctx, c.Who.Org, row.Revision)
	if err != nil {
		return nil, err
	}
	told := newRevision(row)
	for _, o := range objects {
		if o.Kind == "api" {
			told.APIs = append(told.APIs, o.Body)
		} else {
			told.Policies = append(told.Policies, o.Body)
		}
	}
	return told, nil
}

// revision returns the revision that the path names.
func (s *Server) revision(ctx context.Context, c *rest.Call) (store.Revision, error) {
	number, err := revisionNumber(c.Param("n"))
	if err != nil {
		return store.Revision{}, rest.NotFound("Revision not found")
	}
	row, err := s.deps.Store.RevisionByNumber(ctx, c.Who.Org, number)
	return row, rest.Missing(err, "Revision not found")
}

func revisionNumber(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err == nil && number < 1 {
		err = errors.New("revisions count from 1")
	}
	return number, err
}

// diffRevision compares a revision with another, by default the one before.
func (s *Server) diffRevision(ctx context.Context, c *rest.Call) (any, error) {
	from, to, differences, err := s.differences(ctx, c)
	if err != nil {
		return nil, err
	}
	objects, err := showDifferences(differences, c.Who.Role)
	return revisionDiff{From: from, To: to, Objects: objects}, err
}

// concernedByRevision returns the keys that a revision concerns, as they are now.
func (s *Server) concernedByRevision(ctx context.Context, c *rest.Call) (any, error) {
	_, _, differences, err := s.differences(ctx, c)
	if err != nil {
		return nil, err
	}
	whom, err := s.applier().Concerned(ctx, c.Who.Org, differences)
	for i := range whom.Some {
		whom.Some[i].Hash = s.hashFor(c, whom.Some[i].Hash)
	}
	return whom, err
}

// differences returns what differs between the two revisions that a call names.
func (s *Server) differences(ctx context.Context, c *rest.Call) (from, to int64, all []store.Difference, err error) {
	row, err := s.revision(ctx, c)
	if err != nil {
		return 0, 0, nil, err
	}
	if from, err = s.against(ctx, c, row.Revision); err != nil {
		return 0, 0, nil, err
	}
	all, err = s.deps.Store.Differences(ctx, c.Who.Org, from, row.Revision)
	return from, row.Revision, all, err
}

func (s *Server) against(ctx context.Context, c *rest.Call, revision int64) (int64, error) {
	text := c.Query("against")
	if text == "" {
		return s.deps.Store.RevisionBefore(ctx, c.Who.Org, revision)
	}
	number, err := revisionNumber(text)
	if err != nil {
		return 0, rest.BadRequest(fmt.Sprintf("against must be the number of a revision, not %.40q", text))
	}
	_, err = s.deps.Store.RevisionByNumber(ctx, c.Who.Org, number)
	return number, rest.Missing(err, "Revision not found")
}

// rollbackReason is the optional body of a rollback.
type rollbackReason struct {
	// Reason for the rollback, for the history. Default: none.
	Reason string `json:"reason"`
}

func (s *Server) rollback(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.revision(ctx, c)
	if err != nil {
		return nil, err
	}
	by := c.Author("rollback")
	if len(c.HTTP.Request.Body()) > 0 {
		var body rollbackReason
		if err := c.Decode(&body); err != nil {
			return nil, err
		}
		by.Reason = rest.Truncate(body.Reason, rest.MaxText)
	}
	made, err := s.deps.Store.Publish(ctx, by, func(ctx context.Context, change *store.Change) error {
		return change.Rollback(ctx, row.Revision)
	})
	if err != nil {
		return nil, err
	}
	s.log.Info("configuration rolled back", "revision", made, "to", row.Revision, "by", by.Name)
	return rest.Done(fmt.Sprintf("Rolled back to revision %d", row.Revision), made), nil
}
