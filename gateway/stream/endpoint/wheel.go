package endpoint

import (
	"math/rand/v2"
	"sync"
	"time"
)

// turns is into how many parts a wheel divides the time between two beats of a client.
const turns = 16

// A wheel sends the heartbeats of many clients with one timer. Each has a part of the time
// that is drawn, so that they do not all come at once. An empty wheel has no timer.
type wheel struct {
	every time.Duration // between two beats of a client

	mu    sync.Mutex
	parts [turns]map[beater]struct{}
	next  int
	size  int
	timer *time.Timer
}

// A beater sends something from time to time. beat does not wait.
type beater interface{ beat() }

// add adds b and returns what removes it.
func (w *wheel) add(b beater) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	part := rand.IntN(turns)
	if w.parts[part] == nil {
		w.parts[part] = make(map[beater]struct{})
	}
	w.parts[part][b] = struct{}{}
	if w.size++; w.size == 1 {
		w.timer = time.AfterFunc(w.every/turns, w.turn)
	}
	return func() { w.remove(part, b) }
}

func (w *wheel) remove(part int, b beater) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.parts[part], b)
	if w.size--; w.size == 0 {
		w.timer.Stop()
		w.timer = nil
	}
}

// turn has the clients of the next part beat.
func (w *wheel) turn() {
	w.mu.Lock()
	var due []beater
	for b := range w.parts[w.next] {
		due = append(due, b)
	}
	w.next = (w.next + 1) % turns
	if w.timer != nil {
		w.timer.Reset(w.every / turns)
	}
	w.mu.Unlock()
	for _, b := range due {
		b.beat()
	}
}
