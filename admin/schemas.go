package admin

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/rules"
)

func (s *Server) schemaRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/apis/{id}/schema", Summary: "Get a GraphQL API's schema as text, in SDL", Tag: "Schemas", Role: rest.Viewer, Gateway: true,
			Query: []string{"hash"}, Type: "text/plain", Reply: "", Wrong: []int{400, 404}, Handle: s.getSchema,
		},
		{
			Method: "GET", Path: "/api/apis/{id}/schema/visible", Summary: "Get what a key or a policy may use of a GraphQL API's schema; without either, what the API itself permits", Tag: "Schemas", Role: rest.Viewer,
			Query: []string{"policy", "key_hash"}, Reply: rules.Visible{}, Wrong: []int{400, 404}, Handle: s.visibleSchema,
		},
		{
			Method: "GET", Path: "/api/apis/{id}/schema/history", Summary: "List the schemas that a GraphQL API had", Tag: "Schemas", Role: rest.Viewer,
			Reply: schemas.History{}, Wrong: []int{400, 404}, Handle: s.schemaHistory,
		},
		{
			Method: "GET", Path: "/api/apis/{id}/schema/status", Summary: "Say what came of fetching a GraphQL API's schema", Tag: "Schemas", Role: rest.Viewer,
			Reply: schemas.Status{}, Wrong: []int{400, 404}, Handle: s.schemaStatus,
		},
		{
			Method: "POST", Path: "/api/apis/{id}/schema/sync", Summary: "Fetch a GraphQL API's schema from its upstream", Tag: "Schemas", Role: rest.Editor,
			Query: []string{"apply", "force"}, Reply: syncAnswer{}, Wrong: []int{400, 404, 409, 502}, Match: true, Handle: s.syncSchema,
		},
		{
			Method: "POST", Path: "/api/apis/{id}/schema/check", Summary: "Say what another schema of a GraphQL API would change for its clients, and for those of supergraphs that name it; nothing is stored", Tag: "Schemas", Role: rest.Viewer,
			Body: candidate{}, Reply: checked{}, Wrong: []int{400, 404, 413, 415}, Handle: s.checkCandidate,
		},
		{
			Method: "POST", Path: "/api/graphql/check", Summary: "Check a schema without saving it", Tag: "Schemas", Role: rest.Viewer,
			Body: schemaText{}, Reply: schemaProblems{}, Wrong: []int{400, 413, 415}, Handle: s.checkSchema,
		},
		{
			Method: "POST", Path: "/api/graphql/compose", Summary: "Compose subgraphs without saving anything", Tag: "Schemas", Role: rest.Viewer,
			Body: composed{}, Reply: schemas.Composition{}, Wrong: []int{400, 413, 415}, Handle: s.composeSubgraphs,
		},
	}
}

// syncAnswer is a report in an envelope.
type syncAnswer struct {
	// Always OK; failed calls are answered with an Envelope.
	Status string `json:"Status" enum:"OK"`
	// What was done, in English.
	Message string `json:"Message"`
	// Result of fetching the schema.
	Meta *schemas.Report `json:"Meta"`
}

// schemaText is a schema to be checked.
type schemaText struct {
	// Schema in SDL.
	// Example: "type Query { hello: String }"
	Schema string `json:"schema"`
}

// candidate is a schema that an API might get.
type candidate struct {
	// Schema in SDL; that of graphql.subgraph.sdl for a subgraph that has one. Left out for a
	// supergraph, which is composed anew of the schemas of its APIs.
	// Example: "type Query { hello: String }"
	Schema string `json:"schema,omitempty"`
}

// checked is what a schema would change.
type checked struct {
	// Effects on the clients of the API, if its schema would differ, and on those of each supergraph
	// that names it.
	Effects []*schemas.ClientEffect `json:"effects" nullable:"false"`
}

// composed are subgraphs to be composed.
type composed struct {
	// Subgraphs to compose, 1 to 1,000.
	// Example: [{"name": "orders", "api_id": "orders"}]
	Subgraphs []subgraph `json:"subgraphs"`
}

// subgraph is a service to be composed with others.
type subgraph struct {
	// Name of the subgraph, unique among the subgraphs.
	Name string `json:"name"`
	// Id of the API that is the subgraph. Default: none, and sdl is required.
	APIID string `json:"api_id,omitempty"`
	// Schema with the directives of federation. Default: that of the API.
	SDL string `json:"sdl,omitempty"`
}

// schemaProblems are the problems of a schema.
type schemaProblems struct {
	// Whether the schema has no problems.
	Valid bool `json:"valid"`
	// Problems of the schema, in the order of their places.
	Problems []schemas.Problem `json:"problems"`
}

const noAPI = "Could not retrieve API detail"

func (s *Server) getSchema(ctx context.Context, c *rest.Call) (any, error) {
	text, version, err := s.schemas.Text(ctx, c.Who.Org, c.Param("id"), c.Query("hash"))
	if err != nil {
		return nil, rest.Missing(err, noAPI)
	}
	rest.WriteJSON(c.HTTP, 200, []byte(text))
	c.HTTP.Response.Header.SetContentType("text/plain; charset=utf-8")
	c.SetVersion(version)
	return nil, nil
}

// visibleSchema answers with what a key or a policy may use of a schema.
func (s *Server) visibleSchema(ctx context.Context, c *rest.Call) (any, error) {
	hash, policy := c.Query("key_hash"), c.Query("policy")
	var session *definition.Session
	switch {
	case hash != "" && policy != "":
		return nil, rest.BadRequest("Give key_hash or policy, not both")
	case hash != "":
		row, err := s.firstKey(ctx, c.Who.Org, []string{hash})
		if err == nil {
			session, _, err = s.owner(ctx, row)
		}
		if err != nil {
			return nil, rest.Missing(err, keyMissing)
		}
	case policy != "":
		if _, err := s.deps.Store.PolicyByID(ctx, c.Who.Org, policy); err != nil {
			return nil, rest.Missing(err, "Could not retrieve portal object.")
		}
		session = &definition.Session{OrgID: c.Who.Org, ApplyPolicies: []string{policy}}
	}
	var policies *definition.PolicySet
	if session != nil {
		var err error
		if policies, err = s.policySet(ctx, c.Who.Org, session.Policies()); err != nil {
			return nil, err
		}
	}
	seen, err := s.visible(ctx, c.Who.Org, c.Param("id"), session, policies)
	return seen, rest.Missing(err, noAPI)
}

func (s *Server) schemaHistory(ctx context.Context, c *rest.Call) (any, error) {
	history, err := s.schemas.History(ctx, c.Who.Org, c.Param("id"))
	return history, rest.Missing(err, noAPI)
}

func (s *Server) schemaStatus(ctx context.Context, c *rest.Call) (any, error) {
	status, err := s.schemas.Status(ctx, c.Who.Org, c.Param("id"))
	return status, rest.Missing(err, noAPI)
}

func (s *Server) syncSchema(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	wish := schemas.SyncOptions{Have: have, Apply: c.Query("apply") == "" || c.Flag("apply"), Force: c.Flag("force")}
	report, err := s.schemas.Sync(ctx, c.Author("sync"), c.Param("id"), wish)
	if err != nil {
		return nil, rest.Missing(err, noAPI)
	}
	c.SetVersion(report.Version)
	return syncAnswer{Status: "OK", Message: report.Message(), Meta: report}, nil
}

func (s *Server) checkCandidate(ctx context.Context, c *rest.Call) (any, error) {
	var sent candidate
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	effects, err := s.schemas.Check(ctx, c.Who.Org, c.Param("id"), sent.Schema)
	return checked{effects}, rest.Missing(err, noAPI)
}

func (s *Server) checkSchema(_ context.Context, c *rest.Call) (any, error) {
	var sent schemaText
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	problems := schemas.Problems(sent.Schema)
	return schemaProblems{Valid: len(problems) == 0, Problems: problems}, nil
}

func (s *Server) composeSubgraphs(ctx context.Context, c *rest.Call) (any, error) {
	var sent composed
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if len(sent.Subgraphs) > compose.MaxSubgraphs {
		return nil, rest.BadRequest(fmt.Sprintf("subgraphs: has %d entries; at most %d are allowed", len(sent.Subgraphs), compose.MaxSubgraphs))
	}
	members := make([]definition.GraphQLMember, len(sent.Subgraphs))
	for i, one := range sent.Subgraphs {
		members[i] = definition.GraphQLMember{Name: one.Name, APIID: one.APIID, SDL: one.SDL}
	}
	return s.schemas.Compose(ctx, c.Who.Org, "subgraphs", members)
}
