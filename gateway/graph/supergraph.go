package graph

import (
	"fmt"
	"slices"
	"strings"

	gds "github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/graphql_datasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// nodesOf returns what the planner has to know about the types of the subgraph.
func (s *source) nodesOf() (*plan.DataSourceMetadata, error) {
	own, err := schema.Load(s.Subgraph.SDL)
	if err != nil {
		return nil, err
	}
	given := s.given()
	md := new(plan.DataSourceMetadata)
	for i := range s.Subgraph.Types {
		t := &s.Subgraph.Types[i]
		node := plan.TypeField{TypeName: t.Name, FieldNames: t.Fields, ExternalFieldNames: t.External}
		if given[t.Name] != "" {
			node.FieldNames = slices.DeleteFunc(slices.Clone(t.Fields), func(f string) bool { return slices.Contains(t.Given, f) })
			node.ExternalFieldNames = slices.Concat(t.External, t.Given)
		}
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
	}
	md.Provides = s.provides(own, given)
	return md, nil
}

// given returns the keys of entities that other subgraphs define, by type. The subgraph has
// the values of these fields in objects that its own fields return. In those that it is
// asked for by a key it has only what it is given: were they among its fields, the planner
// would wait for one key to get another.
func (s *source) given() map[string]string {
	all := make(map[string]string)
	for i := range s.Subgraph.Types {
		t := &s.Subgraph.Types[i]
		if len(t.Given) == 0 || !s.isObject(t.Name) {
			continue
		}
		var keys []string
		for _, k := range t.Keys {
			keys = append(keys, k.Fields)
		}
		all[t.Name] = strings.Join(keys, " ")
	}
	return all
}

// provides returns what the fields of the subgraph have beside the fields of their type:
// by @provides, and the keys of given.
func (s *source) provides(own *schema.Schema, given map[string]string) (all plan.FederationFieldConfigurations) {
	said := make(map[string]string)
	for i := range s.Subgraph.Types {
		t := &s.Subgraph.Types[i]
		for _, one := range t.Provides {
			said[t.Name+"."+one.Field] = one.Fields
		}
	}
	for i := range own.Fields {
		f := &own.Fields[i]
		owner := own.Types[f.Owner].Name
		sets := []string{said[owner+"."+f.Name]}
		for t := range own.Types {
			name := own.Types[t].Name
			switch id := schema.TypeID(t); {
			case given[name] == "":
			case id == f.Type.Type():
				sets = append(sets, given[name])
			case own.Possible(f.Type.Type()).Has(id):
				sets = append(sets, "... on "+name+" { "+given[name]+" }")
			}
		}
		if set := strings.TrimSpace(strings.Join(sets, " ")); set != "" {
			all = append(all, plan.FederationFieldConfiguration{TypeName: owner, FieldName: f.Name, SelectionSet: set})
		}
	}
	return all
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
