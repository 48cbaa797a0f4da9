// Package targets compiles the stage that calls an API's upstream: circuit breakers,
// which refuse calls after too many failed; timeouts by path; and load balancing over
// several targets, of which those are left out that fail or do not pass their health
// checks.
package targets

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"weak"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// Options is what holds for the calls of all APIs.
type Options struct {
	Pools    *upstream.Pools
	Upstream upstream.Config
	Raise    func(event.Event) // takes events about targets and breakers; must not wait
}

// Registry makes the stages that call upstreams, and knows how their targets are. It
// is safe for concurrent use.
type Registry struct {
	opts    Options
	files   upstream.Files
	checker *checker

	mu    sync.Mutex
	known map[weak.Pointer[definition.API]]*shared
	live  map[*Stage]bool      // in service
	users map[*shared]int      // how many of live have it
	same  map[[16]byte]*shared // of users, by what they were made of
}

// New returns what makes stages. Run makes checks of targets.
func New(o Options) *Registry {
	return &Registry{
		opts: o, checker: newChecker(),
		known: make(map[weak.Pointer[definition.API]]*shared), live: make(map[*Stage]bool), users: make(map[*shared]int), same: make(map[[16]byte]*shared),
	}
}

// Run checks targets until ctx ends.
func (c *Registry) Run(ctx context.Context) { c.checker.Run(ctx) }

// of returns what the versions of a definition have in common.
func (c *Registry) of(def *definition.API) (*shared, error) {
	if !def.HasUpstreamRules() {
		return &shared{api: def.ID, urls: []target{{def.Proxy.TargetURL, ownTarget}}}, nil // as of most APIs, of which there may be very many
	}
	key := weak.Make(def)
	c.mu.Lock()
	found := c.known[key]
	c.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made, err := c.share(def)
	if err != nil || made.plain() {
		return made, err
	}
	made.hash = hashOf(def)
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.known[key]; found != nil {
		return found, nil
	}
	// A change of something else does not make a target well that was not, nor close
	// a breaker.
	if served := c.same[made.hash]; served != nil {
		made = served
	}
	c.known[key] = made
	runtime.AddCleanup(def, c.forget, key)
	return made, nil
}

func (c *Registry) forget(key weak.Pointer[definition.API]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, key)
}

// Compile makes the stage that calls the upstream of one version of an API;
// version may be nil. Versions for which def is the same share what is known of
// its targets. The error names the field that is wrong.
func (c *Registry) Compile(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	s, err := c.of(def)
	if err != nil {
		return nil, err
	}
	stage, err := c.timed(s, def, version.Timeouts())
	if err != nil {
		return nil, err
	}
	byPath, circuits, err := c.circuits(s, version.Breakers())
	if err != nil {
		return nil, err
	}
	if len(circuits) > 0 {
		stage = newBreaker(stage, s.breaker, byPath)
	}
	if s.plain() && len(circuits) == 0 {
		return stage, nil
	}
	return &Stage{Stage: stage, shared: s, circuits: circuits}, nil
}

// circuits makes the breakers of certain calls, and returns them with that of all
// calls, if there is one.
func (c *Registry) circuits(s *shared, rules []definition.BreakerRule) (*match.Endpoints[*circuit], []*circuit, error) {
	var all []*circuit
	if s.breaker != nil {
		all = append(all, s.breaker)
	}
	if len(rules) == 0 {
		return nil, all, nil
	}
	list := make([]match.Endpoint[*circuit], len(rules))
	for i, r := range rules {
		one := newCircuit(r.Breaker, s.api, r.Path, c.opts.Raise)
		all = append(all, one)
		list[i] = match.Endpoint[*circuit]{Path: r.Path, Method: r.Method, Options: match.PatternOptions{IgnoreCase: r.IgnoreCase}, Value: one}
	}
	byPath, err := match.CompileEndpoints(list)
	if err != nil {
		return nil, nil, fmt.Errorf("extended_paths.circuit_breakers%w", err)
	}
	return byPath, all, nil
}

// Swap records APIs that came into service and APIs that left it, each once. Targets
// are checked as long as an API in service has them.
func (c *Registry) Swap(came, gone []*pipeline.API) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range stagesOf(came) {
		c.live[s] = true
		if c.users[s.shared]++; c.users[s.shared] == 1 {
			c.same[s.shared.hash] = s.shared
			for _, t := range s.shared.tasks {
				c.checker.Add(t)
			}
		}
	}
	for _, s := range stagesOf(gone) {
		if !c.live[s] {
			continue
		}
		delete(c.live, s)
		if c.users[s.shared]--; c.users[s.shared] == 0 {
			delete(c.users, s.shared)
			if c.same[s.shared.hash] == s.shared {
				delete(c.same, s.shared.hash)
			}
			for _, t := range s.shared.tasks {
				c.checker.Remove(t)
			}
		}
	}
}

func stagesOf(apis []*pipeline.API) []*Stage {
	var all []*Stage
	for _, api := range apis {
		for _, v := range api.Versions {
			pipeline.Visit(v.Upstream, func(stage pipeline.Stage) {
				if s, ok := stage.(*Stage); ok {
					all = append(all, s)
				}
			})
		}
	}
	return all
}

// Aside returns a registry whose stages use the connections of pools and share nothing
// with those of c. Unless it is run and swapped, its targets are neither checked nor reported.
func (c *Registry) Aside(pools *upstream.Pools) *Registry {
	o := c.opts
	o.Pools = pools
	return New(o)
}
