package gateway

import (
	"io"
	"log"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/wire"
)

// refuses is a stage that refuses every request.
type refuses struct{ with *pipeline.Rejection }

// Handle implements pipeline.Stage.
func (r refuses) Handle(ex *pipeline.Exchange) pipeline.Verdict { return ex.Reject(r.with) }

// Every stage of the table that decides on rights closes a tunnel when it refuses the
// request that began it, and no other stage does: they count or change the request.
func TestTunnelsAreCheckedAgainByEveryStageThatDecidesOnRights(t *testing.T) {
	refused := pipeline.NewRejection(pipeline.ReasonAccessDenied, 403, "not allowed any more")
	decides := map[string]bool{}
	for _, kind := range snapshot.StageKinds() {
		stages := []pipeline.CompiledStage{{Stage: refuses{refused}, Kind: kind}}
		verdict := pipeline.RunOnly(stages, &pipeline.Exchange{}, pipeline.OfRights)
		if (verdict == pipeline.Rejected) != kind.Rights {
			t.Errorf("%s: verdict %d, decides on rights %t", kind.Name, verdict, kind.Rights)
		}
		if kind.Rights {
			decides[kind.Name] = true
		}
	}
	for _, name := range []string{"version", "ip", "certificate", "auth", "access"} {
		if !decides[name] {
			t.Errorf("no stage %q of the table decides on rights", name)
		}
		delete(decides, name)
	}
	for name := range decides {
		t.Errorf("stage %q decides on rights: add it here once a test shows that it closes tunnels and counts nothing", name)
	}
}

// A panic while a tunnel is checked ends that tunnel: its rights are not known.
func TestAFaultOfACheckEndsItsTunnel(t *testing.T) {
	g := &Gateway{server: wire.New(wire.Config{}, nil, log.New(io.Discard, "", 0))}
	r := &recheck{gateway: g} // without a call: its use panics
	if err := r.Check(); err != errFault {
		t.Errorf("got %v", err)
	}
	if n := g.server.Stats().Panics; n != 1 {
		t.Errorf("%d faults are counted", n)
	}
}
