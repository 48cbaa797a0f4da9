package datagraph

import (
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

const supergraphPath = "graphql.supergraph"

// Composed returns a definition with the schema of its supergraph: merged_sdl, or if that
// is not there what its subgraphs compose to. Other definitions are returned as they are.
// The error is a *definition.Problems.
func Composed(api *definition.API) (*definition.API, error) {
	if !api.IsSupergraph() || api.GraphQL.Supergraph == nil {
		return api, nil
	}
	text := api.GraphQL.Supergraph.MergedSDL
	if strings.TrimSpace(text) == "" {
		made, err := composed(api.GraphQL.Supergraph)
		if err != nil {
			return nil, err
		}
		text = made.SDL
	}
	with, part := *api, *api.GraphQL
	part.Schema = text
	with.GraphQL = &part
	return &with, nil
}

// composed composes the subgraphs of a definition. The error is a *definition.Problems.
func composed(def *definition.GraphQLSupergraph) (*compose.Supergraph, error) {
	const path = supergraphPath + ".subgraphs"
	var problems definition.Problems
	subgraphs := make([]compose.Subgraph, len(def.Subgraphs))
	at := make(map[string]string, len(def.Subgraphs))
	for i := range def.Subgraphs {
		m := &def.Subgraphs[i]
		at[m.Name] = object.Member(object.Item(path, i), "sdl")
		if strings.TrimSpace(m.SDL) == "" {
			problems = append(problems, definition.Problem{Path: at[m.Name], Message: "is not there; only the admin fills in the schema of the API in api_id"})
		}
		subgraphs[i] = compose.Subgraph{Name: m.Name, SDL: m.SDL}
	}
	if len(problems) > 0 {
		return nil, &problems
	}
	made, found := compose.Compose(subgraphs)
	if made != nil {
		return made, nil
	}
	for i := range found {
		place := path
		if p := found[i].Places; len(p) > 0 && at[p[0].Subgraph] != "" {
			place = at[p[0].Subgraph]
		}
		problems = append(problems, definition.Problem{Path: place, Message: string(found[i].Code) + ": " + found[i].String()})
	}
	return nil, &problems
}

// compileSupergraph reads the subgraphs of a definition as sources.
func compileSupergraph(api *definition.API, s *schema.Schema) (*Graph, error) {
	def := api.GraphQL.Supergraph
	if def == nil {
		def = new(definition.GraphQLSupergraph)
	}
	made, err := composed(def)
	if err != nil {
		return nil, err
	}
	if err := covered(s, made.SDL); err != nil {
		return nil, err
	}
	known := make(map[string]*compose.Metadata, len(made.Subgraphs))
	for i := range made.Subgraphs {
		known[made.Subgraphs[i].Name] = &made.Subgraphs[i]
	}
	g := &Graph{Schema: s, Headers: named(def.GlobalHeaders)}
	for i := range def.Subgraphs {
		m := &def.Subgraphs[i]
		g.Sources = append(g.Sources, &Source{
			Name: m.Name, Headers: named(m.Headers),
			Config:   &definition.GraphQLSourceConfig{URL: m.URL, SubscriptionType: m.SubscriptionType, SSEUsePost: m.SSEUsePost},
			Subgraph: known[m.Name], OneByOne: def.DisableQueryBatching,
		})
	}
	return g, nil
}

func named(headers map[string]string) (all []Named) {
	for _, name := range object.SortedKeys(headers) {
		all = append(all, Named{name, Template{{Root: Text, Text: headers[name]}}})
	}
	return all
}

// covered returns an error if a schema has fields that are not in what its subgraphs
// compose to: no subgraph would be asked for them.
func covered(s *schema.Schema, composed string) error {
	by, err := schema.Load(composed)
	if err != nil {
		return err
	}
	var problems definition.Problems
	for i := range s.Fields {
		f := &s.Fields[i]
		owner := &s.Types[f.Owner]
		if owner.BuiltIn || s.IsMeta(schema.FieldID(i)) {
			continue
		}
		t, ok := by.TypeNamed([]byte(owner.Name))
		if ok {
			_, ok = by.FieldNamed(t, []byte(f.Name))
		}
		if !ok {
			problems = append(problems, definition.Problem{
				Path:    supergraphPath + ".merged_sdl",
				Message: "has the field " + owner.Name + "." + f.Name + ", which no subgraph has; leave merged_sdl out to have it composed",
			})
		}
	}
	if len(problems) > 0 {
		return &problems
	}
	return nil
}
