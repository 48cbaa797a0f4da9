package admin

import (
	"context"
	"slices"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/internal/usage"
)

// graphQLUseRoutes are the routes that say how GraphQL APIs are used. Gateways count that
// in memory, from their start.
func (s *Server) graphQLUseRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/apis/{id}/usage/operations", Summary: "Count the GraphQL operations of an API by name and result, since its gateways were started", Tag: "APIs", Role: rest.Viewer,
			Reply: operationsUse{}, Wrong: []int{404}, Handle: s.operationsUsed,
		},
		{
			Method: "GET", Path: "/api/apis/{id}/usage/fields", Summary: "Count which GraphQL fields of an API are read, and by which keys, since its gateways were started", Tag: "APIs", Role: rest.Viewer,
			Query: []string{"type"}, Reply: fieldsUse{}, Wrong: []int{400, 404}, Handle: s.fieldsUsed,
		},
	}
}

// operationsUse is how often the operations of an API ran.
type operationsUse struct {
	usage.CountedBy
	// Operations by kind and name, those first that ran most.
	Operations []usage.OperationUse `json:"operations" nullable:"false"`
}

// fieldsUse is which fields of an API were read.
type fieldsUse struct {
	usage.CountedBy
	// Fields that were read, by type and name; at most 2000.
	Fields []usage.FieldUse `json:"fields" nullable:"false"`
	// Number of the fields that were read; if more than are listed, ask with the parameter type.
	Total int `json:"total"`
}

func (s *Server) operationsUsed(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.knows(ctx, c); err != nil {
		return nil, err
	}
	answers, by, err := s.askUse(ctx, &usage.GraphQLQuestion{API: c.Param("id")})
	if err != nil {
		return nil, err
	}
	return operationsUse{by, usage.MergeOperations(answers)}, nil
}

// maxTypeName bounds the names of types that are asked for, in bytes.
const maxTypeName = 200

func (s *Server) fieldsUsed(ctx context.Context, c *rest.Call) (any, error) {
	q := usage.GraphQLQuestion{Type: c.Query("type"), Fields: usage.MaxFields}
	if len(q.Type) > maxTypeName {
		return nil, rest.BadRequest("type must be the name of a type of the schema, of at most 200 bytes")
	}
	if err := s.knows(ctx, c); err != nil {
		return nil, err
	}
	q.API = c.Param("id")
	return s.readsOf(ctx, &q)
}

// readsOf asks the gateways which fields were read.
func (s *Server) readsOf(ctx context.Context, q *usage.GraphQLQuestion) (*fieldsUse, error) {
	answers, by, err := s.askUse(ctx, q)
	if err != nil {
		return nil, err
	}
	use := &fieldsUse{CountedBy: by, Fields: usage.MergeFields(answers)}
	for _, a := range answers {
		use.Total = max(use.Total, a.Fields.Total)
	}
	use.Total = max(use.Total, len(use.Fields))
	use.Fields = use.Fields[:min(len(use.Fields), usage.MaxFields)]
	return use, nil
}

// fieldsRead asks the gateways which fields of an API were read.
func (s *Server) fieldsRead(ctx context.Context, api string) (*schemas.Use, error) {
	use, err := s.readsOf(ctx, &usage.GraphQLQuestion{API: api, Fields: usage.MaxFields})
	if err != nil {
		return nil, err
	}
	return &schemas.Use{CountedBy: use.CountedBy, Fields: use.Fields, More: use.Total > len(use.Fields)}, nil
}

// knows returns an error unless the API of a call exists.
func (s *Server) knows(ctx context.Context, c *rest.Call) error {
	_, err := s.deps.Store.APIByID(ctx, c.Who.Org, c.Param("id"))
	return rest.Missing(err, noAPI)
}

// askUse asks the gateways how an API was used.
func (s *Server) askUse(ctx context.Context, q *usage.GraphQLQuestion) (answers []usage.GraphQLAnswer, by usage.CountedBy, err error) {
	answers, silent, err := ask(ctx, s, question{text: q.String()}, everyAnswer[usage.GraphQLAnswer])
	if err != nil {
		return nil, by, err
	}
	answers = slices.DeleteFunc(answers, func(a usage.GraphQLAnswer) bool { return q.Fields > 0 && a.Fields == nil })
	by = usage.CountedBy{Gateways: make([]string, 0, len(answers)), Silent: append([]string{}, silent...)}
	for i := range answers {
		a := &answers[i]
		by.Gateways = append(by.Gateways, a.Gateway)
		if !a.Since.IsZero() && (by.Since == nil || a.Since.Before(*by.Since)) {
			by.Since = &a.Since
		}
	}
	slices.Sort(by.Gateways)
	return answers, by, nil
}
