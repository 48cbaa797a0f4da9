package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func migrate(ctx context.Context, dsn string) error {
	_, err := store.Migrate(ctx, dsn)
	return err
}

// bench is a database with an organisation, and queues on it.
type bench struct {
	t     testing.TB
	dsn   string
	store *store.Store
	log   *testenv.Log
}

func start(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, dsn: testenv.Database(t, migrate, "deliveries"), log: new(testenv.Log)}
	b.store = b.open()
	b.exec("insert into orgs (id, name) values ('o', 'o'), ('other', 'other')")
	return b
}

func (b *bench) open() *store.Store {
	b.t.Helper()
	st, err := store.Open(b.t.Context(), store.Options{URL: b.dsn, MaxConns: 30})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(st.Close)
	return st
}

// queue is one that nobody runs. Announcements alone have it look, unless it is
// told otherwise.
func (b *bench) queue(change ...func(*Options)) *Queue {
	b.t.Helper()
	o := Options{Store: b.store, MasterKey: secret.NewKey(), Poll: time.Hour, Log: slog.New(slog.NewTextHandler(b.log, nil))}
	for _, c := range change {
		c(&o)
	}
	q, err := New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return q
}

// run runs a queue until the test ends, or until stop, which waits for its end.
func (b *bench) run(q *Queue) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); q.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) put(q *Queue, m Message) string {
	b.t.Helper()
	if m.Org == "" {
		m.Org = "o"
	}
	var id string
	err := b.store.InTx(b.t.Context(), func(tx *store.Tx) (err error) {
		id, err = q.Put(b.t.Context(), tx, m)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bench) row(id string) store.Message {
	b.t.Helper()
	row, err := b.store.MessageByID(b.t.Context(), "o", id)
	if err != nil {
		b.t.Fatal(err)
	}
	return row
}

func (b *bench) inState(id, state string) {
	b.t.Helper()
	wait.Until(b.t, id+" is "+state, func() bool { return b.row(id).State == state })
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	execOn(b.t, b.dsn, sql, args...)
}

func execOn(t testing.TB, dsn, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) count(sql string) (n int) {
	b.t.Helper()
	conn, err := pgx.Connect(context.Background(), b.dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// sender is a Sender whose outcomes tests control, and which sees what no two
// attempts may do.
type sender struct {
	send func(context.Context, Delivery) Outcome // nil: everything is taken

	mu     sync.Mutex
	seen   []Delivery
	active map[string]int // by id
	most   map[string]int // at once, by target
	now    map[string]int
	twice  []string // sent twice at the same time
}

func newSender(send func(context.Context, Delivery) Outcome) *sender {
	return &sender{send: send, active: map[string]int{}, most: map[string]int{}, now: map[string]int{}}
}

func (s *sender) Send(ctx context.Context, d Delivery) Outcome {
	s.mu.Lock()
	s.seen = append(s.seen, d)
	s.active[d.ID]++
	if s.active[d.ID] > 1 {
		s.twice = append(s.twice, d.ID)
	}
	s.now[d.Target]++
	s.most[d.Target] = max(s.most[d.Target], s.now[d.Target])
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active[d.ID]--
		s.now[d.Target]--
	}()
	if s.send == nil {
		return Outcome{Result: Done, Status: 200}
	}
	return s.send(ctx, d)
}

func (s *sender) attempts() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func TestTheFirstAttemptFollowsTheCommitAtOnce(t *testing.T) {
	b := start(t)
	q, s := b.queue(), newSender(nil) // it polls once an hour
	q.Handle(Webhook, s)
	b.run(q)
	warm := b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")})
	b.inState(warm, store.MessageDone) // the listener is there

	id := b.put(q, Message{Kind: Webhook, Target: "w", Developer: "d", Event: "key_event.created", Payload: []byte(`{"a":1}`)})
	b.inState(id, store.MessageDone) // which is waited for less long than until it polls
	all := s.attempts()
	d := all[len(all)-1]
	if d.ID != id || d.Org != "o" || d.Kind != Webhook || d.Target != "w" || d.Developer != "d" || d.Event != "key_event.created" || string(d.Payload) != `{"a":1}` || d.Attempt != 1 {
		t.Errorf("sent %+v", d)
	}
	if row := b.row(id); row.Attempts != 1 || row.Status != 200 || row.FinishedAt == nil || !strings.Contains(string(row.Tries), `"status": 200`) {
		t.Errorf("row %+v, tries %s", row, row.Tries)
	}
}

func TestNothingIsSentOfWhatDidNotHappen(t *testing.T) {
	b := start(t)
	q, s := b.queue(func(o *Options) { o.Poll = 5 * time.Millisecond }), newSender(nil)
	q.Handle(Webhook, s)
	b.run(q)
	undone := errors.New("undone")
	err := b.store.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := q.Put(t.Context(), tx, Message{Org: "o", Kind: Webhook, Target: "w", Event: "never", Payload: []byte("{}")}); err != nil {
			return err
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	b.inState(b.put(q, Message{Kind: Webhook, Target: "w", Event: "after", Payload: []byte("{}")}), store.MessageDone)
	if all := s.attempts(); len(all) != 1 || all[0].Event != "after" {
		t.Errorf("sent %+v", all)
	}
}

func TestAMessageIsTriedEightMoreTimesAndThenGivenUp(t *testing.T) {
	b := start(t)
	pauses := make([]time.Duration, len(Pauses()))
	for i := range pauses {
		pauses[i] = time.Millisecond
	}
	q := b.queue(func(o *Options) { o.Poll, o.Pauses = 2*time.Millisecond, pauses })
	finals := make(chan bool, 20)
	s := newSender(func(context.Context, Delivery) Outcome {
		return Outcome{Status: 500, Error: "it answers 500\x00 \xff", Note: func(_ context.Context, _ *store.Tx, final bool) error {
			finals <- final
			return nil
		}}
	})
	q.Handle(Webhook, s)
	b.run(q)
	id := b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")})
	b.inState(id, store.MessageFailed)
	row := b.row(id)
	if all := s.attempts(); len(all) != 9 || all[8].Attempt != 9 || all[8].ID != all[0].ID {
		t.Errorf("%d attempts", len(all))
	}
	if row.Attempts != 9 || row.Status != 500 || row.Error != "it answers 500 ?" || strings.Count(string(row.Tries), `"at"`) != 9 {
		t.Errorf("row %+v, tries %s", row, row.Tries)
	}
	for i := range 9 {
		if final := <-finals; final != (i == 8) {
			t.Errorf("attempt %d: final is %v", i+1, final)
		}
	}
}

func TestThePausesMakeADay(t *testing.T) {
	all := Pauses()
	var sum time.Duration
	for i, p := range all {
		sum += p
		if i > 0 && p < all[i-1] {
			t.Errorf("pause %d is %v after %v", i, p, all[i-1])
		}
	}
	if len(all) != 8 || sum < 23*time.Hour || sum > 25*time.Hour {
		t.Errorf("%d pauses make %v", len(all), sum)
	}
	shorter, longer := false, false
	for range 1000 {
		p := jitter(time.Hour)
		if p < 48*time.Minute || p > 72*time.Minute {
			t.Fatalf("an hour became %v", p)
		}
		shorter, longer = shorter || p < time.Hour, longer || p > time.Hour
	}
	if !shorter || !longer {
		t.Error("pauses do not vary")
	}
}

func TestATargetThatAsksForTimeIsLeftAlone(t *testing.T) {
	b := start(t)
	q := b.queue(func(o *Options) { o.Poll, o.Pauses = 2*time.Millisecond, []time.Duration{time.Millisecond} })
	const asked = 600 * time.Millisecond
	var mu sync.Mutex
	var first, second time.Time
	s := newSender(func(_ context.Context, d Delivery) Outcome {
		mu.Lock()
		defer mu.Unlock()
		if first.IsZero() {
			first = time.Now()
			return Outcome{Status: 429, Error: "slow down", After: asked}
		}
		if second.IsZero() {
			second = time.Now()
		}
		return Outcome{Result: Done}
	})
	q.Handle(Webhook, s)
	one := b.put(q, Message{Kind: Webhook, Target: "w", Event: "one", Payload: []byte("{}")})
	b.run(q)
	wait.Until(t, "the target asked for time", func() bool { return b.row(one).Status == 429 })
	two := b.put(q, Message{Kind: Webhook, Target: "elsewhere", Event: "two", Payload: []byte("{}")})
	b.inState(two, store.MessageDone) // others do not wait
	b.inState(one, store.MessageDone)
	mu.Lock()
	defer mu.Unlock()
	all := s.attempts()
	if last := all[len(all)-1]; last.ID != one || last.Attempt != 2 {
		t.Errorf("last %+v", last)
	}
	if took := time.Since(first); took < asked {
		t.Errorf("it was left alone for %v", took)
	}
}

func TestWhatWaitsForATargetThatAsksForTimeWaits(t *testing.T) {
	b := start(t)
	q := b.queue(func(o *Options) { o.Poll = 2 * time.Millisecond })
	s := newSender(func(context.Context, Delivery) Outcome { return Outcome{Status: 429, After: time.Hour} })
	q.Handle(Webhook, s)
	var ids []string
	for range 20 {
		ids = append(ids, b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")}))
	}
	b.run(q)
	wait.Until(t, "all are put off", func() bool {
		return b.count("select count(*) from deliveries where state = 'pending' and leased_until = 'epoch' and next_at > now() + interval '50 minutes'") == len(ids)
	})
	if n := len(s.attempts()); n > maxToTarget {
		t.Errorf("%d attempts", n)
	}
}

func TestASlowTargetHoldsUpNoOther(t *testing.T) {
	b := start(t)
	q := b.queue()
	release := make(chan struct{})
	s := newSender(func(ctx context.Context, d Delivery) Outcome {
		if d.Target == "slow" {
			select {
			case <-release:
			case <-ctx.Done():
				return Outcome{Error: "too late"}
			}
		}
		return Outcome{Result: Done}
	})
	q.Handle(Webhook, s)
	q.Handle(Letter, s)
	var slow, quick []string
	for range 100 {
		slow = append(slow, b.put(q, Message{Kind: Webhook, Target: "slow", Event: "e", Payload: []byte("{}")}))
	}
	b.run(q)
	for i := range 50 {
		quick = append(quick, b.put(q, Message{Kind: Webhook, Target: fmt.Sprint("quick", i%5), Event: "e", Payload: []byte("{}")}))
	}
	quick = append(quick, b.put(q, Message{Kind: Letter, Target: "slow@example.com", Event: "e", Payload: []byte("{}")}))
	for _, id := range quick {
		b.inState(id, store.MessageDone)
	}
	close(release)
	for _, id := range slow {
		b.inState(id, store.MessageDone)
	}
	if s.most["slow"] != maxToTarget {
		t.Errorf("%d at once to the slow target", s.most["slow"])
	}
	if len(s.attempts()) != 151 {
		t.Errorf("%d attempts", len(s.attempts()))
	}
}

func TestManyDeadTargetsLeaveRoomForOthers(t *testing.T) {
	b := start(t)
	q := b.queue(func(o *Options) {
		o.Poll, o.Timeout, o.Pauses = 2*time.Millisecond, 10*time.Minute, []time.Duration{time.Millisecond, time.Hour}
	})
	release := make(chan struct{})
	s := newSender(func(_ context.Context, d Delivery) Outcome {
		if strings.HasPrefix(d.Target, "dead") && d.Attempt > 1 {
			<-release // it hangs
		}
		if strings.HasPrefix(d.Target, "dead") {
			return Outcome{Error: "no answer"}
		}
		return Outcome{Result: Done}
	})
	q.Handle(Webhook, s)
	for i := range 2 * maxSending {
		b.put(q, Message{Kind: Webhook, Target: fmt.Sprint("dead", i), Event: "e", Payload: []byte("{}")})
	}
	b.run(q)
	defer close(release)
	wait.Until(t, "as many hang as may", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, now := range s.now {
			n += now
		}
		return n >= maxFailing
	})
	b.inState(b.put(q, Message{Kind: Webhook, Target: "alive", Event: "e", Payload: []byte("{}")}), store.MessageDone)
}

func TestTwoQueuesSendEachMessageOnce(t *testing.T) {
	b := start(t)
	s := newSender(nil)
	const many = 400
	queues := []*Queue{b.queue(), b.queue()}
	queues[1].opts.Store = b.open()
	for _, q := range queues {
		q.Handle(Webhook, s)
		b.run(q)
	}
	var putting sync.WaitGroup
	for w := range 4 {
		putting.Go(func() {
			for i := range many / 4 {
				b.put(queues[w%2], Message{Kind: Webhook, Target: fmt.Sprint("t", i%7), Event: "e", Payload: []byte("{}")})
			}
		})
	}
	putting.Wait()
	wait.Until(t, "all are sent", func() bool { return b.count("select count(*) from deliveries where state <> 'done'") == 0 })
	if n := len(s.attempts()); n != many || len(s.twice) > 0 {
		t.Errorf("%d messages were sent %d times, %d at the same time", many, n, len(s.twice))
	}
}

func TestAQueueThatEndsGivesBackWhatItDidNotFinish(t *testing.T) {
	b := start(t)
	q := b.queue(func(o *Options) { o.Timeout = 300 * time.Millisecond })
	began := make(chan struct{}, 1)
	s := newSender(func(ctx context.Context, d Delivery) Outcome {
		began <- struct{}{}
		<-ctx.Done()
		return Outcome{Error: "interrupted"}
	})
	q.Handle(Webhook, s)
	stop := b.run(q)
	id := b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")})
	<-began
	stop()
	row := b.row(id)
	if row.State != store.MessagePending || row.LeasedUntil.Year() != 1970 {
		t.Errorf("row %+v", row)
	}
}

func TestASecretIsSealedWhileItWaitsAndGoneAfterwards(t *testing.T) {
	b := start(t)
	q := b.queue()
	const planted = "the-planted-secret"
	id := b.put(q, Message{Kind: Letter, Target: "a@example.com", Event: "key_email", Payload: []byte(planted), Secret: true})
	row := b.row(id)
	if !row.Sealed || bytes.Contains(row.Payload, []byte(planted)) {
		t.Fatalf("stored as %q", row.Payload)
	}
	if plain, err := q.Open(&row); err != nil || string(plain) != planted {
		t.Errorf("opened as %q, %v", plain, err)
	}
	s := newSender(nil)
	q.Handle(Letter, s)
	b.run(q)
	b.inState(id, store.MessageDone)
	if row := b.row(id); len(row.Payload) != 0 || string(s.attempts()[0].Payload) != planted {
		t.Errorf("sent %q, left %q", s.attempts()[0].Payload, row.Payload)
	}
	if err := replayable(new(b.row(id))); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("it can be replayed: %v", err)
	}
	if strings.Contains(b.log.String(), planted) {
		t.Error("it is in the log")
	}

	without := b.queue(func(o *Options) { o.MasterKey = secret.Key{} })
	err := b.store.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := without.Put(t.Context(), tx, Message{Org: "o", Kind: Letter, Target: "a", Event: "e", Payload: []byte("x"), Secret: true})
		return err
	})
	refusal, ok := errors.AsType[rest.Refusal](err)
	if !ok {
		t.Fatal(err)
	}
	if status, message, _ := refusal.Refused(); status != 503 || !strings.Contains(message, "admin.master_key") {
		t.Errorf("%d %s", status, message)
	}
}

func TestAMessageThatCannotBeOpenedIsNotSent(t *testing.T) {
	b := start(t)
	id := b.put(b.queue(), Message{Kind: Letter, Target: "a", Event: "e", Payload: []byte("x"), Secret: true})
	q, s := b.queue(), newSender(nil) // another master key
	q.Handle(Letter, s)
	b.run(q)
	wait.Until(t, "it was tried", func() bool { return strings.Contains(b.row(id).Error, "cannot be opened") })
	if len(s.attempts()) > 0 || !strings.Contains(b.log.String(), "admin.master_key") {
		t.Errorf("sent %v, log %s", s.attempts(), b.log)
	}
}

func TestWhatWaitsForOneTargetIsBounded(t *testing.T) {
	b := start(t)
	q := b.queue()
	b.exec(`insert into deliveries (id, org_id, kind, target, event, payload, sealed, state)
		select 'm' || n, 'o', 'webhook', 'full', 'e', '', false, 'pending' from generate_series(1, $1) n`, bound(Webhook))
	err := b.store.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := q.Put(t.Context(), tx, Message{Org: "o", Kind: Webhook, Target: "full", Event: "e"}); !errors.Is(err, ErrFull) {
			return fmt.Errorf("it was queued: %w", err)
		}
		if _, err := q.Put(t.Context(), tx, Message{Org: "o", Kind: Webhook, Target: "w", Event: "e", Payload: make([]byte, MaxPayload+1)}); !errors.Is(err, ErrTooLarge) {
			return fmt.Errorf("it was queued: %w", err)
		}
		// A URL or an address may be that of several organisations.
		if _, err := q.Put(t.Context(), tx, Message{Org: "other", Kind: Webhook, Target: "full", Event: "e", Payload: []byte{}}); err != nil {
			return fmt.Errorf("another organisation fills up the room: %w", err)
		}
		_, err := q.Put(t.Context(), tx, Message{Org: "o", Kind: Webhook, Target: "another", Event: "e", Payload: []byte{}})
		return err // the transaction goes on
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := b.count("select count(*) from deliveries where target = 'another'"); n != 1 {
		t.Errorf("%d for the other", n)
	}
}

func TestASenderThatPanicsHarmsNothingElse(t *testing.T) {
	b := start(t)
	q := b.queue()
	s := newSender(func(_ context.Context, d Delivery) Outcome {
		if d.Target == "bad" {
			panic("of a test")
		}
		return Outcome{Result: Done}
	})
	q.Handle(Webhook, s)
	b.run(q)
	bad := b.put(q, Message{Kind: Webhook, Target: "bad", Event: "e", Payload: []byte("{}")})
	good := b.put(q, Message{Kind: Webhook, Target: "good", Event: "e", Payload: []byte("{}")})
	b.inState(good, store.MessageDone)
	wait.Until(t, "the panic is noted", func() bool { return strings.Contains(b.row(bad).Error, "internal error") })
	if !strings.Contains(b.log.String(), "panicked") {
		t.Errorf("log %s", b.log)
	}
}

func TestANoteThatCannotBeMadeDoesNotHaveTheMessageSentForEver(t *testing.T) {
	b := start(t)
	q := b.queue()
	s := newSender(func(context.Context, Delivery) Outcome {
		return Outcome{Result: Done, Note: func(context.Context, *store.Tx, bool) error { return errors.New("of a test") }}
	})
	q.Handle(Webhook, s)
	b.run(q)
	b.inState(b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")}), store.MessageDone)
	if n := len(s.attempts()); n != 1 || !strings.Contains(b.log.String(), "could not be noted") {
		t.Errorf("%d attempts, log %s", n, b.log)
	}
}

func TestWhatIsDoneIsForgottenAfterAWhile(t *testing.T) {
	b := start(t)
	b.exec(`insert into deliveries (id, org_id, kind, target, event, payload, sealed, state, finished_at)
		select 'm' || n, 'o', 'webhook', 'w', 'e', '', false, 'done', now() - n * interval '1 hour' from generate_series(1, 2500) n`)
	b.exec(`insert into deliveries (id, org_id, kind, target, event, payload, sealed, state, created_at) values ('waits', 'o', 'webhook', 'w', 'e', '', false, 'pending', now() - interval '1 year')`)
	q := b.queue(func(o *Options) { o.Keep = 24 * time.Hour })
	b.run(q)
	wait.Until(t, "the old ones are gone", func() bool { return b.count("select count(*) from deliveries") == 24 })
	if b.row("waits").State != store.MessagePending {
		t.Error("what waits is gone")
	}
}

func TestOutcomesAreNotedOnceTheDatabaseIsBack(t *testing.T) {
	b := start(t)
	q := b.queue()
	went, back := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(went) })
	s := newSender(func(context.Context, Delivery) Outcome {
		begin()
		<-back
		return Outcome{Result: Done, Status: 204}
	})
	q.Handle(Webhook, s)
	b.run(q)
	id := b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")})
	<-went
	name := b.dsn[strings.LastIndex(b.dsn, "=")+1:]
	beside := b.dsn + " dbname=postgres"
	execOn(t, beside, "alter database "+name+" allow_connections false")
	execOn(t, beside, "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name)
	close(back)
	wait.Until(t, "the listener misses the database", func() bool {
		return strings.Contains(b.log.String(), "interrupted") || b.store.Ping(t.Context()) != nil
	})
	execOn(t, beside, "alter database "+name+" allow_connections true")
	b.store = b.open() // without connections that broke
	b.inState(id, store.MessageDone)
	if n := len(s.attempts()); n != 1 {
		t.Errorf("%d attempts", n)
	}
	// Announcements are heard again.
	b.inState(b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")}), store.MessageDone)
}

func TestALeaseThatRanOutIsNobodysToSettle(t *testing.T) {
	b := start(t)
	q := b.queue()
	id := b.put(q, Message{Kind: Webhook, Target: "w", Event: "e", Payload: []byte("{}")})
	take := func() []store.Message {
		rows, err := b.store.LeaseMessages(t.Context(), store.MessageQuery{Kind: Webhook, Busy: []string{}, Max: 5, Lease: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	first := take()
	var second []store.Message
	wait.Until(t, "the lease ran out", func() bool { second = take(); return len(second) == 1 })
	settle := func(r *store.Message) (ours bool) {
		if err := b.store.InTx(t.Context(), func(tx *store.Tx) (err error) {
			ours, err = tx.FinishAttempt(t.Context(), r, store.AttemptResult{State: store.MessageDone})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return ours
	}
	if settle(&first[0]) {
		t.Error("who came late settled it")
	}
	if !settle(&second[0]) || b.row(id).Attempts != 2 {
		t.Errorf("row %+v", b.row(id))
	}
}

func TestTroubledTargetsTakeHalfOfTheRoom(t *testing.T) {
	l := newWorker(&Queue{}, Webhook, nil)
	for i := range 100 {
		l.begin(fmt.Sprint("t", i))
		l.end(fmt.Sprint("t", i), false)
	}
	busy, room := l.busy()
	if len(busy) != 0 || room != maxFailing {
		t.Errorf("%d busy, room %d", len(busy), room)
	}
	for i := range maxFailing - 1 {
		l.begin(fmt.Sprint("t", i))
	}
	if busy, room = l.busy(); len(busy) != maxFailing-1 || room != 1 {
		t.Errorf("%d busy, room %d", len(busy), room)
	}
	l.begin(fmt.Sprint("t", maxFailing))
	if busy, room = l.busy(); len(busy) != 100 || room != maxSending-maxFailing {
		t.Errorf("%d busy, room %d", len(busy), room)
	}
}

func TestATroubledTargetGetsOneMessageAtATime(t *testing.T) {
	l := newWorker(&Queue{}, Webhook, nil)
	l.begin("a")
	if busy, room := l.busy(); len(busy) != 0 || room != maxFailing {
		t.Errorf("busy %v, room %d", busy, room)
	}
	l.end("a", false)
	l.begin("a")
	if busy, _ := l.busy(); !slices.Equal(busy, []string{"a"}) {
		t.Errorf("busy %v", busy)
	}
	l.end("a", true)
	for range maxToTarget {
		if busy, _ := l.busy(); len(busy) != 0 {
			t.Errorf("busy %v", busy)
		}
		l.begin("a")
	}
	if busy, _ := l.busy(); !slices.Equal(busy, []string{"a"}) {
		t.Errorf("busy %v", busy)
	}
}

func TestWhatIsSentAndWhatWaitsIsMeasured(t *testing.T) {
	b := start(t)
	registry := prometheus.NewRegistry()
	q := b.queue(func(o *Options) {
		o.Metrics, o.Poll, o.Pauses = registry, 2*time.Millisecond, []time.Duration{time.Hour}
	})
	s := newSender(func(_ context.Context, d Delivery) Outcome {
		return Outcome{Result: map[string]Result{"good": Done, "bad": Never, "later": Again}[d.Target]}
	})
	q.Handle(Webhook, s)
	b.run(q)
	b.inState(b.put(q, Message{Kind: Webhook, Target: "good", Event: "e", Payload: []byte("{}")}), store.MessageDone)
	b.inState(b.put(q, Message{Kind: Webhook, Target: "bad", Event: "e", Payload: []byte("{}")}), store.MessageFailed)
	later := b.put(q, Message{Kind: Webhook, Target: "later", Event: "e", Payload: []byte("{}")})
	wait.Until(t, "it was tried", func() bool { return b.row(later).Attempts == 1 && b.row(later).LeasedUntil.Year() == 1970 })
	b.exec("insert into deliveries (id, org_id, kind, target, event, payload, sealed, state, next_at, created_at) values ('l', 'o', 'letter', 'a', 'e', '', false, 'pending', now() - interval '1 minute', now() - interval '1 hour')")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var name strings.Builder
			name.WriteString(f.GetName())
			for _, l := range m.GetLabel() {
				name.WriteString(" " + l.GetValue())
			}
			got[name.String()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"sluice_deliveries_total webhook done": 1, "sluice_deliveries_total webhook failed": 1, "sluice_deliveries_total webhook again": 1,
		"sluice_delivery_seconds webhook": 3, "sluice_deliveries_pending webhook": 1, "sluice_deliveries_pending letter": 1, "sluice_deliveries_pending hook": 0,
		"sluice_deliveries_late_seconds webhook": 0,
	} {
		if have, there := got[name]; !there || have != want {
			t.Errorf("%s is %v, want %v", name, have, want)
		}
	}
	if late, old := got["sluice_deliveries_late_seconds letter"], got["sluice_deliveries_oldest_seconds letter"]; late < 59 || late > 120 || old < 3599 || old > 3700 {
		t.Errorf("the letter is %v s late and %v s old", late, old)
	}
}
