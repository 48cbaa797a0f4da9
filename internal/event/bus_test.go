package event

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type recorder struct{ got []Event }

func (r *recorder) Handle(e Event) { r.got = append(r.got, e) }

func TestEventsReachEverySinkInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &recorder{}, &recorder{}
		bus := NewBus(10, first, second)
		ctx, cancel := context.WithCancel(t.Context())
		go bus.Run(ctx)
		for _, name := range []Name{AuthFailure, QuotaExceeded, KeyExpired} {
			bus.Raise(Event{Name: name})
		}
		synctest.Wait()
		cancel()
		for _, r := range []*recorder{first, second} {
			if len(r.got) != 3 || r.got[0].Name != AuthFailure || r.got[2].Name != KeyExpired {
				t.Errorf("got %v", r.got)
			}
		}
	})
}

func TestWhatIsQueuedAtTheEndIsDelivered(t *testing.T) {
	sink := &recorder{}
	bus := NewBus(10, sink)
	for range 7 {
		bus.Raise(Event{Name: AuthFailure})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bus.Run(ctx)
	if len(sink.got) != 7 {
		t.Errorf("%d of 7 delivered", len(sink.got))
	}
}

func TestRaisingNeverWaitsAndCountsWhatItDrops(t *testing.T) {
	bus := NewBus(2)
	for range 5 {
		bus.Raise(Event{Name: AuthFailure})
	}
	if bus.Dropped() != 3 {
		t.Errorf("dropped %d, want 3", bus.Dropped())
	}
	if n := testing.AllocsPerRun(100, func() { bus.Raise(Event{Name: AuthFailure, API: "a"}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLogSinkBoundsItsLinesAndSaysHowManyAreMissing(t *testing.T) {
	var out bytes.Buffer
	sink := NewLogSink(slog.New(slog.NewJSONHandler(&out, nil)))
	at := time.Unix(1000, 0)
	for range 100 {
		sink.Handle(Event{Name: QuotaExceeded, At: at, API: "sample", Key: "0123456789ab"})
	}
	sink.Handle(Event{Name: AuthFailure, At: at})
	if n := strings.Count(out.String(), "\n"); n != perSecond+1 {
		t.Fatalf("%d lines, want %d", n, perSecond+1)
	}
	out.Reset()
	sink.Handle(Event{Name: QuotaExceeded, At: at.Add(time.Second), API: "sample", Key: "0123456789ab"})
	var line struct {
		Event, API, Key, Detail string
		Omitted                 int
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Event != "QuotaExceeded" || line.API != "sample" || line.Key != "0123456789ab" || line.Omitted != 95 {
		t.Errorf("got %+v", line)
	}
}

func BenchmarkRaise(b *testing.B) {
	bus := NewBus(1)
	b.ReportAllocs()
	for b.Loop() {
		bus.Raise(Event{Name: AuthFailure, API: "sample", Key: "0123456789ab"})
	}
}
