package change

import (
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/graphql/compose"
)

// Compose composes the supergraph of a definition. The error is a *definition.Problems with
// everything that keeps its subgraphs from being composed.
func Compose(s *definition.GraphQLSupergraph) (*compose.Supergraph, error) {
	const path = "graphql.supergraph.subgraphs"
	var problems definition.Problems
	var subgraphs []compose.Subgraph
	at := make(map[string]string)
	if s != nil {
		for i := range s.Subgraphs {
			m := &s.Subgraphs[i]
			at[m.Name] = object.Member(object.Item(path, i), "sdl")
			if strings.TrimSpace(m.SDL) == "" {
				problems = append(problems, definition.Problem{Path: at[m.Name], Message: "is not there; only the admin fills in the schema of the API in api_id"})
			}
			subgraphs = append(subgraphs, compose.Subgraph{Name: m.Name, SDL: m.SDL})
		}
	}
	if len(problems) > 0 {
		return nil, &problems
	}
	made, found := compose.Compose(subgraphs)
	for i := range found {
		place := path
		if p := found[i].Places; len(p) > 0 && at[p[0].Subgraph] != "" {
			place = at[p[0].Subgraph]
		}
		problems = append(problems, definition.Problem{Path: place, Message: string(found[i].Code) + ": " + found[i].String()})
	}
	if len(problems) > 0 {
		return nil, &problems
	}
	return made, nil
}
