package admin

import (
	"context"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/shown"
	"github.com/sluicegate/sluice/admin/store"
)

// auditList is one page of the audit log, newest first.
type auditList struct {
	Audit []shown.AuditEntry `json:"audit"`
	Pages int64              `json:"pages"`
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
	return auditList{Audit: shown.Audit(rows), Pages: rest.Pages(total, page)}, nil
}

// health is the answer to whoever watches over the process.
type health struct {
	Status  string            `json:"status" enum:"pass,fail"`
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks,omitempty" doc:"ok, or what is wrong, by part"`
}

// getHealth tells that the process lives. It asks nobody: a restart would not
// bring back what others lack.
func (s *Server) getHealth(context.Context, *rest.Call) (any, error) {
	return health{Status: "pass", Version: s.deps.Version}, nil
}

// getReady tells whether the process can do its work.
func (s *Server) getReady(ctx context.Context, c *rest.Call) (any, error) {
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
	body, err := rest.Encode(h)
	if err != nil {
		return nil, err
	}
	rest.WriteJSON(c.HTTP, fasthttp.StatusServiceUnavailable, body)
	c.HTTP.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	return nil, nil
}

// getDescription answers with the OpenAPI document.
func (s *Server) getDescription(context.Context, *rest.Call) (any, error) {
	return json.RawMessage(s.openapi), nil
}
