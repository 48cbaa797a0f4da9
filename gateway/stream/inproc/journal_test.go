package inproc

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

const writerEnv = "SLUICE_INPROC_WRITER_DIR"

// publishUntilKilled publishes with several goroutines, prints what was acknowledged, and
// settles half of it.
func publishUntilKilled(dir string) {
	b := New(Options{Dir: dir})
	b.limits.segmentBytes = 64 << 10
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	n := 0
	flow := newSink(nil)
	flow.auto = func(*stream.Message) (error, bool) { n++; return nil, n%2 == 0 || n%200 > 100 }
	in, err := b.NewInput(&streams.BrokerInput{Topics: []string{"orders"}, ConsumerGroup: "reads", CheckpointLimit: 300}, site("org"))
	if err != nil {
		fail(err)
	}
	in.Start(flow)
	var printed sync.Mutex
	for w := range 8 {
		out, err := b.NewOutput(&streams.BrokerOutput{Topic: "orders", MaxInFlight: 1}, site("org"))
		if err != nil {
			fail(err)
		}
		go func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				settled := make(chan error, 1)
				out.Write(&stream.Message{ID: name, Body: []byte(name + strings.Repeat("x", i%3000))}, func(err error) { settled <- err })
				if err := <-settled; err != nil {
					continue // full
				}
				printed.Lock()
				fmt.Println(name)
				printed.Unlock()
			}
		}()
	}
	select {}
}

// A process is killed while it publishes. Everything that it acknowledged is there for a
// group that settles nothing; the torn end is cut off.
func TestAcknowledgedMessagesSurviveAKill(t *testing.T) {
	dir := t.TempDir()
	keeper := func() (*Broker, *sink, stream.Input) {
		b := New(Options{Dir: dir})
		b.limits.ring, b.limits.ringBytes = 1<<20, 1<<30
		s := newSink(hold)
		in, err := b.NewInput(&streams.BrokerInput{Topics: []string{"orders"}, ConsumerGroup: "keeps", CheckpointLimit: 1 << 20}, func() *stream.Site {
			one := site("org")
			one.MaxInFlight = 1 << 20
			return one
		}())
		if err != nil {
			t.Fatal(err)
		}
		in.Start(s)
		return b, s, in
	}
	first, _, in := keeper()
	in.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	acknowledged := make(map[string]bool)
	for round := range 4 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), writerEnv+"="+dir)
		child.Stderr = os.Stderr
		lines, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(lines)
		for seen := 0; scanner.Scan(); seen++ {
			acknowledged[scanner.Text()] = true
			if seen == 60+37*round {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = child.Wait() // killed
		b, s, in := keeper()
		there := make(map[string]bool)
		checked := 0
		s.wait(t, fmt.Sprintf("round %d: all that was acknowledged", round), func([]string) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, m := range s.taken[checked:] {
				there[m.ID] = true
				if !strings.HasPrefix(string(m.Body), m.ID) || strings.Trim(string(m.Body[len(m.ID):]), "x") != "" {
					t.Fatalf("message %s has the body %.60q", m.ID, m.Body)
				}
			}
			checked = len(s.taken)
			for name := range acknowledged {
				if !there[name] {
					return false
				}
			}
			return true
		})
		t.Logf("round %d: %d acknowledged, %d there", round, len(acknowledged), len(there))
		in.Close()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// segmentFiles returns the segments below a folder.
func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, folderPrefix+"*", segmentGlob))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

func TestATornEndIsCutOff(t *testing.T) {
	dir := t.TempDir()
	b := New(Options{Dir: dir})
	in := input(t, b, "org", "g", newSink(hold), "orders")
	mustSend(t, output(t, b, "org", "orders"), "1", "2", "3")
	in.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentFiles(t, dir)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, intact := readSegment(whole)
	if len(entries) != 3 || intact != len(whole) {
		t.Fatalf("%d messages, %d of %d bytes", len(entries), intact, len(whole))
	}
	record := (len(whole) - len(magic)) / 3
	tails := map[string][]byte{"zeros": append(bytes.Clone(whole), make([]byte, 4096)...), "garbage": append(bytes.Clone(whole), "and something"...)}
	for cut := 1; cut <= record; cut++ {
		tails[fmt.Sprintf("%d bytes are missing", cut)] = whole[:len(whole)-cut]
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	tails["a bit differs"] = flipped
	for name, data := range tails {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		want := []string{"1", "2", "3"}
		if name != "zeros" && name != "garbage" {
			want = want[:2]
		}
		again := New(Options{Dir: dir})
		s := newSink(hold)
		in := input(t, again, "org", "g", s, "orders")
		s.waitFor(t, want...)
		mustSend(t, output(t, again, "org", "orders"), "new")
		s.waitFor(t, append(want, "new")...)
		in.Close()
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		third := New(Options{Dir: dir})
		s = newSink(hold)
		in = input(t, third, "org", "g", s, "orders")
		s.waitFor(t, append(want, "new")...)
		in.Close()
		if err := third.Close(); err != nil {
			t.Fatal(err)
		}
		for _, other := range segmentFiles(t, dir)[1:] {
			if err := os.Remove(other); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("with %s", name)
		}
	}
}

func TestDamageInTheMiddleIsLoggedAndTheRestRead(t *testing.T) {
	dir := t.TempDir()
	b := newBroker(t, dir, func(l *limits) { l.segmentBytes = 1 }) // a segment for each message
	in := input(t, b, "org", "g", newSink(hold), "orders")
	mustSend(t, output(t, b, "org", "orders"), "1", "2", "3")
	in.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentFiles(t, dir)[1]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	again := New(Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer again.Close()
	s := newSink(hold)
	input(t, again, "org", "g", s, "orders")
	s.waitFor(t, "1", "3")
	if !strings.Contains(log.String(), "journal damaged") {
		t.Errorf("logged: %s", &log)
	}
	if kept, err := os.ReadFile(path + damagedEnd); err != nil || !bytes.Equal(kept, data) {
		t.Errorf("the damaged segment is not kept: %v", err)
	}
}

// Segments that all groups are past are removed, and a restart begins where the groups were.
func TestSegmentsThatAllArePastAreRemoved(t *testing.T) {
	dir := t.TempDir()
	b := newBroker(t, dir, func(l *limits) { l.segmentBytes, l.cursors = 1, time.Millisecond })
	quick, slow := newSink(accept), newSink(hold)
	input(t, b, "org", "quick", quick, "orders")
	input(t, b, "org", "slow", slow, "orders")
	out := output(t, b, "org", "orders")
	mustSend(t, out, "1", "2", "3", "4", "5")
	slow.waitFor(t, "1", "2", "3", "4", "5")
	if n := len(segmentFiles(t, dir)); n != 5 {
		t.Fatalf("%d segments although a group needs all", n)
	}
	slow.mu.Lock()
	open := slow.open
	slow.mu.Unlock()
	for _, i := range []int{3, 1, 0} { // 3 is not settled
		open[i](nil)
	}
	until(t, "two segments are gone", func() bool { return len(segmentFiles(t, dir)) == 3 })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := newBroker(t, dir, nil)
	quick, slow = newSink(accept), newSink(hold)
	input(t, again, "org", "slow", slow, "orders")
	slow.waitFor(t, "3", "4", "5") // 4 was settled after one that was not: it comes again
	input(t, again, "org", "quick", quick, "orders")
	mustSend(t, output(t, again, "org", "orders"), "6")
	quick.waitFor(t, "6")
}

func TestMessagesForTheFirstGroupOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	b := newBroker(t, dir, nil)
	mustSend(t, output(t, b, "org", "orders"), "1", "2")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again, s := newBroker(t, dir, nil), newSink(accept)
	input(t, again, "org", "g", s, "orders")
	s.waitFor(t, "1", "2")
}

func TestAJournalHasOneUser(t *testing.T) {
	dir := t.TempDir()
	b := newBroker(t, dir, nil)
	_ = output(t, b, "org", "orders")
	other := newBroker(t, dir, nil)
	if _, err := other.NewOutput(&streams.BrokerOutput{Topic: "orders"}, site("org")); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("a second user: %v", err)
	}
}

// A journal that cannot be written is an error to the publisher, and mends by itself.
func TestAJournalThatCannotBeWrittenIsAnErrorToThePublisher(t *testing.T) {
	dir := t.TempDir()
	b := newBroker(t, dir, func(l *limits) { l.segmentBytes = 1 })
	s := newSink(accept)
	input(t, b, "org", "g", s, "orders")
	out := output(t, b, "org", "orders")
	mustSend(t, out, "1")
	topic, err := b.topic("org", "orders")
	if err != nil {
		t.Fatal(err)
	}
	folder := topic.journal.folder
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if err := send(t, out, "2"); stream.ClassOf(err) != stream.Transient || err == nil || !strings.Contains(err.Error(), "the journal cannot be written") {
		t.Errorf("settled with %v", err)
	}
	if err := os.Rename(folder+".away", folder); err != nil {
		t.Fatal(err)
	}
	mustSend(t, out, "3")
	s.waitFor(t, "1", "3")
	topic.mu.Lock()
	defer topic.mu.Unlock()
	if left := len(topic.batch); left != 0 || topic.inFlight != 0 || topic.reserved != 0 {
		t.Errorf("left behind: %d, %d, %d bytes", left, topic.inFlight, topic.reserved)
	}
}

// A write that fails half-way leaves what was there before, and what comes after.
func TestAWriteThatFailsLeavesNoTornRecord(t *testing.T) {
	dir := t.TempDir()
	b := newBroker(t, dir, nil)
	s := newSink(hold)
	in := input(t, b, "org", "g", s, "orders")
	out := output(t, b, "org", "orders")
	mustSend(t, out, "1")
	topic, err := b.topic("org", "orders")
	if err != nil {
		t.Fatal(err)
	}
	topic.journal.mu.Lock()
	path := topic.journal.segments[0].path
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	topic.journal.active.Close()
	topic.journal.active = readOnly
	topic.journal.mu.Unlock()
	if err := send(t, out, "2"); stream.ClassOf(err) != stream.Transient || err == nil {
		t.Errorf("settled with %v", err)
	}
	mustSend(t, out, "3") // in another segment
	in.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again, s := newBroker(t, dir, nil), newSink(hold)
	input(t, again, "org", "g", s, "orders")
	s.waitFor(t, "1", "3")
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	at := time.Unix(0, 1764000000123456789)
	for _, e := range []*entry{
		{seq: 1, at: at},
		{seq: 1<<64 - 1, at: at, id: "id", key: []byte{}, body: []byte("body")},
		{seq: 7, at: at, id: "\xff\x00", key: []byte("key"), meta: []stream.Meta{{Name: "a", Value: "b"}, {}}, body: bytes.Repeat([]byte("x"), 100_000)},
	} {
		entries, intact := readSegment(appendRecord([]byte(magic), e))
		if intact == len(magic) || len(entries) != 1 {
			t.Fatalf("not read: %+v", e)
		}
		got := entries[0]
		if got.seq != e.seq || !got.at.Equal(e.at) || got.id != e.id || !bytes.Equal(got.key, e.key) || (got.key == nil) != (e.key == nil) ||
			!slices.Equal(got.meta, e.meta) || !bytes.Equal(got.body, e.body) {
			t.Errorf("got %+v, want %+v", got, e)
		}
	}
}

func FuzzReadSegment(f *testing.F) {
	good := appendRecord([]byte(magic), &entry{seq: 1, id: "id", at: time.Unix(1, 0), key: []byte("k"), meta: []stream.Meta{{Name: "a", Value: "b"}}, body: []byte("body")})
	good = appendRecord(good, &entry{seq: 2, at: time.Unix(2, 0)})
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add([]byte(magic))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, intact := readSegment(data)
		if intact > len(data) || intact < len(magic) && len(entries) > 0 {
			t.Fatalf("%d of %d bytes, %d messages", intact, len(data), len(entries))
		}
		again, same := readSegment(data[:intact])
		if same != intact || len(again) != len(entries) {
			t.Fatalf("the intact part has %d messages in %d bytes, then %d in %d", len(entries), intact, len(again), same)
		}
		// A payload that no checksum guards.
		if len(data) >= leastPayload {
			_, _ = readPayload(data)
		}
	})
}
