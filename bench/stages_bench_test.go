package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/access"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/limit"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

// governor is what a request with a key goes through that one without does not,
// and what both leave behind in metrics and log.
type governor struct {
	open, keyed []pipeline.CompiledStage
	headers     pipeline.Stage
	meter       pipeline.Meter
	policies    *definition.PolicySet
	api         *pipeline.API
}

func newGovernor(b *testing.B, w *world, calls *usage.Calls) *governor {
	log := slog.New(slog.DiscardHandler)
	lines, err := observe.OpenAccessLog(observe.AccessOptions{Target: "file", File: filepath.Join(b.TempDir(), "log"), SampleOK: 1}, log)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { lines.Run(ctx); close(ended) }()
	b.Cleanup(func() { stop(); <-ended })
	def := w.Current().API("plain")
	known, err := auth.New(w.Sessions, 3).Compile(def)
	if err != nil {
		b.Fatal(err)
	}
	limits, err := limit.New(limit.Options{Counter: counter.NewMemory(nil), Log: log}).Compile(def, nil)
	if err != nil {
		b.Fatal(err)
	}
	return &governor{
		keyed:    []pipeline.CompiledStage{{Stage: known}, {Stage: access.New(access.Options{Log: log}).Compile(def)}, {Stage: limits}},
		headers:  limit.NewHeaders(limit.Names{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset"}, false).Answer(),
		meter:    observe.New(observe.Options{Access: lines, Calls: calls, Log: log}).NewMeter("plain"),
		policies: w.Current().Policies(), api: &pipeline.API{Definition: def},
	}
}

// run does all that the gateway does to a call but reading, forwarding and
// answering it.
func (g *governor) run(b *testing.B, call *wire.Call, stages []pipeline.CompiledStage) {
	ex := pipeline.For(call)
	ex.API, ex.Policies, ex.Revision, ex.Client = g.api, g.policies, "42", call.Peer
	if pipeline.Run(stages, ex) != pipeline.Next {
		b.Fatalf("refused: %+v", ex.Rejection)
	}
	ex.Answer.Status = 200
	ex.Answer.Lines = append(ex.Answer.Lines[:0], "Server: origin\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Type: application/octet-stream\r\n"...)
	ex.Upstream = pipeline.Upstream{Address: "127.0.0.1:9000", Status: 200, Duration: 300 * time.Microsecond}
	if len(stages) > 0 {
		g.headers.Handle(ex)
	}
	g.meter.Done(ex)
	ex.Release()
}

// BenchmarkGoverned measures what governing adds, with the processor's caches as
// the last round left them, and as they are after a megabyte of something else,
// about what system calls of sixty other connections leave. It reports the
// median of single rounds, the reading of the clock included.
func BenchmarkGoverned(b *testing.B) {
	w := newWorld(b, settings{cache: 20_000})
	shop(w)
	g := newGovernor(b, w, usage.NewCalls())
	other := make([]byte, 1<<20)
	for _, c := range []struct {
		name   string
		keys   int
		stages []pipeline.CompiledStage
	}{{"keyless", 1, g.open}, {"one key", 1, g.keyed}, {"1000 keys", 1000, g.keyed}} {
		all := keyed(w, c.keys, "both") // alike but for the key
		read := slices.Clone(all.at(0))
		call, fault := wire.NewCall(read, wireConfig())
		if fault != nil {
			b.Fatal(fault)
		}
		for i := range all.len() {
			copy(read, all.at(i))
			g.run(b, call, c.stages)
		}
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/cold=%v", c.name, cold), func(b *testing.B) {
				took := make([]time.Duration, 0, 1<<16)
				n := 0
				for b.Loop() {
					n = (n + stride) % all.len()
					if cold {
						for i := 0; i < len(other); i += 64 {
							other[i]++
						}
					}
					copy(read, all.at(n))
					began := time.Now()
					g.run(b, call, c.stages)
					if len(took) < cap(took) {
						took = append(took, time.Since(began))
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2]), "median-ns")
				b.ReportMetric(float64(took[len(took)/10]), "p10-ns")
			})
		}
	}
}
