package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/sluicegate/sluice/internal/usage"
)

// ledger is an admin that counts each batch once, with faults that tests set.
type ledger struct {
	mu      sync.Mutex
	last    map[string]int64
	hits    int64
	records int // of refusals
	tries   int
	away    bool  // no batch arrives
	deaf    bool  // batches are counted, but the answers are lost
	refuses error // every batch is refused
	picky   bool  // batches with a row of the key "bad" are refused whole, as an older admin does
	slow    time.Duration
}

func (l *ledger) Receive(ctx context.Context, b *usage.Batch) (usage.Receipt, error) {
	if l.slow > 0 && sleep.For(ctx, l.slow) != nil {
		return usage.Receipt{}, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	switch {
	case l.away:
		return usage.Receipt{}, errors.New("connection refused")
	case l.refuses != nil:
		return usage.Receipt{}, &RefusedError{l.refuses}
	case l.picky && slices.ContainsFunc(b.Rows, func(r usage.Row) bool { return r.Key == "bad" }):
		return usage.Receipt{}, &RefusedError{errors.New("a row is bad")}
	}
	b, refused, err := b.Sift()
	if err != nil {
		return refused, &RefusedError{err}
	}
	if l.last == nil {
		l.last = make(map[string]int64)
	}
	if from := b.Gateway + b.Boot; b.Sequence > l.last[from] {
		l.last[from] = b.Sequence
		for _, r := range b.Rows {
			l.hits += r.Hits
		}
		l.records += len(b.Refusals)
	}
	if l.deaf {
		return usage.Receipt{}, errors.New("the answer was lost")
	}
	return refused, nil
}

func (l *ledger) set(change func(*ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *ledger) counted() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits
}

// scene is a gateway that ships to a ledger.
type scene struct {
	calls  *Calls
	api    *APICalls
	admin  *ledger
	sender *Sender
	stop   func()
}

func open(t *testing.T, every time.Duration, change ...func(*SenderOptions)) *scene {
	s := &scene{calls: NewCalls(), api: NewAPICalls("shop", "org", new(histogram).read), admin: &ledger{}}
	o := SenderOptions{Calls: s.calls, To: s.admin, Gateway: "gw", Every: every, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	s.sender = NewSender(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.sender.Run(ctx); close(done) }()
	s.stop = func() { cancel(); <-done }
	return s
}

func (s *scene) call(key string, times int) {
	for range times {
		s.calls.Count(&Call{API: s.api, Key: key, Status: 200, End: time.Now(), Total: time.Millisecond})
	}
}

func TestCallsAreShippedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 10*time.Second)
		defer s.stop()
		for i := range 20 {
			s.call(fmt.Sprint("key", i), 3)
			time.Sleep(10 * time.Second)
			if got := s.admin.counted(); got != int64(3*(i+1)) {
				t.Fatalf("%d calls after %d rounds", got, i+1)
			}
		}
		if st := s.sender.Stats(); st.Delivered != 60 || st.Waiting != 0 || st.Lag > 10*time.Second {
			t.Errorf("%+v", st)
		}
	})
}

func TestAnAdminThatWasAwayGetsEverythingOnce(t *testing.T) {
	for name, outage := range map[string]func(*ledger, bool){
		"nothing arrives":     func(l *ledger, on bool) { l.away = on },
		"answers do not come": func(l *ledger, on bool) { l.deaf = on },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, 10*time.Second)
				defer s.stop()
				s.admin.set(func(l *ledger) { outage(l, true) })
				for i := range 30 {
					s.call(fmt.Sprint("key", i%3), 1)
					time.Sleep(9 * time.Second)
				}
				if st := s.sender.Stats(); st.Delivered != 0 || st.Waiting == 0 || st.Lag < 4*time.Minute {
					t.Errorf("while it is away: %+v", st)
				}
				s.admin.set(func(l *ledger) { outage(l, false) })
				time.Sleep(maxPause + 10*time.Second)
				if got := s.admin.counted(); got != 30 {
					t.Errorf("%d calls, want 30", got)
				}
				if st := s.sender.Stats(); st.Delivered != 30 || st.Waiting != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// keeper has refusals to hand over.
type keeper struct {
	mu   sync.Mutex
	kept []usage.Refusal
}

func (k *keeper) keep(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range n {
		k.kept = append(k.kept, usage.Refusal{ID: fmt.Sprint("id", i), At: time.Now(), Org: "org", API: "shop", Key: fmt.Sprint("key", i), Status: 429, Reason: "rate_limit", Path: "/orders"})
	}
}

func (k *keeper) Take(each func(usage.Refusal)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.kept {
		each(r)
	}
	k.kept = nil
}

func (k *keeper) Lost() uint64 { return 3 }

func TestRefusalsAreShippedOnceAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := new(keeper)
		s := open(t, 10*time.Second, func(o *SenderOptions) { o.Refusals = kept })
		defer s.stop()
		kept.keep(2*usage.MaxRefusals + 7) // and no calls beside them
		time.Sleep(10 * time.Second)
		s.admin.set(func(l *ledger) {
			if l.records != 2*usage.MaxRefusals+7 || l.tries != 3 {
				t.Errorf("%d refusals in %d batches", l.records, l.tries)
			}
			l.records, l.deaf = 0, true
		})
		kept.keep(10 * usage.MaxRefusals) // more than wait
		time.Sleep(time.Minute)
		s.admin.set(func(l *ledger) { l.deaf = false })
		time.Sleep(maxPause + 10*time.Second)
		st := s.sender.Stats()
		s.admin.set(func(l *ledger) {
			if l.records == 0 || uint64(l.records)+st.Forgotten != 10*usage.MaxRefusals+3 || l.records > maxRefusals {
				t.Errorf("%d refusals arrived, %d were forgotten", l.records, st.Forgotten)
			}
		})
	})
}

func TestAnAdminThatDoesNotAnswerDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 10*time.Second)
		s.admin.slow = time.Hour
		s.call("key", 1)
		time.Sleep(time.Minute)
		if st := s.sender.Stats(); st.Delivered != 0 || st.Waiting != 1 {
			t.Errorf("%+v", st)
		}
		began := time.Now()
		s.stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("the stop took %v", took)
		}
	})
}

func TestFinishShipsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 10*time.Second)
		s.call("key", 7)
		s.stop()
		s.admin.set(func(l *ledger) { l.away = true })
		time.AfterFunc(time.Second, func() { s.admin.set(func(l *ledger) { l.away = false }) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s.sender.Finish(ctx)
		if got := s.admin.counted(); got != 7 {
			t.Errorf("%d calls, want 7", got)
		}
	})
}

func TestARefusedBatchIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 10*time.Second)
		defer s.stop()
		s.admin.set(func(l *ledger) { l.refuses = errors.New("no") })
		s.call("key", 7)
		time.Sleep(time.Minute)
		s.admin.set(func(l *ledger) { l.refuses = nil })
		s.call("key", 5)
		time.Sleep(10 * time.Second)
		if st := s.sender.Stats(); st.Refused != 7 || st.Delivered != 5 || s.admin.counted() != 5 {
			t.Errorf("%+v, %d counted", st, s.admin.counted())
		}
	})
}

// TestARowThatIsRefusedTakesNoOthersWithIt has an admin that refuses whole batches for
// one row, as an older one does, or names the row.
func TestARowThatIsRefusedTakesNoOthersWithIt(t *testing.T) {
	long := strings.Repeat("x", usage.MaxText+1)
	for _, bad := range []string{"bad", long} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 10*time.Second)
			defer s.stop()
			s.admin.set(func(l *ledger) { l.picky = true })
			s.call(bad, 7)
			for i := range 2 * usage.MaxRows {
				s.call(fmt.Sprint("key", i), 1)
			}
			time.Sleep(20 * time.Second)
			if st := s.sender.Stats(); st.Refused != 7 || st.Delivered != 2*usage.MaxRows || st.Waiting != 0 || s.admin.counted() != 2*usage.MaxRows {
				t.Errorf("%+v, %d counted", st, s.admin.counted())
			}
		})
	}
}

// TestAnAdminThatRefusesEverythingIsNotStormed has an admin that takes no batch at all,
// whatever it holds: nearly everything waits until it does.
func TestAnAdminThatRefusesEverythingIsNotStormed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 10*time.Second)
		defer s.stop()
		s.admin.set(func(l *ledger) { l.refuses = errors.New("no") })
		for i := range usage.MaxRows {
			s.call(fmt.Sprint("key", i), 1)
		}
		time.Sleep(time.Minute)
		// With the shortest pauses, 11 attempts follow one, and 7 the end of a period.
		const attempts = 11 + 7
		s.admin.set(func(l *ledger) {
			if l.tries > attempts*maxRefused {
				t.Errorf("%d batches in a minute", l.tries)
			}
			l.refuses = nil
		})
		time.Sleep(20 * time.Second)
		st := s.sender.Stats()
		if st.Refused+st.Delivered != usage.MaxRows || st.Waiting != 0 || st.Delivered < usage.MaxRows*9/10 || uint64(s.admin.counted()) != st.Delivered {
			t.Errorf("%+v, %d counted", st, s.admin.counted())
		}
	})
}

func TestManyRowsAreShippedInSeveralBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 10*time.Second)
		defer s.stop()
		for i := range 2*usage.MaxRows + 1 {
			s.call(fmt.Sprint("key", i), 1)
		}
		time.Sleep(10 * time.Second)
		if got := s.admin.counted(); got != 2*usage.MaxRows+1 || s.admin.tries != 3 {
			t.Errorf("%d calls in %d batches", got, s.admin.tries)
		}
	})
}

func TestWaitingRowsBecomeCoarserAndNoCallIsLost(t *testing.T) {
	p := newPending(100)
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Unix()
	const minutes, keys = 5 * 24 * 60, 20
	for m := range int64(minutes) {
		for k := range keys {
			p.addRow(usage.Row{Minute: start + 60*m, API: "a", Key: fmt.Sprint("key", k), Status: 200, Hits: 1, Total: 2, Upstream: 1})
		}
		p.addRow(usage.Row{Minute: start + 60*m, API: "a", Status: 404, Hits: 1})
		p.addLatency(usage.Latency{Minute: start + 60*m, API: "a", Counts: usage.Latencies{3: 1}})
		if m == 40 && p.level != 1 {
			t.Errorf("level %d after 40 minutes: keys are given up before minutes", p.level)
		}
		if p.len() > 100 {
			t.Fatalf("%d rows wait", p.len())
		}
	}
	next := p.take()
	rows, latencies := next.rows, next.latencies
	var hits, total, slow int64
	for _, r := range rows {
		hits, total = hits+r.Hits, total+r.Total
		if r.Key != "" && r.Key != usage.Other || r.Minute%60 != 0 {
			t.Errorf("%+v", r)
		}
	}
	for _, l := range latencies {
		slow += l.Counts[3]
	}
	if hits != minutes*(keys+1) || total != minutes*keys*2 || slow != minutes {
		t.Errorf("%d calls, %d us, %d latencies", hits, total, slow)
	}
	if p.len() != 0 || p.level != 0 || p.merged == 0 {
		t.Errorf("%d rows are left, level %d, %d merged", p.len(), p.level, p.merged)
	}
}

func TestARemoteAdminIsSentJSONAndItsStatusDecides(t *testing.T) {
	status, answer := http.StatusOK, "so it is"
	var got usage.Batch
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/gateway/usage" || r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer)) // the client's side checks it
	}))
	defer server.Close()
	remote := NewRemote(server.URL+"/", secret.New("token"), nil)
	b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: 3, Rows: []usage.Row{{Minute: 60, API: "a", Status: 200, Hits: 2}}}
	if _, err := remote.Receive(t.Context(), b); err != nil || got.Sequence != 3 || len(got.Rows) != 1 || got.Rows[0] != b.Rows[0] {
		t.Errorf("%v, %+v", err, got)
	}
	answer = `{"Status":"OK","Meta":{"refused":2,"refused_calls":9,"faults":["rows[0].api must not be empty"]}}`
	if refused, err := remote.Receive(t.Context(), b); err != nil || refused.Refused != 2 || refused.Calls != 9 || len(refused.Faults) != 1 {
		t.Errorf("%v, %+v", err, refused)
	}
	answer = "so it is"
	for _, c := range []struct {
		status  int
		forever bool
	}{{400, true}, {413, true}, {401, false}, {403, false}, {404, false}, {503, false}, {302, false}} {
		status = c.status
		_, err := remote.Receive(t.Context(), b)
		if _, refused := errors.AsType[*RefusedError](err); err == nil || refused != c.forever || !strings.Contains(err.Error(), "so it is") {
			t.Errorf("%d: %v", c.status, err)
		}
	}
}
