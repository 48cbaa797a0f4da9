package keystore

import (
	"context"
	"slices"
	"sync"
)

// watchers are notified of changes in this process.
type watchers struct {
	mu  sync.RWMutex
	all []*watcher
}

// A watcher calls changed until it is closed.
type watcher struct {
	mu      sync.Mutex // serializes calls of changed
	changed func(keyHash string)
	closed  bool
}

func (w *watcher) notify(keyHash string) {
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

// notify notifies all watchers, before the write returns.
func (w *watchers) notify(keyHash string) {
	w.mu.RLock()
	all := w.all
	w.mu.RUnlock()
	for _, one := range all {
		one.notify(keyHash)
	}
}

func (w *watchers) watch(ctx context.Context, changed func(keyHash string)) error {
	one := &watcher{changed: changed}
	w.add(one)
	defer w.remove(one)
	one.notify("")
	<-ctx.Done()
	return ctx.Err()
}

func (w *watchers) add(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(slices.Clip(w.all), one) // notify may be reading the old slice
}

// remove closes a watcher and removes it.
func (w *watchers) remove(one *watcher) {
	one.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.DeleteFunc(slices.Clone(w.all), func(other *watcher) bool { return other == one })
}
