package stream

import "sync"

// A Demand says whether messages can be taken. It is a level, not a count.
type Demand struct {
	mu       sync.Mutex
	on       bool
	watchers []*watcher
}

type watcher struct{ changed func(on bool) }

// NewDemand returns a demand.
func NewDemand(on bool) *Demand { return &Demand{on: on} }

// On reports whether messages can be taken.
func (d *Demand) On() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.on
}

// Set sets the level. Watchers are called if it has changed, in order, one change after
// the other.
func (d *Demand) Set(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on == on {
		return
	}
	d.on = on
	for _, w := range d.watchers {
		w.changed(on)
	}
}

// Watch has changed called with the level now and after each change, until stop is called.
// changed does not block and does not use the demand.
func (d *Demand) Watch(changed func(on bool)) (stop func()) {
	w := &watcher{changed}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchers = append(d.watchers, w)
	changed(d.on)
	return func() { d.forget(w) }
}

func (d *Demand) forget(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, one := range d.watchers {
		if one == w {
			d.watchers = append(d.watchers[:i:i], d.watchers[i+1:]...)
			return
		}
	}
}

// All returns a demand that is on while all of several are; it is on for none.
func All(of ...*Demand) *Demand { return combined(of, func(on, all int) bool { return on == all }) }

// Any returns a demand that is on while one of several is.
func Any(of ...*Demand) *Demand { return combined(of, func(on, _ int) bool { return on > 0 }) }

func combined(of []*Demand, level func(on, all int) bool) *Demand {
	if len(of) == 1 {
		return of[0]
	}
	var mu sync.Mutex
	d, on := NewDemand(level(0, len(of))), 0
	for _, one := range of {
		was := false
		one.Watch(func(is bool) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case is && !was:
				on++
			case was && !is:
				on--
			}
			was = is
			d.Set(level(on, len(of)))
		})
	}
	return d
}
