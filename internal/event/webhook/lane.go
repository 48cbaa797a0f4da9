package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A message is on its way to a hook.
type message struct {
	hook *Hook
	body []byte
}

// identity is what makes two messages the same.
func (m *message) identity() []byte {
	return append([]byte(m.hook.Method+" "+m.hook.URL+"\n"), m.body...)
}

// A lane takes messages to one service, one after the other, so that one which
// hangs holds up no other.
type lane struct{ queue chan *message }

// enqueue puts a message into its service's lane, and reports whether there was
// room.
func (s *Sender) enqueue(m *message) bool {
	place := m.hook.place()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	l := s.lanes[place]
	if l == nil {
		if len(s.lanes) >= maxLanes {
			return false
		}
		l = &lane{queue: make(chan *message, s.opts.Queue)}
		s.lanes[place] = l
		s.busy.Go(func() { s.serve(place, l) })
	}
	select {
	case l.queue <- m:
		return true
	default:
		return false
	}
}

// idleLane is how long a lane without messages is kept.
const idleLane = time.Minute

// serve sends what comes through a lane until that has been idle for a while.
func (s *Sender) serve(place string, l *lane) {
	idle := time.NewTimer(idleLane)
	defer idle.Stop()
	for {
		select {
		case m, ok := <-l.queue:
			if !ok {
				return
			}
			if s.cut.Load() {
				s.dropped.Add(1)
				continue
			}
			s.deliver(m)
			idle.Reset(idleLane)
		case <-idle.C:
			if s.leave(place, l) {
				return
			}
			idle.Reset(idleLane)
		}
	}
}

// leave takes an empty lane away.
func (s *Sender) leave(place string, l *lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.queue) > 0 || s.over {
		return false
	}
	delete(s.lanes, place)
	return true
}

// deliver tries to send a message until it is taken or there is no use in it.
func (s *Sender) deliver(m *message) {
	var err error
	for try := 0; ; try++ {
		var again bool
		if again, err = s.post(m); err == nil {
			s.sent.Add(1)
			return
		}
		if !again || try == len(s.opts.Pauses) || !s.pause(s.opts.Pauses[try]) {
			break
		}
	}
	s.failed.Add(1)
	s.opts.Log.Warn("a webhook took no message", "url", m.hook.place(), "err", err)
}

// pause waits for half of d and a part of the other half, and reports whether
// another try may follow.
func (s *Sender) pause(d time.Duration) bool {
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ended:
		return false
	}
}

// maxAnswer is how much is read of an answer so that its connection can be used
// again, in bytes.
const maxAnswer = 64 << 10

// post sends a message once. again reports whether another try may help.
func (s *Sender) post(m *message) (again bool, err error) {
	req, err := http.NewRequestWithContext(context.Background(), m.hook.Method, m.hook.URL, bytes.NewReader(m.body))
	if err != nil {
		return false, errors.New("its address cannot be read")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sluice")
	for name, value := range m.hook.Header {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return true, errors.Unwrap(err) // without the address
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil
	default:
		return code == http.StatusTooManyRequests || code >= 500, fmt.Errorf("it answers %s", resp.Status)
	}
}

// maxRecent is how many messages are remembered for their cool-down.
const maxRecent = 10_000

// recent knows which messages were sent not long ago.
type recent struct {
	mu    sync.Mutex
	until map[[32]byte]time.Time
	swept time.Time // when those were last looked for that are over
}

func newRecent() *recent { return &recent{until: make(map[[32]byte]time.Time)} }

// first reports whether a message was not sent within its cool-down, and remembers
// it. When too many are remembered, the message is sent.
func (r *recent) first(id [32]byte, now time.Time, cooldown time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until, there := r.until[id]; there && now.Before(until) {
		return false
	}
	if len(r.until) >= maxRecent && now.Sub(r.swept) >= time.Second { // not for each of a flood
		r.swept = now
		for id, until := range r.until {
			if !now.Before(until) {
				delete(r.until, id)
			}
		}
	}
	if len(r.until) < maxRecent {
		r.until[id] = now.Add(cooldown)
	}
	return true
}
