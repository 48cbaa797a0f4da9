package schemas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/graphql/compose"
)

// membersPath is the path of the subgraphs in the definition of a supergraph.
const membersPath = "graphql.supergraph.subgraphs"

// A Composition is what comes of composing subgraphs.
type Composition struct {
	// Whether the subgraphs can be composed.
	Valid bool `json:"valid"`
	// Schema of clients in SDL; left out if the subgraphs cannot be composed.
	MergedSDL string `json:"merged_sdl,omitempty"`
	// Everything because of which the subgraphs cannot be composed; at most 1,001.
	Problems []ComposeProblem `json:"problems"`
}

// A ComposeProblem is one thing because of which subgraphs cannot be composed.
type ComposeProblem struct {
	// Kind of the problem, which does not change between releases.
	// Example: "FIELD_TYPE_MISMATCH"
	Code compose.Code `json:"code"`
	// Rule that is broken, in English.
	Message string `json:"message"`
	// What breaks the rule; left out where the message says it.
	Detail string `json:"detail,omitempty"`
	// Name of the type that the problem is about; left out: it is not about one type.
	Type string `json:"type,omitempty"`
	// Field, input field, enum value or union member that the problem is about; field(argument:) for
	// an argument.
	Field string `json:"field,omitempty"`
	// Subgraphs and lines that the problem is about; at most 20.
	Places []compose.Place `json:"places,omitempty"`
}

// Compose composes subgraphs of an organisation. Those that name an API and have no schema
// get that of the API. References that lead nowhere are a *definition.Problems, with
// paths below path.
func (k *Keeper) Compose(ctx context.Context, org, path string, members []definition.GraphQLMember) (*Composition, error) {
	if err := k.takeSchemas(ctx, org, path, members); err != nil {
		return nil, err
	}
	subgraphs := make([]compose.Subgraph, len(members))
	for i := range members {
		subgraphs[i] = compose.Subgraph{Name: members[i].Name, SDL: members[i].SDL}
	}
	made, found := compose.Compose(subgraphs)
	c := &Composition{Valid: made != nil, Problems: make([]ComposeProblem, 0, len(found))}
	if made != nil {
		c.MergedSDL = made.SDL
	}
	for _, p := range found {
		c.Problems = append(c.Problems, ComposeProblem(p))
	}
	return c, nil
}

// takeSchemas gives members that name an API the schema of that API.
func (k *Keeper) takeSchemas(ctx context.Context, org, path string, members []definition.GraphQLMember) error {
	var problems definition.Problems
	for i := range members {
		m := &members[i]
		if m.SDL != "" || m.APIID == "" {
			continue
		}
		api, err := k.member(ctx, org, m.APIID)
		at := object.Member(object.Item(path, i), "api_id")
		if errors.Is(err, store.ErrNotFound) {
			problems = append(problems, definition.Problem{Path: at, Message: "names no API of the organisation"})
			continue
		}
		if err != nil {
			return err
		}
		if api == nil {
			problems = append(problems, definition.Problem{Path: at, Message: "names an API of this batch that has problems of its own"})
			continue
		}
		if m.SDL = api.FederatedSchema(); m.SDL == "" {
			problems = append(problems, definition.Problem{Path: at, Message: "names an API that is not a GraphQL API with a schema"})
		}
	}
	if len(problems) > 0 {
		return &problems
	}
	return nil
}

// Among returns a Keeper that composes supergraphs of the APIs of a batch, by id, before
// stored ones. An API that is nil has problems.
func (k *Keeper) Among(batch map[string]*definition.API) *Keeper {
	among := *k
	among.batch = batch
	return &among
}

// member returns an API that a supergraph names; nil if it is one of a batch that has
// problems.
func (k *Keeper) member(ctx context.Context, org, id string) (*definition.API, error) {
	if api, ok := k.batch[id]; ok {
		return api, nil
	}
	row, err := k.store.APIByID(ctx, org, id)
	if err != nil {
		return nil, err
	}
	return read(&row)
}

// read returns the definition of a stored API.
func read(row *store.API) (*definition.API, error) {
	api := new(definition.API)
	if err := json.Unmarshal(row.Definition, api); err != nil {
		return nil, fmt.Errorf("reading API %s: %w", row.ID, err)
	}
	api.ID = row.ID
	return api, nil
}

// compose composes a supergraph that is to be saved, and stores the schema in it.
func (k *Keeper) compose(ctx context.Context, org string, api, stored *definition.API) error {
	g := api.GraphQL.Supergraph
	made, err := k.Compose(ctx, org, membersPath, g.Subgraphs)
	if err != nil {
		return err
	}
	if !made.Valid {
		return made.refusal(g.Subgraphs)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	if stored != nil && stored.IsSupergraph() && stored.GraphQL.Supergraph != nil && stored.GraphQL.Schema == made.MergedSDL {
		now = stored.GraphQL.Supergraph.UpdatedAt
	}
	g.MergedSDL, g.UpdatedAt = made.MergedSDL, now
	api.GraphQL.Schema, api.GraphQL.LastSchemaUpdate = made.MergedSDL, now
	return nil
}

// refusal returns the problems, each at the schema of the first subgraph that it is about.
func (c *Composition) refusal(members []definition.GraphQLMember) *Refusal {
	at := make(map[string]string, len(members))
	for i := range members {
		at[members[i].Name] = object.Member(object.Item(membersPath, i), "sdl")
	}
	r := &Refusal{Status: badRequest, Message: InvalidSchema, Path: membersPath}
	for _, p := range c.Problems {
		text := string(p.Code) + ": " + (*compose.Problem)(&p).String()
		if len(p.Places) > 0 && at[p.Places[0].Subgraph] != "" {
			text = at[p.Places[0].Subgraph] + ": " + text
		}
		r.Errors = append(r.Errors, text)
	}
	return r
}

// serve gives a subgraph the schema that its schema for federation makes.
func serve(api *definition.API) error {
	const path = "graphql.subgraph.sdl"
	schema, found := compose.Served(compose.Subgraph{Name: "this subgraph", SDL: api.GraphQL.SubgraphSDL()})
	if len(found) == 0 {
		api.GraphQL.Schema = schema
		return nil
	}
	r := &Refusal{Status: badRequest, Message: InvalidSchema, Path: path}
	for i := range found {
		r.Errors = append(r.Errors, path+": "+string(found[i].Code)+": "+found[i].String())
	}
	return r
}
