package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

func traced(t testing.TB, lines ...string) *wire.Call {
	t.Helper()
	call, fault := wire.NewCall([]byte("GET / HTTP/1.1\r\nHost: a\r\n"+strings.Join(append(lines, ""), "\r\n")+"\r\n"), wire.Config{
		MaxHeader: 16 << 10, MaxURL: 1 << 10, MaxHeaders: 100, MaxBody: 1 << 20, ReadTimeout: time.Second,
	})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	return call
}

func TestTracesAreThoseOfCallers(t *testing.T) {
	for _, c := range []struct {
		lines            []string
		id               string
		flags            uint8
		replace, without bool
	}{
		{lines: nil},
		{lines: []string{"Traceparent: 00-" + traceID + "-" + spanID + "-01"}, id: traceID, flags: 1, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-00", "tracestate: a=1,b@c=2 3 ,"}, id: traceID},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-03", "TraceState: a=1", "tracestate: b=2"}, id: traceID, flags: 3},
		{lines: []string{"traceparent: cc-" + traceID + "-" + spanID + "-01-more"}, id: traceID, flags: 1, without: true},
		{lines: []string{"traceparent: cc-" + traceID + "-" + spanID + "-01"}, id: traceID, flags: 1, without: true},
		{lines: []string{"traceparent: cc-" + traceID + "-" + spanID + "-01.more"}, replace: true, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-01-more"}, replace: true, without: true},
		{lines: []string{"traceparent: ff-" + traceID + "-" + spanID + "-01"}, replace: true, without: true},
		{lines: []string{"traceparent: 00-" + strings.ToUpper(traceID) + "-" + spanID + "-01"}, replace: true, without: true},
		{lines: []string{"traceparent: 00-" + strings.Repeat("0", 32) + "-" + spanID + "-01"}, replace: true, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + strings.Repeat("0", 16) + "-01"}, replace: true, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-0x"}, replace: true, without: true},
		{lines: []string{"traceparent: 00x" + traceID + "-" + spanID + "-01"}, replace: true, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID}, replace: true, without: true},
		{lines: []string{"traceparent:", "tracestate: a=1"}, replace: true, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-01", "traceparent: 00-" + traceID + "-" + spanID + "-01"}, replace: true, without: true},
		{lines: []string{"tracestate: a=1"}, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-01", "tracestate: A=1"}, id: traceID, flags: 1, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-01", "tracestate: a"}, id: traceID, flags: 1, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-01", "tracestate: a=1=2"}, id: traceID, flags: 1, without: true},
		{lines: []string{"traceparent: 00-" + traceID + "-" + spanID + "-01", "tracestate: " + strings.Repeat("a=1,", 33)}, id: traceID, flags: 1, without: true},
	} {
		var got Trace
		got.Read(traced(t, c.lines...))
		if id := strings.Trim(string(got.ID[:]), "\x00"); id != c.id || got.Known() != (c.id != "") || got.Flags != c.flags || got.Own != c.replace || got.Stateless != c.without {
			t.Errorf("%q: %s, flags %d, own %v, stateless %v", c.lines, id, got.Flags, got.Own, got.Stateless)
		}
	}
}

func TestAParentIsWrittenAsItWasRead(t *testing.T) {
	var tr Trace
	tr.Read(traced(t, "traceparent: cc-"+traceID+"-"+spanID+"-ff-x"))
	copy(tr.Span[:], "00f067aa0ba902b7")
	if got, want := string(tr.AppendParent(nil)), "00-"+traceID+"-00f067aa0ba902b7-03"; got != want || string(tr.Parent[:]) != spanID {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReadingATraceDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		return // the detector allocates
	}
	call := traced(t, "traceparent: 00-"+traceID+"-"+spanID+"-01", "tracestate: a=1,b=2")
	var tr Trace
	buf := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() { tr = Trace{}; tr.Read(call); buf = tr.AppendParent(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReadTrace(b *testing.B) {
	for name, call := range map[string]*wire.Call{
		"none": traced(b), "traced": traced(b, "traceparent: 00-"+traceID+"-"+spanID+"-01", "tracestate: a=1,b=2"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var tr Trace
				tr.Read(call)
			}
		})
	}
}

// FuzzTraces holds what is passed on against what the caller sent, and what takes
// its place against what a parent must be.
func FuzzTraces(f *testing.F) {
	f.Add("00-"+traceID+"-"+spanID+"-01", "a=1,b@c=2")
	f.Add("cc-"+traceID+"-"+spanID+"-01-x", "a=")
	f.Fuzz(func(t *testing.T, parent, state string) {
		if strings.ContainsAny(parent+state, "\r\n\x00") {
			return
		}
		call, fault := wire.NewCall([]byte("GET / HTTP/1.1\r\nHost: a\r\ntraceparent:"+parent+"\r\ntracestate:"+state+"\r\n\r\n"), wire.Config{
			MaxHeader: 16 << 10, MaxURL: 1 << 10, MaxHeaders: 100, MaxBody: 1 << 20, ReadTimeout: time.Second,
		})
		if fault != nil {
			return
		}
		var tr Trace
		tr.Read(call)
		if tr.Known() == tr.Own || tr.Own && !tr.Stateless {
			t.Fatalf("%q, %q: %+v", parent, state, tr)
		}
		if !tr.Known() {
			return
		}
		copy(tr.Span[:], spanID)
		var again Trace
		again.Read(traced(t, "traceparent: "+string(tr.AppendParent(nil))))
		if again.ID != tr.ID || again.Flags != tr.Flags&known {
			t.Fatalf("%q: %+v, then %+v", parent, tr, again)
		}
	})
}
