package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// always is a tracer of all traces, or of none.
type always bool

// Begins implements Tracer.
func (a always) Begins(*[32]byte) bool { return bool(a) }

// Done implements Tracer.
func (always) Done(*pipeline.Exchange) {}

const (
	someTrace  = "0af7651916cd43dd8448eb211c80319c"
	someParent = "00-" + someTrace + "-b7ad6b7169203331-0"
)

func exchangeOf(t testing.TB, lines string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte("GET / HTTP/1.1\r\nHost: a\r\n"+lines+"\r\n"), wire.Config{
		MaxHeader: 16 << 10, MaxURL: 1 << 10, MaxHeaders: 100, MaxBody: 1 << 20, ReadTimeout: time.Second,
	})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	t.Cleanup(ex.Release)
	setID(&ex.ID)
	return ex
}

func TestRequestsJoinTraces(t *testing.T) {
	const none, callers, own = "", "the caller's", "its own"
	for _, c := range []struct {
		name, parent    string
		tracer          Tracer
		dry             bool
		trace           string
		sends, recorded bool
		flags           string
	}{
		{name: "none", trace: none},
		{name: "the caller's", parent: someParent + "1", trace: callers},
		{name: "no trace", parent: "x", trace: own, sends: true, flags: "00"},
		{name: "one begins", tracer: always(true), trace: own, sends: true, recorded: true, flags: "01"},
		{name: "one begins that nobody records", tracer: always(false), trace: own, sends: true, flags: "00"},
		{name: "the caller records", parent: someParent + "1", tracer: always(false), trace: callers, sends: true, recorded: true, flags: "01"},
		{name: "the caller does not record", parent: someParent + "0", tracer: always(true), trace: callers},
		{name: "no trace, and one begins", parent: "x", tracer: always(true), trace: own, sends: true, recorded: true, flags: "01"},
		{name: "an explanation", parent: someParent + "1", tracer: always(true), dry: true, trace: callers, sends: true, flags: "01"},
	} {
		lines := ""
		if c.parent != "" {
			lines = "Traceparent: " + c.parent + "\r\n"
		}
		ex := exchangeOf(t, lines)
		if c.dry {
			ex.DryRun = &pipeline.DryRun{}
		}
		(&Gateway{tracer: c.tracer}).join(ex)
		tr := &ex.Trace
		want := map[string]string{none: strings.Repeat("\x00", 32), callers: someTrace, own: string(ex.ID[:])}[c.trace]
		if string(tr.ID[:]) != want || tr.Own != c.sends || (tr.Steps != nil) != c.recorded {
			t.Errorf("%s: trace %s, own %v, recorded %v", c.name, tr.ID, tr.Own, tr.Steps != nil)
		}
		if sent := string(tr.AppendParent(nil)); c.sends && (!strings.HasSuffix(sent, "-"+c.flags) || strings.Contains(sent, "\x00") || strings.Contains(sent, "b7ad6b7169203331")) {
			t.Errorf("%s: sends %s", c.name, sent)
		}
	}
}

func TestTracesThatNobodyRecordsCostNoAllocation(t *testing.T) {
	stages := []pipeline.CompiledStage{{Stage: passes{}, Kind: routing}}
	for _, lines := range []string{"", "Traceparent: x\r\n", "Traceparent: " + someParent + "0\r\n"} {
		for _, tracer := range []Tracer{nil, always(false)} {
			g, ex := &Gateway{tracer: tracer}, exchangeOf(t, lines)
			if n := testing.AllocsPerRun(100, func() { ex.Trace = pipeline.Trace{}; g.join(ex); g.pass(ex, stages) }); n != 0 {
				t.Errorf("%q, %v: %v allocations", lines, tracer, n)
			}
		}
	}
}

// passes is a stage that lets everything pass.
type passes struct{}

// Handle implements pipeline.Stage.
func (passes) Handle(*pipeline.Exchange) pipeline.Verdict { return pipeline.Next }

func BenchmarkJoin(b *testing.B) {
	for name, g := range map[string]*Gateway{"off": {}, "not sampled": {tracer: always(false)}} {
		b.Run(name, func(b *testing.B) {
			ex := exchangeOf(b, "")
			b.ReportAllocs()
			for b.Loop() {
				ex.Trace = pipeline.Trace{}
				g.join(ex)
			}
		})
	}
}
