package endpoint

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// A fakeLog is a log in memory. The ids of its positions are offsets with dots between, and a
// letter that stands for the log.
type fakeLog struct {
	mu      sync.Mutex
	letter  uint32
	first   []int64
	all     [][]string // by partition
	changed chan struct{}
	reads   int // that are under way
	most    int
}

func newFakeLog(partitions int) *fakeLog {
	return &fakeLog{letter: 'a', first: make([]int64, partitions), all: make([][]string, partitions), changed: make(chan struct{})}
}

func (l *fakeLog) ID(p *stream.Position) string {
	var id strings.Builder
	id.WriteString(string(rune(p.Mark)))
	for _, next := range p.Next {
		id.WriteString("." + strconv.FormatInt(next, 10))
	}
	return id.String()
}

func (l *fakeLog) Position(id string) (*stream.Position, bool) {
	parts := strings.Split(id, ".")
	if len(parts[0]) != 1 || len(parts) < 2 {
		return nil, false
	}
	p := &stream.Position{Mark: uint32(parts[0][0])}
	for _, part := range parts[1:] {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, false
		}
		p.Next = append(p.Next, n)
	}
	return p, true
}

// publish adds messages to the partitions in turn.
func (l *fakeLog) publish(bodies ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, body := range bodies {
		p := i % len(l.all)
		l.all[p] = append(l.all[p], body)
	}
	l.tell()
}

func (l *fakeLog) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// evict forgets messages.
func (l *fakeLog) evict(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.all {
		l.all[p] = l.all[p][n:]
		l.first[p] += int64(n)
	}
}

// renew makes another log of it.
func (l *fakeLog) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.letter++
	l.all, l.first = make([][]string, len(l.all)), make([]int64, len(l.first))
	l.tell()
}

func (l *fakeLog) end() *stream.Position {
	p := &stream.Position{Mark: l.letter}
	for i, all := range l.all {
		p.Next = append(p.Next, l.first[i]+int64(len(all)))
	}
	return p
}

// Read implements stream.Log. It reads the partitions in turn, each as far as it goes.
func (l *fakeLog) Read(ctx context.Context, from *stream.Position, to stream.Reader) error {
	l.mu.Lock()
	l.reads++
	l.most = max(l.most, l.reads)
	at := from
	if at == nil {
		at = l.end()
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reads--
	}()
	at, begun := clone(at), false
	for ctx.Err() == nil {
		l.mu.Lock()
		gap := at.Mark != l.letter
		for i, first := range l.first {
			gap = gap || at.Next[i] < first || at.Next[i] > first+int64(len(l.all[i]))
		}
		if gap {
			at = &stream.Position{Next: slices.Clone(l.first), Mark: l.letter}
		}
		var e *stream.Entry
		for p := range l.all {
			if i := int(at.Next[p] - l.first[p]); i < len(l.all[p]) {
				e = &stream.Entry{Message: message(l.all[p][i]), Partition: p, Offset: at.Next[p], Mark: l.letter}
				break
			}
		}
		changed := l.changed
		l.mu.Unlock()
		if gap || !begun {
			begun = true
			if err := to.Begin(at, gap); err != nil {
				return err
			}
		}
		if e == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		at.Pass(e)
		if err := to.Take(e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// same passes messages on as they are.
func same(_ context.Context, m *stream.Message) ([]*stream.Message, error) {
	return []*stream.Message{m}, nil
}

// replayOf returns an output that follows a log.
func replayOf(t testing.TB, log stream.Log, process stream.Process, change ...func(*streams.HTTPServerOutput)) *Replay {
	t.Helper()
	c := &streams.HTTPServerOutput{
		StreamPath: "/feed", AllowedVerbs: []string{"GET"}, Timeout: 30 * time.Second, Heartbeat: 15 * time.Second,
		WriteTimeout: 10 * time.Second, MaxClients: 10_000, Resume: true,
	}
	for _, f := range change {
		f(c)
	}
	r, err := NewReplay(c, site("out"), &Memory{Limit: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.timing = replayTiming{turn: time.Second, quiet: 20 * time.Millisecond, pause: 20 * time.Millisecond, calm: time.Second}
	if log != nil {
		r.Follow(log, process)
		<-r.ring.attached
	}
	t.Cleanup(func() { r.Close(t.Context()) })
	return r
}

// events reads events until the body last, and returns their bodies and the id behind them.
// Gaps are "gap" among them.
func (l *listener) events(last string) (bodies []string, id string, err error) {
	for {
		text, err := l.event()
		if err != nil {
			return bodies, id, err
		}
		gap, body, has := false, "", false
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "id":
				id = value
			case "event":
				gap = value == "gap"
			case "data":
				body, has = value, true
			}
		}
		switch {
		case gap:
			bodies = append(bodies, "gap")
		case has:
			bodies = append(bodies, body)
			if body == last {
				return bodies, id, nil
			}
		}
	}
}

// until reads events up to one, and checks them.
func (l *listener) until(from, to int, before ...string) (id string) {
	l.t.Helper()
	want := append(before, numbers(from, to)...)
	got, id, err := l.events(strconv.Itoa(to))
	if err != nil || !slices.Equal(got, want) {
		l.t.Fatalf("%v: got %d events %.200q, want %d", err, len(got), got, len(want))
	}
	return id
}

func numbers(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// watch opens a connection that goes on behind an id.
func (r *rig) watch(id string) *listener {
	r.t.Helper()
	if id == "" {
		return r.listen("/feed", "text/event-stream")
	}
	return r.listen("/feed", "text/event-stream\r\nLast-Event-ID: "+id)
}

func TestEveryClientGetsAllEvents(t *testing.T) {
	log := newFakeLog(1)
	log.publish(numbers(1, 5)...)
	o := replayOf(t, log, same)
	r := newRig(t, o)
	a, b := r.watch(""), r.watch("")
	if got := a.head.Header.Get("Content-Type"); a.head.StatusCode != 200 || got != "text/event-stream" {
		t.Errorf("%d, %q", a.head.StatusCode, got)
	}
	log.publish(numbers(6, 20)...)
	id := a.until(6, 20)
	b.until(6, 20)
	a.conn.Close()
	b.conn.Close()
	wait.Until(t, "the clients have left", func() bool { return o.site.State.Clients.Load() == 0 })
	log.publish(numbers(21, 40)...)
	r.watch(id).until(21, 40)
	if p, _ := o.site.State.Phase(); p != stream.Running || o.site.State.Messages.Load() != 50 {
		t.Errorf("phase %s, %d messages", p, o.site.State.Messages.Load())
	}
}

// A client that was cut off before its first event has the id of where it began.
func TestAClientHasAnIDBeforeItsFirstEvent(t *testing.T) {
	log := newFakeLog(1)
	r := newRig(t, replayOf(t, log, same))
	first := r.watch("")
	first.wantEvent("retry: 2000\n")
	first.wantEvent("id: a.0\n")
	first.conn.Close()
	log.publish(numbers(1, 3)...)
	r.watch("a.0").until(1, 3)
}

func TestOldPositionsAreReadFromTheLog(t *testing.T) {
	log := newFakeLog(1)
	log.publish(numbers(1, 5000)...)
	o := replayOf(t, log, same)
	r := newRig(t, o)
	old := r.watch("a.10")
	old.until(11, 5000)
	log.publish(numbers(5001, 5010)...)
	old.until(5001, 5010) // from the ring, or still from the log
	wait.Until(t, "only the ring is read", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return log.reads == 1
	})
	log.publish(numbers(5011, 8000)...) // more than the ring keeps
	old.until(5011, 8000)
}

func TestWhatIsGoneIsAGap(t *testing.T) {
	log := newFakeLog(1)
	log.publish(numbers(1, 100)...)
	o := replayOf(t, log, same)
	r := newRig(t, o)
	live := r.watch("")
	live.wantEvent("retry: 2000\n")
	log.evict(50)
	for _, id := range []string{"a.49", "a.101", "z.60"} {
		l := r.watch(id)
		l.wantEvent("retry: 2000\n")
		l.wantEvent("id: " + id + "\n")
		l.wantEvent("id: a.50\nevent: gap\ndata: a.50\n")
		l.until(51, 100)
	}
	r.watch("a.50").until(51, 100)

	log.renew()
	log.publish(numbers(1, 3)...)
	live.until(1, 3, "gap")
	r.watch("a.100").until(1, 3, "gap")
	r.watch("b.1").until(2, 3)
}

func TestRefusedIDs(t *testing.T) {
	log := newFakeLog(1)
	o := replayOf(t, log, same)
	r := newRig(t, o)
	for _, id := range []string{"x", strings.Repeat("9", 257)} {
		if l := r.watch(id); l.head.StatusCode != 400 {
			t.Errorf("%.10q: %d", id, l.head.StatusCode)
		}
	}
	if resp, _ := r.do("HEAD", "/feed", ""); resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", resp.StatusCode, resp.Header)
	}
	if n := o.site.State.Clients.Load(); n != 0 {
		t.Errorf("%d clients", n)
	}
	alone := replayOf(t, nil, same, func(c *streams.HTTPServerOutput) { c.Timeout = time.Millisecond })
	r.serve(alone)
	if resp, _ := r.do("GET", "/feed", ""); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("without a source: %d", resp.StatusCode)
	}
	full := replayOf(t, log, same, func(c *streams.HTTPServerOutput) { c.MaxClients = 1 })
	r.serve(full)
	r.watch("")
	if resp, _ := r.do("GET", "/feed", ""); resp.StatusCode != 503 {
		t.Errorf("with too many clients: %d", resp.StatusCode)
	}
}

// Filtered messages move the position all the same, and heartbeats tell it. Of a message that
// becomes several, only the last event has the id.
func TestWhatProcessorsMakeOfMessages(t *testing.T) {
	log := newFakeLog(1)
	o := replayOf(t, log, func(_ context.Context, m *stream.Message) ([]*stream.Message, error) {
		switch n, _ := strconv.Atoi(string(m.Body)); {
		case n%10 == 0:
			return []*stream.Message{message("x"), message("y"), m}, nil
		case n%2 == 0:
			return nil, nil
		}
		return []*stream.Message{m}, nil
	}, func(c *streams.HTTPServerOutput) { c.Heartbeat, c.Event = 50*time.Millisecond, "n" })
	r := newRig(t, o)
	l := r.watch("")
	l.wantEvent("retry: 2000\n")
	l.wantEvent("id: a.0\n")
	log.publish("9", "10")
	l.wantEvent("id: a.1\nevent: n\ndata: 9\n")
	l.wantEvent("event: n\ndata: x\n")
	l.wantEvent("event: n\ndata: y\n")
	l.wantEvent("id: a.2\nevent: n\ndata: 10\n")
	log.publish("12")
	l.wantEvent("id: a.3\n") // a heartbeat
	log.publish("14", "13", "20")
	got, id, err := r.watch("a.2").events("20")
	if want := []string{"13", "x", "y", "20"}; err != nil || !slices.Equal(got, want) || id != "a.6" {
		t.Errorf("%q, %q, %v", got, id, err)
	}
}

func TestASlowClientKeepsNobodyWaiting(t *testing.T) {
	log := newFakeLog(1)
	o := replayOf(t, log, same, func(c *streams.HTTPServerOutput) { c.WriteTimeout = 5 * time.Second })
	r := newRig(t, o)
	r.watch("") // reads nothing
	fast := r.watch("")
	const messages = 200
	body := strings.Repeat("x", 100_000)
	done := make(chan int)
	go func() {
		n := 0
		for n < messages {
			if _, _, err := fast.events(body); err != nil {
				break
			}
			n++
		}
		done <- n
	}()
	for range messages {
		log.publish(body)
	}
	if n := <-done; n != messages {
		t.Errorf("the client that reads got %d messages", n)
	}
	wait.Until(t, "the client that does not is cut off", func() bool { return o.site.State.Dropped.Load() == 1 })
	wait.Until(t, "it has left", func() bool { return o.site.State.Clients.Load() == 1 })
	if kept := o.ring.bytes; kept > maxKeptBytes {
		t.Errorf("%d bytes are kept", kept)
	}
}

func TestRingsShareMemory(t *testing.T) {
	memory := &Memory{Limit: 10_000}
	a, b := newRing(memory), newRing(memory)
	at := &stream.Position{Next: []int64{0}}
	log := newFakeLog(1)
	for _, r := range []*ring{a, b} {
		r.begin(at, "a.0", false)
	}
	add := func(r *ring, n int) {
		for i := range n {
			r.add(&stream.Entry{Offset: int64(i), Mark: 'a'}, []event{{body: make([]byte, 1000)}}, log.ID)
		}
	}
	add(a, 5)
	add(b, 100)
	if used := memory.used.Load(); used > memory.Limit || len(a.entries) != 5 || len(b.entries) == 0 {
		t.Errorf("%d bytes, %d and %d messages", used, len(a.entries), len(b.entries))
	}
	if b.first+uint64(len(b.entries)) != 100 || b.start[0] != int64(b.first) {
		t.Errorf("first %d, start %v", b.first, b.start)
	}
	a.release()
	b.release()
	if used := memory.used.Load(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}

func TestAClosedReplayHasClientsConnectAgain(t *testing.T) {
	log := newFakeLog(1)
	o := replayOf(t, log, same)
	r := newRig(t, o)
	l := r.watch("")
	log.publish("1")
	l.until(1, 1)
	catching := r.watch("a.0")
	catching.until(1, 1)
	o.Close(t.Context())
	for _, one := range []*listener{l, catching} {
		if got, err := one.event(); err != nil || !strings.HasPrefix(got, "retry: ") {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := one.event(); err != io.EOF {
			t.Errorf("behind it: %v", err)
		}
	}
	if resp, _ := r.do("GET", "/feed", ""); resp.StatusCode != 503 {
		t.Errorf("after the end: %d", resp.StatusCode)
	}
}

func TestACutEndsTheConnection(t *testing.T) {
	o := replayOf(t, newFakeLog(1), same)
	r := newRig(t, o)
	l := r.watch("")
	r.mu.Lock()
	cut := r.cuts[0]
	r.mu.Unlock()
	cut(nil)
	if _, _, err := l.events(""); err == nil {
		t.Error("no end")
	}
	wait.Until(t, "the client has left", func() bool { return o.site.State.Clients.Load() == 0 })
}

// TestClientsTakeTurns has more clients than may read the log at a time, and no ring that
// they could meet.
func TestClientsTakeTurns(t *testing.T) {
	log := newFakeLog(1)
	log.publish(numbers(1, 30)...)
	o := replayOf(t, log, same)
	r := newRig(t, o)
	var all []*listener
	for range 3 * maxCatchUps {
		all = append(all, r.watch("a.5"))
	}
	for _, l := range all {
		l.until(6, 30)
	}
	log.publish(numbers(31, 31)...)
	for _, l := range all {
		l.until(31, 31)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.most > maxCatchUps+1 {
		t.Errorf("%d readings at a time", log.most)
	}
}

// TestDisconnects has clients that are cut off at random, with partitions that are read in
// another order by each.
func TestDisconnects(t *testing.T) {
	const clients, messages = 100, 1500
	log := newFakeLog(3)
	o := replayOf(t, log, same)
	r := newRig(t, o)
	var all sync.WaitGroup
	var cuts atomic.Int64
	ready := make(chan struct{}, clients)
	for range clients {
		all.Go(func() {
			cuts.Add(int64(r.stroll(messages, func() { ready <- struct{}{} })))
		})
	}
	for range clients {
		<-ready
	}
	for i := 1; i <= messages; i += 50 {
		log.publish(numbers(i, i+49)...)
		time.Sleep(time.Millisecond) // clients connect meanwhile
	}
	all.Wait()
	if cuts.Load() < clients {
		t.Errorf("only %d connections were cut", cuts.Load())
	}
}

// stroll gets messages 1 to n over connections that end at random. It returns how many did.
func (r *rig) stroll(n int, ready func()) (cuts int) {
	seen, id := make(map[string]int), ""
	l := r.watch("")
	for len(seen) < n {
		after := 1 + rand.IntN(n/4)
		for range after {
			text, err := l.event()
			if err != nil {
				r.t.Errorf("after %d messages: %v", len(seen), err)
				return cuts
			}
			for line := range strings.Lines(text) {
				switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
				case "id":
					if id == "" {
						ready()
					}
					id = value
				case "data":
					if seen[value]++; seen[value] > 1 {
						r.t.Errorf("message %s came %d times", value, seen[value])
					}
				case "event":
					r.t.Errorf("event %q", value)
				}
			}
			if len(seen) == n {
				break
			}
		}
		l.conn.Close()
		cuts++
		l = r.watch(id)
	}
	l.conn.Close()
	for i := range n {
		if seen[fmt.Sprint(i+1)] == 0 {
			r.t.Errorf("message %d is missing", i+1)
		}
	}
	return cuts
}
