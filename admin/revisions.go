package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/admin/diff"
	"github.com/sluicegate/sluice/admin/store"
)

// configState says which configuration is in force and who serves it.
type configState struct {
	Revision   int64 `json:"revision"`
	Generation int64 `json:"generation" doc:"reloads asked for without a change"`
	Gateways   int   `json:"gateways" doc:"heard of within two minutes"`
	UpToDate   int   `json:"up_to_date" doc:"of these, serving the revision without an error"`
}

// revision is one change of configuration.
type revision struct {
	Revision int64           `json:"revision"`
	Author   string          `json:"author"`
	Source   string          `json:"source" enum:"api,gateway,seed,rollback"`
	Reason   string          `json:"reason"`
	At       time.Time       `json:"at"`
	Summary  json.RawMessage `json:"summary" doc:"what changed: kind, id, name and action of each object"`

	APIs     []json.RawMessage `json:"apis,omitempty" doc:"all as of this revision; only for a single one"`
	Policies []json.RawMessage `json:"policies,omitempty" doc:"all as of this revision; only for a single one"`
}

// revisionList is one page of revisions, newest first.
type revisionList struct {
	Revisions []revision `json:"revisions"`
	Pages     int64      `json:"pages"`
}

// revisionDiff is what lies between two revisions.
type revisionDiff struct {
	From    int64        `json:"from"`
	To      int64        `json:"to"`
	Objects []objectDiff `json:"objects"`
}

// objectDiff is one object that differs.
type objectDiff struct {
	Kind    string        `json:"kind" enum:"api,policy"`
	ID      string        `json:"id"`
	Action  string        `json:"action" enum:"created,updated,deleted"`
	Changes []diff.Member `json:"changes"`
}

func (s *Server) getConfig(ctx context.Context, _ *call) (any, error) {
	state, err := s.deps.Store.State(ctx)
	if err != nil {
		return nil, err
	}
	gateways, err := s.deps.Store.ListGateways(ctx)
	if err != nil {
		return nil, err
	}
	shown := configState{Revision: state.Revision, Generation: state.Generation}
	for _, g := range gateways {
		if time.Since(g.SeenAt) > quietAfter {
			continue
		}
		shown.Gateways++
		if g.Error == "" && g.Revision == strconv.FormatInt(state.Revision, 10) {
			shown.UpToDate++
		}
	}
	return shown, nil
}

func (s *Server) listRevisions(ctx context.Context, c *call) (any, error) {
	page, err := s.page(c, false)
	if err != nil {
		return nil, err
	}
	rows, total, err := s.deps.Store.ListRevisions(ctx, c.who.org, page)
	if err != nil {
		return nil, err
	}
	list := revisionList{Revisions: make([]revision, 0, len(rows)), Pages: pages(total, page)}
	for _, row := range rows {
		list.Revisions = append(list.Revisions, showRevision(row))
	}
	return list, nil
}

func showRevision(row store.Revision) revision {
	return revision{
		Revision: row.Revision, Author: row.Author, Source: row.Source, Reason: row.Reason,
		At: row.CreatedAt, Summary: row.Summary,
	}
}

func (s *Server) getRevision(ctx context.Context, c *call) (any, error) {
	row, err := s.revision(ctx, c)
	if err != nil {
		return nil, err
	}
	objects, err := s.deps.Store.ObjectsAt(ctx, c.who.org, row.Revision)
	if err != nil {
		return nil, err
	}
	shown := showRevision(row)
	for _, o := range objects {
		if o.Kind == "api" {
			shown.APIs = append(shown.APIs, o.Body)
		} else {
			shown.Policies = append(shown.Policies, o.Body)
		}
	}
	return shown, nil
}

// revision returns the revision that the path names.
func (s *Server) revision(ctx context.Context, c *call) (store.Revision, error) {
	number, err := revisionNumber(c.param("n"))
	if err != nil {
		return store.Revision{}, notFound("Revision not found")
	}
	row, err := s.deps.Store.RevisionByNumber(ctx, c.who.org, number)
	return row, missing(err, "Revision not found")
}

func revisionNumber(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err == nil && number < 1 {
		err = errors.New("revisions count from 1")
	}
	return number, err
}

// diffRevision compares a revision with another, or with the one before.
func (s *Server) diffRevision(ctx context.Context, c *call) (any, error) {
	row, err := s.revision(ctx, c)
	if err != nil {
		return nil, err
	}
	from, err := s.against(ctx, c, row.Revision)
	if err != nil {
		return nil, err
	}
	differences, err := s.deps.Store.Differences(ctx, c.who.org, from, row.Revision)
	if err != nil {
		return nil, err
	}
	shown := revisionDiff{From: from, To: row.Revision, Objects: make([]objectDiff, 0, len(differences))}
	for _, d := range differences {
		one, err := diffObject(d)
		if err != nil {
			return nil, err
		}
		shown.Objects = append(shown.Objects, one)
	}
	return shown, nil
}

func (s *Server) against(ctx context.Context, c *call, revision int64) (int64, error) {
	text := c.query("against")
	if text == "" {
		return s.deps.Store.RevisionBefore(ctx, c.who.org, revision)
	}
	number, err := revisionNumber(text)
	if err != nil {
		return 0, badRequest(fmt.Sprintf("against must be the number of a revision, not %.40q", text))
	}
	_, err = s.deps.Store.RevisionByNumber(ctx, c.who.org, number)
	return number, missing(err, "Revision not found")
}

func diffObject(d store.Difference) (objectDiff, error) {
	one := objectDiff{Kind: d.Kind, ID: d.ID, Action: "updated"}
	switch {
	case d.Before == nil:
		one.Action = "created"
	case d.After == nil:
		one.Action = "deleted"
	}
	var err error
	if one.Changes, err = diff.JSON(d.Before, d.After); err != nil {
		return one, fmt.Errorf("comparing %s %s: %w", d.Kind, d.ID, err)
	}
	return one, nil
}

// rollbackReason is the optional body of a rollback.
type rollbackReason struct {
	Reason string `json:"reason"`
}

func (s *Server) rollback(ctx context.Context, c *call) (any, error) {
	row, err := s.revision(ctx, c)
	if err != nil {
		return nil, err
	}
	by := c.author("rollback")
	if len(c.http.Request.Body()) > 0 {
		var body rollbackReason
		if err := c.decode(&body); err != nil {
			return nil, err
		}
		by.Reason = truncate(body.Reason, maxText)
	}
	made, err := s.deps.Store.Publish(ctx, by, func(ctx context.Context, change *store.Change) error {
		return change.Rollback(ctx, row.Revision)
	})
	if err != nil {
		return nil, err
	}
	s.log.Info("configuration rolled back", "revision", made, "to", row.Revision, "by", by.Name)
	return done(fmt.Sprintf("Rolled back to revision %d", row.Revision), made), nil
}
