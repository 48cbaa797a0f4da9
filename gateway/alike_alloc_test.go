package gateway

import (
	"context"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// numbered returns an API that answers all alike, of a form and a name, which goes on
// to another one unless its name is "".
func numbered(form uint64, id, name, to string) *pipeline.API {
	def := &definition.API{ID: id, OrgID: "o", Name: name, Proxy: definition.Proxy{ListenPath: "/" + id + "/", TargetURL: "http://127.0.0.1:9"}}
	api := &pipeline.API{Definition: def, Form: form}
	if to != "" {
		ref := pipeline.Ref{Name: to, Key: "o\n" + to}
		api.Onward = &ref
	}
	return api
}

func snapshotOf(t *testing.T, apis ...*pipeline.API) *Snapshot {
	t.Helper()
	of := make(map[*definition.API]*pipeline.API)
	b := &definition.Bundle{Revision: "1"}
	for _, api := range apis {
		of[api.Definition] = api
		b.APIs = append(b.APIs, api.Definition)
	}
	bl := builder{compile: func(def *definition.API) (*pipeline.API, error) { return of[def], nil }}
	s, _, err := bl.build(context.Background(), b)
	if err != nil || len(s.Failed) > 0 {
		t.Fatal(err, s.Failed)
	}
	return s
}

func TestFormsOfAPIsBehindOneAnotherCostNoAllocation(t *testing.T) {
	front := numbered(0, "front", "", "second")
	s := snapshotOf(t, front, numbered(2, "a", "second", "b"), numbered(3, "b", "", ""))
	var others pipeline.Others = &serving{snapshot: s}
	ex, room := &pipeline.Exchange{API: front}, make([]byte, 0, 64)
	got, alike := others.AppendForms(room, ex, front.Onward)
	if !alike || string(got) != "\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00" {
		t.Fatalf("%q, %v", got, alike)
	}
	if n := testing.AllocsPerRun(100, func() { others.AppendForms(room, ex, front.Onward) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A call that would be handed over too often is refused, and so nothing of it is kept.
func TestFormsEndWhereHandoversDo(t *testing.T) {
	apis := []*pipeline.API{numbered(1, "a0", "", "a1"), numbered(2, "a1", "", "a2"), numbered(3, "a2", "", "a3"), numbered(4, "a3", "", "a4"), numbered(5, "a4", "", "a5"), numbered(6, "a5", "", ""), numbered(7, "ring", "", "ring")}
	s := snapshotOf(t, apis...)
	for at, want := range map[int]bool{0: true, 1: true, 6: false} {
		if _, alike := s.appendForms(nil, &pipeline.Exchange{API: apis[at]}, apis[at].Onward); alike != want {
			t.Errorf("%s: %v", apis[at].Definition.ID, alike)
		}
	}
	later := &pipeline.Exchange{API: apis[0], Front: &pipeline.Exchange{}}
	if _, alike := s.appendForms(nil, later, apis[0].Onward); alike {
		t.Error("one handover more is foreseen than would be made")
	}
}
