package bench

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/process"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// mapped is a message of 1 KiB with five fields, and the script that maps it.
var (
	mapped       = []byte(`{"id":12345678901234567890,"kind":"order.created","price":1.10,"paid":true,"text":"` + strings.Repeat("x", 937) + `"}`)
	mappedScript = "root.number = this.id\nroot.type = this.kind\nroot.amount = this.price\nroot.settled = this.paid\nroot.note = this.text"
)

// mappingStep returns the mapping of a message by a stream's processor: bytes to bytes.
func mappingStep(tb testing.TB) func() []byte {
	tb.Helper()
	site := &stream.Site{API: "a", Stream: "s", MaxMessageBytes: 1 << 20, MaxInFlight: 256, State: new(stream.State), Log: slog.New(slog.DiscardHandler)}
	chain, err := process.Compile([]streams.Processor{{Label: "map", OnError: streams.Reject, Mapping: &mappedScript}}, site)
	if err != nil {
		tb.Fatal(err)
	}
	var out []byte
	chain.Start(process.Destination{Take: func(m *stream.Message, settle stream.Settle) {
		out = m.Body
		settle(nil)
	}})
	at := time.Now()
	settle := func(err error) {
		if err != nil {
			tb.Error(err)
		}
	}
	return func() []byte {
		chain.Take(&stream.Message{ID: "m", Body: mapped, At: at, Attempt: 1}, settle)
		return out
	}
}

// libraryStep returns the same by the library of the language alone.
func libraryStep(tb testing.TB) func() []byte {
	tb.Helper()
	script, err := bloblang.Parse(mappedScript)
	if err != nil {
		tb.Fatal(err)
	}
	return func() []byte {
		out, err := service.NewMessage(mapped).BloblangQuery(script)
		if err != nil {
			tb.Fatal(err)
		}
		body, err := out.AsBytes()
		if err != nil {
			tb.Fatal(err)
		}
		return body
	}
}

func TestAMappingAllocatesAsItsLibraryDoes(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	ours, bare := mappingStep(t), libraryStep(t)
	if a, b := string(ours()), string(bare()); a != b {
		t.Fatalf("%s, want %s", a, b)
	}
	own, library := testing.AllocsPerRun(200, func() { ours() }), testing.AllocsPerRun(200, func() { bare() })
	t.Logf("%.0f allocations, the library %.0f", own, library)
	if own > 1.2*library {
		t.Errorf("%.0f allocations for a message, the library alone has %.0f", own, library)
	}
}

// BenchmarkMapping maps a message of 1 KiB with five fields, decoding and encoding it.
func BenchmarkMapping(b *testing.B) {
	for _, c := range []struct {
		name string
		step func(testing.TB) func() []byte
	}{{"stream", mappingStep}, {"library", libraryStep}} {
		b.Run(c.name, func(b *testing.B) {
			step := c.step(b)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
