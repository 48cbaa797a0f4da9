package admin

import (
	"context"

	"github.com/sluicegate/sluice/admin/schemas"
)

func (s *Server) schemaRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/apis/{id}/schema", summary: "Get a GraphQL API's schema as text, in SDL", tag: "Schemas", role: roleViewer, gateway: true,
			query: []string{"hash"}, plain: true, reply: "", wrong: []int{400, 404}, handle: s.getSchema,
		},
		{
			method: "GET", path: "/api/apis/{id}/schema/history", summary: "List the schemas that a GraphQL API had", tag: "Schemas", role: roleViewer,
			reply: schemas.History{}, wrong: []int{400, 404}, handle: s.schemaHistory,
		},
		{
			method: "GET", path: "/api/apis/{id}/schema/status", summary: "Say what came of fetching a GraphQL API's schema", tag: "Schemas", role: roleViewer,
			reply: schemas.Status{}, wrong: []int{400, 404}, handle: s.schemaStatus,
		},
		{
			method: "POST", path: "/api/apis/{id}/schema/sync", summary: "Fetch a GraphQL API's schema from its upstream", tag: "Schemas", role: roleEditor,
			query: []string{"apply", "force"}, reply: syncAnswer{}, wrong: []int{400, 404, 409, 502}, match: true, handle: s.syncSchema,
		},
		{
			method: "POST", path: "/api/graphql/check", summary: "Check a schema without saving it", tag: "Schemas", role: roleViewer,
			body: schemaText{}, reply: schemaProblems{}, wrong: []int{400, 413, 415}, handle: s.checkSchema,
		},
	}
}

// syncAnswer is the envelope around a report.
type syncAnswer struct {
	Status  string          `json:"Status" enum:"OK"`
	Message string          `json:"Message"`
	Meta    *schemas.Report `json:"Meta"`
}

// schemaText is what is sent to be checked.
type schemaText struct {
	Schema string `json:"schema" doc:"in SDL"`
}

// schemaProblems is what is wrong with a schema.
type schemaProblems struct {
	Valid    bool              `json:"valid"`
	Problems []schemas.Problem `json:"problems"`
}

const noAPI = "Could not retrieve API detail"

func (s *Server) getSchema(ctx context.Context, c *call) (any, error) {
	text, version, err := s.schemas.Text(ctx, c.who.org, c.param("id"), c.query("hash"))
	if err != nil {
		return nil, missing(err, noAPI)
	}
	writeJSON(c.http, 200, []byte(text))
	c.http.Response.Header.SetContentType("text/plain; charset=utf-8")
	c.setVersion(version)
	return nil, nil
}

func (s *Server) schemaHistory(ctx context.Context, c *call) (any, error) {
	history, err := s.schemas.History(ctx, c.who.org, c.param("id"))
	return history, missing(err, noAPI)
}

func (s *Server) schemaStatus(ctx context.Context, c *call) (any, error) {
	status, err := s.schemas.Status(ctx, c.who.org, c.param("id"))
	return status, missing(err, noAPI)
}

func (s *Server) syncSchema(ctx context.Context, c *call) (any, error) {
	have, err := c.ifMatch()
	if err != nil {
		return nil, err
	}
	wish := schemas.Wish{Have: have, Apply: c.query("apply") == "" || c.flag("apply"), Force: c.flag("force")}
	report, err := s.schemas.Sync(ctx, c.author("sync"), c.param("id"), wish)
	if err != nil {
		return nil, missing(err, noAPI)
	}
	c.setVersion(report.Version)
	return syncAnswer{Status: "OK", Message: report.Message(), Meta: report}, nil
}

func (s *Server) checkSchema(_ context.Context, c *call) (any, error) {
	var sent schemaText
	if err := c.decode(&sent); err != nil {
		return nil, err
	}
	problems := schemas.Problems(sent.Schema)
	return schemaProblems{Valid: len(problems) == 0, Problems: problems}, nil
}
