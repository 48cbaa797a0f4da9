package admin

import (
	"sync"
	"time"
)

// heldFor is how long what gateways answered is held in memory: any number of pages that
// stay open cost one question a second.
const heldFor = time.Second

// maxHeld bounds the answers that are held.
const maxHeld = 100

// A heldLists holds what questions to gateways came to, by their text.
type heldLists[T any] struct {
	mu   sync.Mutex
	held map[string]*heldList[T]
}

// heldList is one list. Who reads it holds the lock.
type heldList[T any] struct {
	mu   sync.Mutex
	at   time.Time
	list *T
}

// forget drops all lists: what they show has changed.
func (l *heldLists[T]) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = nil
}

// of returns the list of a question, at most a second old. It is shared, and not changed.
func (l *heldLists[T]) of(question string, ask func() (*T, error)) (*T, error) {
	l.mu.Lock()
	if len(l.held) >= maxHeld || l.held == nil {
		l.held = make(map[string]*heldList[T])
	}
	h := l.held[question]
	if h == nil {
		h = new(heldList[T])
		l.held[question] = h
	}
	l.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.list != nil && time.Since(h.at) < heldFor {
		return h.list, nil
	}
	list, err := ask()
	if err == nil {
		h.at, h.list = time.Now(), list
	}
	return list, err
}
