package process

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// bench is a chain with a destination that keeps what it gets.
type bench struct {
	t     *testing.T
	chain *Chain
	log   *lockedBuffer

	mu      sync.Mutex
	got     []*stream.Message
	settles []stream.Settle
	buried  []string
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func site(log *lockedBuffer) *stream.Site {
	return &stream.Site{
		API: "api", Stream: "s", MaxMessageBytes: 1 << 20, MaxInFlight: 256, State: &stream.State{},
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

func newBench(t *testing.T, list ...streams.Processor) *bench {
	t.Helper()
	b := &bench{t: t, log: &lockedBuffer{}}
	return b.compile(site(b.log), list)
}

func (b *bench) compile(at *stream.Site, list []streams.Processor) *bench {
	b.t.Helper()
	for i := range list {
		list[i].Path = fmt.Sprintf("pipeline.processors[%d]", i)
	}
	var err error
	if b.chain, err = Compile(list, at); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(b.chain.Close)
	b.chain.Start(Destination{
		Take: func(m *stream.Message, settle stream.Settle) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.got, b.settles = append(b.got, m), append(b.settles, settle)
		},
		Bury: func(m *stream.Message, reason string, settle stream.Settle) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.buried, b.settles = append(b.buried, reason+": "+string(m.Body)), append(b.settles, settle)
		},
	})
	return b
}

// settled counts the calls of a settle.
type settled struct {
	mu    sync.Mutex
	times int
	err   error
}

func (s *settled) settle(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	s.err = err
}

func (b *bench) take(body string, meta ...stream.Meta) *settled {
	s := &settled{}
	b.chain.Take(&stream.Message{ID: "id", Body: []byte(body), Meta: meta}, s.settle)
	return s
}

// bodies returns what has come to the destination, and settles it.
func (b *bench) bodies(with error) string {
	b.mu.Lock()
	got, settles := b.got, b.settles
	b.got, b.settles = nil, nil
	b.mu.Unlock()
	var all []string
	for _, m := range got {
		all = append(all, string(m.Body))
	}
	for _, settle := range settles {
		settle(with)
	}
	return strings.Join(all, " ")
}

func (s *settled) want(t *testing.T, times int, text string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times != times || (text == "" && s.err != nil) || (text != "" && (s.err == nil || !strings.Contains(s.err.Error(), text))) {
		t.Errorf("settled %d times with %v; want %d times with %q", s.times, s.err, times, text)
	}
}

func mapTo(script string) streams.Processor { return streams.Processor{Mapping: &script} }

func filter(check string) streams.Processor { return streams.Processor{Filter: &check} }

func TestMessagesPassWithoutProcessorsAsTheyAre(t *testing.T) {
	b := newBench(t)
	m := &stream.Message{ID: "1", Body: make([]byte, 2<<20)}
	s := &settled{}
	b.chain.Take(m, s.settle)
	if len(b.got) != 1 || b.got[0] != m {
		t.Fatalf("got %v", b.got)
	}
	s.want(t, 0, "")
	b.bodies(errors.New("down"))
	s.want(t, 1, "down")
}

func TestMappingAndFilter(t *testing.T) {
	b := newBench(t, filter("this.a > 1"), mapTo("root.b = this.a\nmeta Seen = @in"), mapTo("root = this\nroot.c = @Seen"))
	s := b.take(`{"a":2}`, stream.Meta{Name: "in", Value: "x"})
	s.want(t, 0, "")
	if len(b.got) != 1 || b.got[0].Value("seen") != "x" || b.got[0].ID != "id" {
		t.Errorf("got %+v", b.got)
	}
	if got := b.bodies(nil); got != `{"b":2,"c":"x"}` {
		t.Errorf("got %s", got)
	}
	s.want(t, 1, "")
	b.take(`{"a":1}`).want(t, 1, "")
	refused := b.take(`{"a":"x"}`)
	refused.want(t, 1, "pipeline.processors[0]: ")
	if stream.ClassOf(refused.err) != stream.Refused {
		t.Errorf("class %v", stream.ClassOf(refused.err))
	}
	if b.bodies(nil) != "" {
		t.Error("a message that was not to pass has passed")
	}
}
