package keystore

import (
	"context"
	"slices"
	"sync"
)

// watchers are those who want to know of changes in this process.
type watchers struct {
	mu  sync.RWMutex
	all []*watcher
}

// A watcher passes changes on until it is closed.
type watcher struct {
	mu      sync.Mutex // serialises calls of changed
	changed func(keyHash string)
	closed  bool
}

func (w *watcher) tell(keyHash string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.changed(keyHash)
	}
}

func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// tell passes a change on to everyone, before the write that made it returns.
func (w *watchers) tell(keyHash string) {
	w.mu.RLock()
	all := w.all
	w.mu.RUnlock()
	for _, one := range all {
		one.tell(keyHash)
	}
}

func (w *watchers) watch(ctx context.Context, changed func(keyHash string)) error {
	one := &watcher{changed: changed}
	w.mu.Lock()
	w.all = append(slices.Clip(w.all), one) // tell may be walking the old slice
	w.mu.Unlock()
	one.tell("")
	<-ctx.Done()
	one.close()
	w.mu.Lock()
	w.all = slices.DeleteFunc(slices.Clone(w.all), func(other *watcher) bool { return other == one })
	w.mu.Unlock()
	return ctx.Err()
}
