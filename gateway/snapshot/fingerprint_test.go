package snapshot

import (
	"context"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// numbered returns an API with a fingerprint, which calls another one unless its name
// is "".
func numbered(fingerprint uint64, id, name, to string) *pipeline.API {
	def := &definition.API{ID: id, OrgID: "o", Name: name, Proxy: definition.Proxy{ListenPath: "/" + id + "/", TargetURL: "http://127.0.0.1:9"}}
	api := &pipeline.API{Definition: def, Fingerprint: fingerprint}
	if to != "" {
		ref := pipeline.APIRef{Name: to, Key: "o\n" + to}
		api.Next = &ref
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

func TestFingerprintsOfChainedAPIsCostNoAllocation(t *testing.T) {
	front := numbered(0, "front", "", "second")
	s := snapshotOf(t, front, numbered(2, "a", "second", "b"), numbered(3, "b", "", ""))
	ex, buf := &pipeline.Exchange{API: front}, make([]byte, 0, 64)
	got, ok := s.AppendFingerprints(buf, ex, front.Next)
	if !ok || string(got) != "\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00" {
		t.Fatalf("%q, %v", got, ok)
	}
	if n := testing.AllocsPerRun(100, func() { s.AppendFingerprints(buf, ex, front.Next) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A chain that is too long is refused, and so nothing of it is cached.
func TestFingerprintsEndWhereInternalCallsDo(t *testing.T) {
	apis := []*pipeline.API{numbered(1, "a0", "", "a1"), numbered(2, "a1", "", "a2"), numbered(3, "a2", "", "a3"), numbered(4, "a3", "", "a4"), numbered(5, "a4", "", "a5"), numbered(6, "a5", "", ""), numbered(7, "ring", "", "ring")}
	s := snapshotOf(t, apis...)
	for at, want := range map[int]bool{0: true, 1: true, 6: false} {
		if _, ok := s.AppendFingerprints(nil, &pipeline.Exchange{API: apis[at]}, apis[at].Next); ok != want {
			t.Errorf("%s: %v", apis[at].Definition.ID, ok)
		}
	}
	later := &pipeline.Exchange{API: apis[0], Parent: &pipeline.Exchange{}}
	if _, ok := s.AppendFingerprints(nil, later, apis[0].Next); ok {
		t.Error("a chain of one internal call too many has a fingerprint")
	}
}
