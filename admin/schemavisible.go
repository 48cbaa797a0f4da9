package admin

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/rights"
)

// visible returns what a session may use of an API's schema. A nil session is that of a
// caller without a key, who may use all of it if the API is keyless, and whom the API's
// own limits alone bind. policies holds those of the session.
func (s *Server) visible(ctx context.Context, org, id string, session *definition.Session, policies *definition.PolicySet) (*rules.Visible, error) {
	api, err := s.schemas.GraphQLAPI(ctx, org, id)
	if err != nil {
		return nil, err
	}
	doc, err := sdl.Parse(api.GraphQL.Schema)
	if doc == nil {
		return nil, &schemas.Refusal{Status: fasthttp.StatusConflict, Message: schemas.InvalidSchema, Errors: []string{err.Error()}}
	}
	var may *rights.Access
	if session != nil && !api.UseKeyless {
		if may = accessOf(session, policies, id); may == nil {
			return &rules.Visible{SizeArguments: []string{}, FieldDepths: []rules.FieldDepth{}}, nil
		}
	}
	return rules.Compile(schema.Compile(doc), may, rules.OptionsOf(api.GraphQL)).Visible(api.GraphQL, doc, may)
}

// accessOf returns what a session may do with an API, or nil if it may not call it.
func accessOf(session *definition.Session, policies *definition.PolicySet, api string) *rights.Access {
	all, err := rights.Effective(session, policies)
	if err != nil { // the key cannot be used at all
		return nil
	}
	may, ok := all.For(api)
	if !ok || all.Inactive.Value {
		return nil
	}
	return may
}
