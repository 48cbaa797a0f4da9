package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/redact"
)

func (s *Server) openRoutes() []rest.Route {
	return []rest.Route{
		{Method: "GET", Path: "/live", Summary: "The process lives", Tag: "Health", Reply: health{}, Handle: s.getHealth},
		{Method: "GET", Path: "/healthz", Summary: "The same as /live", Tag: "Health", Reply: health{}, Handle: s.getHealth},
		{Method: "GET", Path: "/ready", Summary: "The process can do its work", Tag: "Health", Reply: health{}, Fault: health{}, Wrong: []int{503}, Handle: s.getReady},
		{Method: "GET", Path: "/readyz", Summary: "The same as /ready", Tag: "Health", Reply: health{}, Fault: health{}, Wrong: []int{503}, Handle: s.getReady},
		{Method: "GET", Path: "/health", Summary: "The same as /ready", Tag: "Health", Reply: health{}, Fault: health{}, Wrong: []int{503}, Handle: s.getReady},
		{
			Method: "GET", Path: "/api/openapi.json", Summary: "This description", Tag: "Health",
			Reply: json.RawMessage{}, Handle: s.getDescription,
		},
	}
}

// auditList is one page of the audit log, newest first.
type auditList struct {
	// Entries of the page, newest first.
	Audit []auditEntry `json:"audit"`
	// Number of pages.
	Pages int64 `json:"pages"`
}

func (s *Server) listAudit(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	filter := store.AuditFilter{Kind: c.Query("object_kind"), ID: c.Query("object_id"), Actor: c.Query("actor")}
	rows, total, err := s.deps.Store.ListAudit(ctx, c.Who.Org, filter, page)
	if err != nil {
		return nil, err
	}
	return auditList{Audit: auditEntries(rows), Pages: rest.Pages(total, page)}, nil
}

// An auditEntry is one entry of the audit log.
type auditEntry struct {
	// Number of the entry; later entries have higher ones.
	ID int64 `json:"id"`
	// Time of the change.
	At time.Time `json:"at"`
	// Name of the actor: the e-mail address of a user or developer, the id of an OAuth client, or the
	// name of a gateway or system task.
	Actor string `json:"actor"`
	// Kind of the actor.
	ActorKind string `json:"actor_kind" enum:"user,gateway,developer,system,oauth client"`
	// IP address of the call; empty for system tasks.
	IP string `json:"ip"`
	// What was done, such as created, updated, deleted, signed in or password changed.
	Action string `json:"action"`
	// Kind of the object that it was done to.
	// Example: "api"
	ObjectKind string `json:"object_kind"`
	// Id of the object; of a key its hash.
	ObjectID string `json:"object_id"`
	// Revision of the configuration that the change made; null: it changed no configuration.
	Revision *int64 `json:"revision"`
	// Object before the change, with its secrets masked; null: it was created, or has no form to show.
	Before json.RawMessage `json:"before"`
	// Object after the change, with its secrets masked; null: it was deleted, or has no form to show.
	After json.RawMessage `json:"after"`
}

// auditEntries returns entries of the audit log as they are shown.
func auditEntries(rows []store.AuditRow) []auditEntry {
	all := make([]auditEntry, 0, len(rows))
	for _, row := range rows {
		all = append(all, auditEntry{
			ID: row.ID, At: row.At, Actor: row.Actor, ActorKind: row.ActorKind, IP: row.IP, Action: row.Action,
			ObjectKind: row.ObjectKind, ObjectID: row.ObjectID, Revision: row.Revision,
			Before: redact.JSON(row.Before), After: redact.JSON(row.After), // what is secret may be more than when it was written
		})
	}
	return all
}

// health is the answer to health checks.
type health struct {
	// pass: the process can do its work; fail: it cannot.
	Status string `json:"status" enum:"pass,fail"`
	// Version of the program.
	Version string `json:"version"`
	// State of each part by its name: ok, or what is wrong. /live checks nothing and leaves it out.
	// Example: {"bundle": "ok", "database": "ok"}
	Checks map[string]string `json:"checks,omitempty"`
}

// getHealth reports that the process is alive. It checks no dependency: a restart would
// not bring one back.
func (s *Server) getHealth(context.Context, *rest.Call) (any, error) {
	return health{Status: "pass", Version: s.deps.Version}, nil
}

// getReady reports whether the process can do its work.
func (s *Server) getReady(ctx context.Context, c *rest.Call) (any, error) {
	h := health{Status: "pass", Version: s.deps.Version, Checks: map[string]string{"database": "ok", "bundle": "ok"}}
	if err := s.deps.Store.Ping(ctx); err != nil {
		h.Status, h.Checks["database"] = "fail", "unavailable"
	}
	if s.gateways.Current() == nil {
		h.Status, h.Checks["bundle"] = "fail", "no configuration was read yet"
	}
	if h.Status == "pass" {
		return h, nil
	}
	writeHealth(c.HTTP, fasthttp.StatusServiceUnavailable, h)
	return nil, nil
}

// OpenAPI returns the OpenAPI document of the REST API, in JSON.
func (s *Server) OpenAPI() ([]byte, error) { return s.openapi() }

func (s *Server) describe() ([]byte, error) {
	text, err := rest.Describe(s.routes(), s.deps.Version, sources()...)
	if err != nil {
		return nil, fmt.Errorf("describing the API: %w", err)
	}
	return text, nil
}

// getDescription answers with the OpenAPI document.
func (s *Server) getDescription(context.Context, *rest.Call) (any, error) {
	text, err := s.OpenAPI()
	return json.RawMessage(text), err
}

// How long entries of the audit log are kept by default, and how often old ones are
// deleted.
const (
	keptAudit   = 730 * 24 * time.Hour
	forgetAudit = time.Hour
)

// deleteOldAudit deletes entries of the audit log that are too old, until ctx ends.
func (s *Server) deleteOldAudit(ctx context.Context) {
	tick := time.NewTicker(forgetAudit)
	defer tick.Stop()
	for {
		if err := s.deps.Store.ForgetAudit(ctx, time.Now().Add(-s.deps.AuditRetention)); err != nil && ctx.Err() == nil {
			s.log.Warn("old entries of the audit log could not be deleted", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
