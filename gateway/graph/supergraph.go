package graph

import (
	"fmt"
	"strings"

	gds "github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/graphql_datasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"

	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// Composed returns a definition with the schema of its supergraph: merged_sdl, or if that
// is not there what its subgraphs compose to. Other definitions are returned as they are.
// The error is a *definition.Problems.
func Composed(api *definition.API) (*definition.API, error) {
	if !api.IsSupergraph() || api.GraphQL.Supergraph == nil {
		return api, nil
	}
	text := api.GraphQL.Supergraph.MergedSDL
	if strings.TrimSpace(text) == "" {
		made, err := change.Compose(api.GraphQL.Supergraph)
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

// supergraph reads the subgraphs of an API as sources, and returns what the planner has to
// know about each, by name.
func supergraph(api *definition.API, s *schema.Schema) (*datagraph.Graph, map[string]*compose.Metadata, error) {
	def := api.GraphQL.Supergraph
	made, err := change.Compose(def)
	if err != nil {
		return nil, nil, err
	}
	if err := covered(s, made.SDL); err != nil {
		return nil, nil, err
	}
	g := &datagraph.Graph{Schema: s, Headers: named(def.GlobalHeaders)}
	known := make(map[string]*compose.Metadata, len(made.Subgraphs))
	for i := range made.Subgraphs {
		known[made.Subgraphs[i].Name] = &made.Subgraphs[i]
	}
	for i := range def.Subgraphs {
		m := &def.Subgraphs[i]
		g.Sources = append(g.Sources, &datagraph.Source{Name: m.Name, Config: &definition.GraphQLSourceConfig{URL: m.URL}, Headers: named(m.Headers)})
	}
	return g, known, nil
}

func named(headers map[string]string) (all []datagraph.Named) {
	for _, name := range object.SortedKeys(headers) {
		all = append(all, datagraph.Named{Name: name, Value: datagraph.Template{{Root: datagraph.Text, Text: headers[name]}}})
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
	for i := range s.Fields {
		f := &s.Fields[i]
		if owner := &s.Types[f.Owner]; !owner.BuiltIn && !s.IsMeta(schema.FieldID(i)) {
			t, ok := by.TypeNamed([]byte(owner.Name))
			if ok {
				_, ok = by.FieldNamed(t, []byte(f.Name))
			}
			if !ok {
				return fmt.Errorf("graphql.supergraph.merged_sdl: has the field %s.%s, which no subgraph has; leave merged_sdl out to have it composed", owner.Name, f.Name)
			}
		}
	}
	return nil
}

// nodesOf returns what the planner has to know about the types of the subgraph.
func (s *source) nodesOf() *plan.DataSourceMetadata {
	md := new(plan.DataSourceMetadata)
	for i := range s.subgraph.Types {
		t := &s.subgraph.Types[i]
		node := plan.TypeField{TypeName: t.Name, FieldNames: t.Fields, ExternalFieldNames: t.External}
		if t.Root || s.isEntity(t) {
			md.RootNodes = append(md.RootNodes, node)
		} else {
			md.ChildNodes = append(md.ChildNodes, node)
		}
		if !s.isEntity(t) {
			t = &compose.Type{Name: t.Name, Provides: t.Provides}
		}
		for _, k := range t.Keys {
			md.Keys = append(md.Keys, plan.FederationFieldConfiguration{TypeName: t.Name, SelectionSet: k.Fields, DisableEntityResolver: !k.Resolvable})
		}
		for _, one := range t.Requires {
			md.Requires = append(md.Requires, plan.FederationFieldConfiguration{TypeName: t.Name, FieldName: one.Field, SelectionSet: one.Fields})
		}
		for _, one := range t.Provides {
			md.Provides = append(md.Provides, plan.FederationFieldConfiguration{TypeName: t.Name, FieldName: one.Field, SelectionSet: one.Fields})
		}
	}
	return md
}

// isEntity reports whether a type of the subgraph is an object type with a key.
func (s *source) isEntity(t *compose.Type) bool {
	id, ok := s.graph.data.Schema.TypeNamed([]byte(t.Name))
	return ok && len(t.Keys) > 0 && s.graph.data.Schema.Types[id].Kind == schema.Object
}

// federated returns the schema of the subgraph for the library, which takes the types that
// are entities from a text with keys.
func (s *source) federated() (*gds.SchemaConfiguration, error) {
	var keys strings.Builder
	for i := range s.subgraph.Types {
		if t := &s.subgraph.Types[i]; t.Entity && s.isEntity(t) {
			fmt.Fprintf(&keys, "type %s @key(fields: \"_\") { _: ID }\n", t.Name)
		}
	}
	if keys.Len() == 0 {
		return gds.NewSchemaConfiguration(s.subgraph.SDL, nil)
	}
	return gds.NewSchemaConfiguration(s.subgraph.SDL, &gds.FederationConfiguration{Enabled: true, ServiceSDL: keys.String()})
}
