package graphql

import (
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

func TestTheGatewaySaysWhatDepthCountsFromWhereADefinitionDoesNot(t *testing.T) {
	for _, c := range []struct {
		zero bool // of the gateway
		own  *int // of the definition
		want int
	}{
		{false, nil, 1}, {true, nil, 0}, {true, new(1), 1}, {false, new(0), 0},
	} {
		g := New(Options{DepthBase0: c.zero, Cache: asideCache, RefusedCache: asideCache})
		s, err := g.Compile(&definition.API{ID: "a", GraphQL: &definition.GraphQL{
			Enabled: true, ExecutionMode: definition.ModeProxy, Schema: "type Query { a: Int }", DepthBase: c.own,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if s.rules.DepthBase != c.want {
			t.Errorf("gateway %v, definition %v: %d, want %d", c.zero, c.own, s.rules.DepthBase, c.want)
		}
	}
}
