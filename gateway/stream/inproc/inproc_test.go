package inproc

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		publishUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// within bounds how long a test waits for what must happen.
const within = 60 * time.Second

func site(org string) *stream.Site {
	return &stream.Site{Org: org, API: "api", Stream: "stream", MaxMessageBytes: 1 << 20, MaxInFlight: 256, Log: slog.New(slog.DiscardHandler), State: new(stream.State)}
}

func newBroker(t testing.TB, dir string, change func(*limits)) *Broker {
	t.Helper()
	b := New(Options{Dir: dir})
	if change != nil {
		change(&b.limits)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// A sink is a flow that keeps what it takes.
type sink struct {
	demand *stream.Demand
	mu     sync.Mutex
	taken  []*stream.Message
	open   []stream.Settle
	refuse bool
	auto   func(m *stream.Message) (err error, settle bool)
	news   chan struct{}
}

func newSink(auto func(*stream.Message) (error, bool)) *sink {
	return &sink{demand: stream.NewDemand(true), auto: auto, news: make(chan struct{}, 1)}
}

func accept(*stream.Message) (error, bool) { return nil, true }
func hold(*stream.Message) (error, bool)   { return nil, false }

func (s *sink) Demand() *stream.Demand { return s.demand }

func (s *sink) Take(m *stream.Message, settle stream.Settle) bool {
	s.mu.Lock()
	if s.refuse {
		s.mu.Unlock()
		return false
	}
	s.taken = append(s.taken, m)
	err, now := s.auto(m)
	if !now {
		s.open = append(s.open, settle)
	}
	s.mu.Unlock()
	if now {
		settle(err)
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
	return true
}

func (s *sink) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, len(s.taken))
	for i, m := range s.taken {
		all[i] = string(m.Body)
	}
	return all
}

// wait waits until enough says that what was taken is.
func (s *sink) wait(t testing.TB, what string, enough func([]string) bool) []string {
	t.Helper()
	late := time.After(within)
	for {
		if all := s.bodies(); enough(all) {
			return all
		}
		select {
		case <-s.news:
		case <-late:
			t.Fatalf("%s: has %.300q", what, s.bodies())
		}
	}
}

func (s *sink) waitFor(t testing.TB, want ...string) {
	t.Helper()
	got := s.wait(t, fmt.Sprintf("want %.300q", want), func(all []string) bool { return len(all) >= len(want) })
	if !slices.Equal(got, want) {
		t.Fatalf("got %.300q, want %.300q", got, want)
	}
}

func input(t testing.TB, b *Broker, org, group string, to stream.Flow, topics ...string) stream.Input {
	t.Helper()
	in, err := b.NewInput(&streams.BrokerInput{Topics: topics, ConsumerGroup: group, CheckpointLimit: 1024}, site(org))
	if err != nil {
		t.Fatal(err)
	}
	in.Start(to)
	t.Cleanup(func() { in.Stop(context.Background()); in.Close() })
	return in
}

func output(t testing.TB, b *Broker, org, topic string) stream.Output {
	t.Helper()
	out, err := b.NewOutput(&streams.BrokerOutput{Topic: streams.Template(topic), MaxInFlight: 256}, site(org))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// send publishes a message and returns what it was settled with.
func send(t testing.TB, out stream.Output, body string) error {
	t.Helper()
	settled := make(chan error, 2)
	out.Write(&stream.Message{ID: "id-" + body, Body: []byte(body), Meta: []stream.Meta{{Name: "from", Value: "test"}}}, func(err error) { settled <- err })
	select {
	case err := <-settled:
		return err
	case <-time.After(within):
		t.Fatalf("%s is not settled", body)
		return nil
	}
}

func mustSend(t testing.TB, out stream.Output, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := send(t, out, body); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
}

func both(t *testing.T, do func(t *testing.T, dir string)) {
	t.Run("in memory", func(t *testing.T) { do(t, "") })
	t.Run("with a journal", func(t *testing.T) { do(t, t.TempDir()) })
}

func TestEachGroupGetsEachMessage(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		b := newBroker(t, dir, nil)
		one, other, stranger, live := newSink(accept), newSink(accept), newSink(accept), newSink(accept)
		input(t, b, "org", "one", one, "orders", "more")
		input(t, b, "org", "other", other, "orders")
		input(t, b, "stranger", "one", stranger, "orders")
		input(t, b, "org", "", live, "orders")
		out, more := output(t, b, "org", "orders"), output(t, b, "org", "more")
		mustSend(t, out, "1", "2", "3")
		other.waitFor(t, "1", "2", "3")
		live.waitFor(t, "1", "2", "3")
		one.waitFor(t, "1", "2", "3")
		mustSend(t, more, "4")
		one.waitFor(t, "1", "2", "3", "4")
		m := one.taken[0]
		if m.ID != "id-1" || m.Value("from") != "test" || m.Attempt != 1 || m.At.IsZero() {
			t.Errorf("got %+v", m)
		}
		if got := stranger.bodies(); len(got) > 0 {
			t.Errorf("another organisation got %q", got)
		}
	})
}

func TestMessagesWaitForTheFirstGroup(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		b := newBroker(t, dir, nil)
		mustSend(t, output(t, b, "org", "orders"), "1", "2")
		first, second := newSink(accept), newSink(accept)
		input(t, b, "org", "first", first, "orders")
		first.waitFor(t, "1", "2")
		input(t, b, "org", "second", second, "orders")
		mustSend(t, output(t, b, "org", "orders"), "3")
		second.waitFor(t, "3")
	})
}

func TestWithoutAGroupNothingIsKeptWhileAway(t *testing.T) {
	b := newBroker(t, t.TempDir(), func(l *limits) { l.away = time.Millisecond })
	live := newSink(accept)
	input(t, b, "org", "", live, "orders")
	out := output(t, b, "org", "orders")
	mustSend(t, out, "1")
	live.waitFor(t, "1")
	live.demand.Set(false)
	topic, err := b.topic("org", "orders")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the input is away", func() bool {
		topic.mu.Lock()
		defer topic.mu.Unlock()
		return len(topic.live) == 0
	})
	for i := range 3000 { // more than a ring holds
		mustSend(t, out, fmt.Sprint("missed ", i))
	}
	live.demand.Set(true)
	mustSend(t, out, "2")
	live.waitFor(t, "1", "2")
	if entries, err := os.ReadDir(b.dir); err != nil || len(entries) != 1 {
		t.Errorf("journaled although nobody will read it: %v, %v", entries, err)
	}
}

func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// A full group makes publishers wait, takes their demand, and refuses in the end; nothing
// that was acknowledged is dropped.
func TestAFullGroupPushesBack(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		b := newBroker(t, dir, func(l *limits) { l.ring, l.publish = 8, time.Millisecond })
		slow := newSink(hold)
		input(t, b, "org", "slow", slow, "orders")
		out := output(t, b, "org", "orders")
		var want []string
		for i := range 8 {
			want = append(want, fmt.Sprint(i))
		}
		mustSend(t, out, want...)
		until(t, "no demand", func() bool { return !out.Demand().On() })
		err := send(t, out, "too many")
		if stream.ClassOf(err) != stream.Transient || err.Error() != "topic orders is full: consumer group slow has 8 unsettled messages" {
			t.Fatalf("a full topic: %v", err)
		}
		b.mu.Lock()
		b.limits.publish = within
		b.mu.Unlock()
		waiting := make(chan error, 1)
		out.Write(&stream.Message{Body: []byte("waits")}, func(err error) { waiting <- err })
		slow.waitFor(t, want...)
		slow.mu.Lock()
		open := slow.open
		slow.open, slow.auto = nil, accept
		slow.mu.Unlock()
		for _, settle := range open {
			settle(nil)
			settle(nil) // once more does nothing
		}
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		slow.waitFor(t, append(want, "waits")...)
		until(t, "demand", out.Demand().On)
	})
}

func TestAMessageThatFailsComesAgain(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		b := newBroker(t, dir, func(l *limits) { l.again = time.Millisecond })
		failures := 3
		s := newSink(func(m *stream.Message) (error, bool) {
			if string(m.Body) == "bad" && failures > 0 {
				failures--
				return stream.Failf(stream.Unknown, "broken"), true
			}
			return nil, true
		})
		in := input(t, b, "org", "g", s, "orders")
		mustSend(t, output(t, b, "org", "orders"), "bad", "good")
		got := s.wait(t, "bad four times, good once", func(all []string) bool { return len(all) >= 5 })
		slices.Sort(got)
		if !slices.Equal(got, []string{"bad", "bad", "bad", "bad", "good"}) {
			t.Errorf("got %q", got)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if last := s.taken[len(s.taken)-1]; last.Attempt != 4 {
			t.Errorf("attempt %d, want 4", last.Attempt)
		}
		if again := in.(*Input).site.State.Again.Load(); again != 3 {
			t.Errorf("%d messages came again, want 3", again)
		}
	})
}

func TestAMessageThatIsRefusedForGoodGoesToTheDeadTopic(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		b := newBroker(t, dir, nil)
		s := newSink(func(m *stream.Message) (error, bool) {
			if string(m.Body) == "poison" {
				return &stream.Failure{Class: stream.Refused, By: "check", Err: os.ErrInvalid}, true
			}
			return nil, true
		})
		input(t, b, "org", "g", s, "orders")
		mustSend(t, output(t, b, "org", "orders"), "poison", "good")
		s.waitFor(t, "poison", "good")
		dead := newSink(accept)
		input(t, b, "org", "undertaker", dead, "orders.dead")
		dead.waitFor(t, "poison")
		if m := dead.taken[0]; m.Value("svc-error") != "check: invalid argument" || m.Value("svc-group") != "g" || m.Value("from") != "test" || m.ID != "id-poison" {
			t.Errorf("got %+v", m)
		}
	})
}

func TestAMessageAboveTheLimitOfTheStreamIsNotPassedOn(t *testing.T) {
	b := newBroker(t, "", nil)
	s, dead := newSink(accept), newSink(accept)
	small := site("org")
	small.MaxMessageBytes = 3
	in, err := b.NewInput(&streams.BrokerInput{Topics: []string{"orders"}, ConsumerGroup: "g", CheckpointLimit: 1}, small)
	if err != nil {
		t.Fatal(err)
	}
	in.Start(s)
	defer in.Close()
	input(t, b, "org", "undertaker", dead, "orders.dead")
	mustSend(t, output(t, b, "org", "orders"), "long", "ok")
	s.waitFor(t, "ok")
	dead.waitFor(t, "long")
}

// What a member had not settled when it was closed goes to the others; what it settles
// later counts no more.
func TestUnsettledMessagesGoToOtherMembers(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		b := newBroker(t, dir, nil)
		gone := newSink(hold)
		in := input(t, b, "org", "g", gone, "orders")
		mustSend(t, output(t, b, "org", "orders"), "1", "2", "3")
		gone.waitFor(t, "1", "2", "3")
		gone.mu.Lock()
		first, second := gone.open[0], gone.open[1]
		gone.mu.Unlock()
		in.Stop(t.Context())
		first(nil) // between Stop and Close it counts
		in.Close()
		second(nil)
		other := newSink(accept)
		input(t, b, "org", "g", other, "orders")
		other.waitFor(t, "2", "3")
		if got := other.taken[0].Attempt; got != 2 {
			t.Errorf("attempt %d, want 2", got)
		}
	})
}

// An input whose flow refuses although it has demand asks again.
func TestAFlowThatRefusesIsAskedAgain(t *testing.T) {
	b := newBroker(t, "", nil)
	s := newSink(accept)
	s.refuse = true
	input(t, b, "org", "g", s, "orders")
	mustSend(t, output(t, b, "org", "orders"), "1")
	s.mu.Lock()
	s.refuse = false
	s.mu.Unlock()
	s.waitFor(t, "1")
	if got := s.taken[0].Attempt; got != 1 {
		t.Errorf("attempt %d, want 1: it was not delivered before", got)
	}
}

func TestAnOutputThatIsClosedSettlesWhatWaits(t *testing.T) {
	b := newBroker(t, "", func(l *limits) { l.ring = 1 })
	input(t, b, "org", "g", newSink(hold), "orders")
	out := output(t, b, "org", "orders")
	mustSend(t, out, "1")
	settled := make(chan error, 2)
	out.Write(&stream.Message{Body: []byte("2")}, func(err error) { settled <- err })
	out.Close(t.Context())
	if err := <-settled; stream.ClassOf(err) != stream.Unknown {
		t.Errorf("settled with %v", err)
	}
	if err := send(t, out, "3"); err == nil {
		t.Error("a closed output took a message")
	}
}

func TestBadTopicsAreRefused(t *testing.T) {
	b := newBroker(t, "", nil)
	for _, name := range []string{"", "a*", "#", "a\nb", "\xff", string(make([]byte, 256))} {
		if _, err := b.NewOutput(&streams.BrokerOutput{Topic: streams.Template(name)}, site("org")); err == nil {
			t.Errorf("%q is accepted", name)
		}
		if _, err := b.NewInput(&streams.BrokerInput{Topics: []string{name}, ConsumerGroup: "g"}, site("org")); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestAnOrganisationHasSoManyTopicsAndBytes(t *testing.T) {
	b := newBroker(t, "", func(l *limits) { l.topics, l.orgBytes = 2, 1000 })
	mustSend(t, output(t, b, "org", "1"), "a")
	_ = output(t, b, "org", "2")
	if _, err := b.NewOutput(&streams.BrokerOutput{Topic: "3"}, site("org")); err == nil {
		t.Error("a third topic is accepted")
	}
	mustSend(t, output(t, b, "other", "3"), "a")
	if err := send(t, output(t, b, "org", "1"), string(make([]byte, 800))); stream.ClassOf(err) != stream.Transient || err == nil {
		t.Errorf("more bytes than allowed: %v", err)
	}
	mustSend(t, output(t, b, "other", "4"), string(make([]byte, 400)))
	s := newSink(accept)
	input(t, b, "org", "g", s, "1")
	s.waitFor(t, "a")
	until(t, "the bytes are given back", func() bool { return b.orgs["org"].bytes.Load() == 0 })
}

func TestAFullGroupWithoutAStreamIsRemovedInTheEnd(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		b := newBroker(t, dir, func(l *limits) { l.ring, l.orphan, l.publish = 2, 0, time.Millisecond })
		in := input(t, b, "org", "old", newSink(hold), "orders")
		s := newSink(accept)
		input(t, b, "org", "new", s, "orders")
		out := output(t, b, "org", "orders")
		mustSend(t, out, "1", "2")
		if err := send(t, out, "3"); err == nil {
			t.Fatal("accepted although a group with a stream is full")
		}
		in.Stop(t.Context())
		in.Close()
		mustSend(t, out, "4", "5", "6")
		s.waitFor(t, "1", "2", "4", "5", "6")
	})
}

// Groups of members that come, go, refuse and fail at random: every message that was
// acknowledged is settled by exactly one member of each group, or more than one if it was
// handed out again.
func TestEachMessageIsSettledInEachGroup(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		const messages, publishers = 600, 3
		b := newBroker(t, dir, func(l *limits) { l.ring, l.again, l.publish = 16, time.Microsecond, within })
		var ended sync.WaitGroup
		counts := make(map[string]map[string]int)
		var mu sync.Mutex
		chaos, done := sync.WaitGroup{}, make(chan struct{})
		for g := range 3 {
			name := fmt.Sprint("group ", g)
			counts[name] = make(map[string]int)
			for m := range 2 {
				random := rand.New(rand.NewPCG(seed, uint64(g*10+m)))
				start := func() (stream.Input, *sink) {
					s := newSink(nil)
					s.auto = func(message *stream.Message) (error, bool) {
						switch random.IntN(10) {
						case 0:
							return os.ErrInvalid, true
						case 1:
							return nil, false // until it is closed
						}
						mu.Lock()
						defer mu.Unlock()
						counts[name][string(message.Body)]++
						return nil, true
					}
					in, err := b.NewInput(&streams.BrokerInput{Topics: []string{"orders"}, ConsumerGroup: name, CheckpointLimit: 8}, site("org"))
					if err != nil {
						t.Error(err)
						return nil, nil
					}
					in.Start(s)
					return in, s
				}
				chaos.Go(func() {
					in, s := start()
					toggles := rand.New(rand.NewPCG(seed, uint64(g*10+m+100)))
					for {
						select {
						case <-done:
							in.Stop(context.Background())
							in.Close()
							return
						case <-time.After(time.Millisecond):
						}
						switch toggles.IntN(3) {
						case 0:
							in.Stop(context.Background())
							in.Close()
							in, s = start()
						case 1:
							s.demand.Set(!s.demand.On())
						case 2:
							s.mu.Lock()
							s.refuse = !s.refuse
							s.mu.Unlock()
						}
					}
				})
			}
		}
		until(t, "all groups", func() bool {
			topic, err := b.topic("org", "orders")
			if err != nil {
				t.Fatal(err)
			}
			topic.mu.Lock()
			defer topic.mu.Unlock()
			return len(topic.groups) == 3
		})
		for p := range publishers {
			out := output(t, b, "org", "orders")
			ended.Go(func() {
				for i := range messages / publishers {
					if err := send(t, out, fmt.Sprint(p, "-", i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		ended.Wait()
		until(t, "every message in every group", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, settled := range counts {
				if len(settled) != messages {
					return false
				}
			}
			return true
		})
		close(done)
		chaos.Wait()
		topic, err := b.topic("org", "orders")
		if err != nil {
			t.Fatal(err)
		}
		for name, settled := range counts {
			for body, n := range settled {
				if n != 1 {
					t.Errorf("%s: %s was settled %d times", name, body, n)
				}
			}
			topic.mu.Lock()
			if g := topic.groups[name]; len(g.items) != 0 || g.ready != 0 || g.bytes != 0 {
				t.Errorf("%s has %d items, %d of them ready, %d bytes", name, len(g.items), g.ready, g.bytes)
			}
			topic.mu.Unlock()
		}
		if left := b.orgs["org"].bytes.Load(); left != 0 {
			t.Errorf("%d bytes are still charged", left)
		}
	})
}
