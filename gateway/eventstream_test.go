package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/wire"
)

func newEventStream(left *atomic.Bool) *eventStream {
	g := new(Gateway)
	s := &eventStream{gateway: g, client: wire.ClientUntil(left), release: func() {}, wake: make(chan struct{}, 1), timer: time.NewTimer(eventLook)}
	s.most, s.sub = 1<<20, g.newSubscription(s)
	return s
}

// What waits when a client leaves is neither counted nor passed on.
func TestEventsThatWaitForAClientThatHasLeft(t *testing.T) {
	m := &metered{busy: true, waiting: []waitingEvent{{text: []byte("{}")}}, last: func() { t.Error("the results end") }}
	m.gone, m.left = context.WithCancel(context.Background())
	m.left()
	if event, last := m.next(); event.text != nil || last != nil || m.busy {
		t.Errorf("%s is next, the end is: %t, the goroutine goes on: %t", event.text, last != nil, m.busy)
	}
}

// Behind twelve seconds of silence comes a comment, and a client that has left is noticed
// before that.
func TestSilentEventStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Bool
		s := newEventStream(&left)
		began, p := time.Now(), make([]byte, 100)
		for _, want := range []time.Duration{12, 24, 36} {
			n, err := s.Read(p)
			if took := time.Since(began); err != nil || string(p[:n]) != ":\n" || took != want*time.Second {
				t.Errorf("%q, %v after %v, want a comment after %d s", p[:n], err, took, want)
			}
		}
		s.Next([]byte(`{}`))
		if n, err := s.Read(p); err != nil || string(p[:n]) != "event: next\ndata: {}\n\n" || time.Since(began) != 36*time.Second {
			t.Errorf("%q, %v", p[:n], err)
		}
		left.Store(true)
		if n, err := s.Read(p); n != 0 || err != errClientLeft || time.Since(began) != 38*time.Second {
			t.Errorf("%q, %v, after %v", p[:n], err, time.Since(began))
		}
		_ = s.Close()
		s.Next([]byte(`{}`)) // nobody reads it
		if len(s.waiting) != 0 {
			t.Errorf("%q waits", s.waiting)
		}
	})
}

// The queue gives back what it holds, whatever the sizes of reads.
func TestEventQueue(t *testing.T) {
	q := eventQueue{most: 1 << 20}
	var got []byte
	p := make([]byte, 7)
	for i := range 1000 {
		q.Next([]byte(`{"a":"` + strings.Repeat("x", i%50) + `"}`))
		for range i % 11 {
			n, _ := q.take(p)
			got = append(got, p[:n]...)
		}
	}
	q.Complete()
	for over, n := false, 1; n > 0 || !over; {
		n, over = q.take(p)
		got = append(got, p[:n]...)
	}
	sink := new(collected)
	if err := live.Events(bytes.NewReader(got), sink); err != nil || len(sink.results) != 1000 || !sink.over {
		t.Errorf("%v, %d results, over: %v", err, len(sink.results), sink.over)
	}
	if n, over := q.take(p); n != 0 || !over {
		t.Errorf("%d bytes behind the end", n)
	}
}

// collected is a live.Sink.
type collected struct {
	results [][]byte
	over    bool
}

func (c *collected) Next(result []byte) { c.results = append(c.results, bytes.Clone(result)) }
func (c *collected) Fail([]byte)        { c.over = true }
func (c *collected) Complete()          { c.over = true }

// What one upstream streams can be read from our own stream, and is the same.
func FuzzEventsPassedOn(f *testing.F) {
	f.Add([]byte("event: next\r\ndata: {\"data\":\ndata: 1}\n\nevent: complete\n\n"))
	f.Add([]byte("data: {}\r\rdata:{\"a\":\"\\n\"}\n\n"))
	f.Add([]byte(": c\nid: 1\nretry: 5\nevent: error\ndata: {}\n\nevent:next\ndata\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var direct, again collected
		q := eventQueue{most: 1 << 30}
		if live.Events(bytes.NewReader(text), &direct) != nil {
			return
		}
		if err := live.Events(bytes.NewReader(text), &q); err != nil {
			t.Fatal(err)
		}
		if err := live.Events(io.LimitReader(bytes.NewReader(q.waiting), 1<<30), &again); err != nil || len(again.results) != len(direct.results) || !again.over {
			t.Fatalf("%v: %q of %q", err, again.results, direct.results)
		}
		for i, one := range direct.results {
			if got, want := compact(t, again.results[i]), compact(t, one); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

func compact(t *testing.T, text []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return b.String()
}
