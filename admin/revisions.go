package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/shown"
	"github.com/sluicegate/sluice/admin/store"
)

// configState says which configuration is in force and who serves it.
type configState struct {
	Revision   int64 `json:"revision"`
	Generation int64 `json:"generation" doc:"reloads asked for without a change"`
	Gateways   int   `json:"gateways" doc:"heard of within two minutes"`
	UpToDate   int   `json:"up_to_date" doc:"of these, serving the revision without an error"`
}

// revisionList is one page of revisions, newest first.
type revisionList struct {
	Revisions []shown.Revision `json:"revisions"`
	Pages     int64            `json:"pages"`
}

// revisionDiff is what lies between two revisions.
type revisionDiff struct {
	From    int64              `json:"from"`
	To      int64              `json:"to"`
	Objects []shown.Difference `json:"objects"`
}

func (s *Server) getConfig(ctx context.Context, _ *rest.Call) (any, error) {
	state, err := s.deps.Store.State(ctx)
	if err != nil {
		return nil, err
	}
	gateways, err := s.deps.Store.ListGateways(ctx)
	if err != nil {
		return nil, err
	}
	told := configState{Revision: state.Revision, Generation: state.Generation}
	for _, g := range gateways {
		if time.Since(g.SeenAt) > quietAfter {
			continue
		}
		told.Gateways++
		if g.Error == "" && g.Revision == strconv.FormatInt(state.Revision, 10) {
			told.UpToDate++
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
	list := revisionList{Revisions: make([]shown.Revision, 0, len(rows)), Pages: rest.Pages(total, page)}
	for _, row := range rows {
		list.Revisions = append(list.Revisions, shown.NewRevision(row))
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
	told := shown.NewRevision(row)
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

// diffRevision compares a revision with another, or with the one before.
func (s *Server) diffRevision(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.revision(ctx, c)
	if err != nil {
		return nil, err
	}
	from, err := s.against(ctx, c, row.Revision)
	if err != nil {
		return nil, err
	}
	differences, err := s.deps.Store.Differences(ctx, c.Who.Org, from, row.Revision)
	if err != nil {
		return nil, err
	}
	objects, err := shown.Objects(differences)
	return revisionDiff{From: from, To: row.Revision, Objects: objects}, err
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
	made, err := s.portal.Publish(ctx, by, func(ctx context.Context, change *store.Change) error {
		return change.Rollback(ctx, row.Revision)
	})
	if err != nil {
		return nil, err
	}
	s.log.Info("configuration rolled back", "revision", made, "to", row.Revision, "by", by.Name)
	return rest.Done(fmt.Sprintf("Rolled back to revision %d", row.Revision), made), nil
}
