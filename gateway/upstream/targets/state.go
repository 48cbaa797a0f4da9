package targets

import (
	"maps"
	"slices"
	"strings"
)

// Target is how a target of an API is.
type Target struct {
	API     string
	URL     string // without a query
	Up      bool   // it is called
	Ejected uint64 // times that it was left out because calls failed
}

// Breaker is how a circuit breaker of an API is.
type Breaker struct {
	API   string
	Path  string // of the calls that it is for; "" for all
	Open  bool   // calls are refused
	Trips uint64 // ever
}

// Targets returns how the targets are of all APIs in service that have several or
// have them checked, each once, in order.
func (c *Registry) Targets() []Target {
	all := make(map[[2]string]Target)
	for _, s := range c.inUse() {
		for _, g := range append(s.watched[:len(s.watched):len(s.watched)], s.group) {
			if g != nil {
				enter(all, s.api, g.States())
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Target) int {
		return strings.Compare(a.API+"\n"+a.URL, b.API+"\n"+b.URL)
	})
}

// enter adds the targets of a group. One that several versions call is up when all
// of them call it.
func enter(all map[[2]string]Target, api string, states []memberState) {
	for _, s := range states {
		key := [2]string{api, s.URL}
		t := Target{API: api, URL: s.URL, Up: !s.Down && !s.Ejected, Ejected: s.Times}
		if other, twice := all[key]; twice {
			t.Up, t.Ejected = t.Up && other.Up, t.Ejected+other.Ejected
		}
		all[key] = t
	}
}

func (c *Registry) inUse() []*shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.users))
}

// Breakers returns how the circuit breakers of all APIs in service are, each once,
// in order.
func (c *Registry) Breakers() []Breaker {
	c.mu.Lock()
	live := slices.Collect(maps.Keys(c.live))
	c.mu.Unlock()
	all, seen := make(map[[2]string]Breaker), make(map[*circuit]bool)
	for _, stage := range live {
		for _, circuit := range stage.circuits {
			if seen[circuit] {
				continue // that of all calls, which the versions share
			}
			seen[circuit] = true
			s := circuit.state()
			key := [2]string{stage.shared.api, s.Path}
			b := all[key]
			all[key] = Breaker{API: stage.shared.api, Path: s.Path, Open: b.Open || s.Open, Trips: b.Trips + s.Trips}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Breaker) int {
		return strings.Compare(a.API+"\n"+a.Path, b.API+"\n"+b.Path)
	})
}
