package graph

import (
	"fmt"
	"strings"

	gds "github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/graphql_datasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// nodesOf returns what the planner has to know about the types of the subgraph.
func (s *source) nodesOf() *plan.DataSourceMetadata {
	md := new(plan.DataSourceMetadata)
	for i := range s.Subgraph.Types {
		t := &s.Subgraph.Types[i]
		node := plan.TypeField{TypeName: t.Name, FieldNames: t.Fields, ExternalFieldNames: t.External}
		entity := s.isObject(t.Name) && len(t.Keys) > 0
		if t.Root || entity {
			md.RootNodes = append(md.RootNodes, node)
		} else {
			md.ChildNodes = append(md.ChildNodes, node)
		}
		for _, k := range t.Keys {
			if !entity {
				break // an interface with keys is none that can be fetched
			}
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

func (s *source) isObject(name string) bool {
	id, ok := s.graph.data.Schema.TypeNamed([]byte(name))
	return ok && s.graph.data.Schema.Types[id].Kind == schema.Object
}

// federated returns the schema of the subgraph for the library, which takes the types that
// are entities from a text with keys.
func (s *source) federated() (*gds.SchemaConfiguration, error) {
	var keys strings.Builder
	for i := range s.Subgraph.Types {
		if t := &s.Subgraph.Types[i]; t.Entity && s.isObject(t.Name) {
			fmt.Fprintf(&keys, "type %s @key(fields: \"_\") { _: ID }\n", t.Name)
		}
	}
	if keys.Len() == 0 {
		return gds.NewSchemaConfiguration(s.Subgraph.SDL, nil)
	}
	return gds.NewSchemaConfiguration(s.Subgraph.SDL, &gds.FederationConfiguration{Enabled: true, ServiceSDL: keys.String()})
}
