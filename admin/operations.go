package admin

import (
	"context"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/shown"
	"github.com/sluicegate/sluice/admin/store"
)

// auditList is one page of the audit log, newest first.
type auditList struct {
	Audit []shown.AuditEntry `json:"audit"`
	Pages int64              `json:"pages"`
}

func (s *Server) listAudit(ctx context.Context, c *call) (any, error) {
	page, err := s.page(c, false)
	if err != nil {
		return nil, err
	}
	filter := store.AuditFilter{Kind: c.query("object_kind"), ID: c.query("object_id"), Actor: c.query("actor")}
	rows, total, err := s.deps.Store.ListAudit(ctx, c.who.org, filter, page)
	if err != nil {
		return nil, err
	}
	return auditList{Audit: shown.Audit(rows), Pages: pages(total, page)}, nil
}

// health is the answer to whoever watches over the process.
type health struct {
	Status  string            `json:"status" enum:"pass,fail"`
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks,omitempty" doc:"ok, or what is wrong, by part"`
}

// getHealth tells that the process lives. It asks nobody: a restart would not
// bring back what others lack.
func (s *Server) getHealth(context.Context, *call) (any, error) {
	return health{Status: "pass", Version: s.deps.Version}, nil
}

// getReady tells whether the process can do its work.
func (s *Server) getReady(ctx context.Context, c *call) (any, error) {
	h := health{Status: "pass", Version: s.deps.Version, Checks: map[string]string{"database": "ok", "bundle": "ok"}}
	if err := s.deps.Store.Ping(ctx); err != nil {
		h.Status, h.Checks["database"] = "fail", "unavailable"
	}
	if s.supply.Current() == nil {
		h.Status, h.Checks["bundle"] = "fail", "no configuration was read yet"
	}
	if h.Status == "pass" {
		return h, nil
	}
	body, err := encode(h)
	if err != nil {
		return nil, err
	}
	writeJSON(c.http, fasthttp.StatusServiceUnavailable, body)
	c.http.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	return nil, nil
}

// getDescription answers with the OpenAPI document.
func (s *Server) getDescription(context.Context, *call) (any, error) {
	return json.RawMessage(s.openapi), nil
}
