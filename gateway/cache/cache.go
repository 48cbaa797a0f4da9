// Package cache keeps answers of upstreams to GET and HEAD and gives them to later
// calls, within a bound in bytes for all APIs together.
//
// What one caller was told is never told another by accident: answers are kept by
// key, and by the credentials that the upstream sees, unless the definition says
// that they are the same for all. An answer that says of itself that it is for one
// caller, or sets a cookie, is not kept at all.
package cache

import (
	"hash/maphash"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/graphql/cache"
	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/caching"
)

// Options is what holds for the answers of all APIs.
type Options struct {
	MaxBytes int           // for everything that is kept; 0: nothing is
	MaxBody  int           // bytes of a body; answers with larger ones are not kept
	Patience time.Duration // how long a call waits for another one that asks the same
}

// Cache keeps answers. It is safe for concurrent use.
type Cache struct {
	opts  Options
	kept  *cache.Cache[answer]
	epoch time.Time
	seeds [2]maphash.Seed // of hashes that stand for credentials

	owners atomic.Uint64 // the last one given
	hits   atomic.Uint64
	misses atomic.Uint64
	shared atomic.Uint64

	mu   sync.Mutex
	live map[string][]*Stage // by API id
}

// New returns an empty cache.
func New(o Options) *Cache {
	c := &Cache{opts: o, epoch: time.Now(), live: make(map[string][]*Stage)}
	c.kept = cache.New[answer](o.MaxBytes)
	for i := range c.seeds {
		c.seeds[i] = maphash.MakeSeed()
	}
	return c
}

// now is the time by the cache's clock.
func (c *Cache) now(at time.Time) time.Duration { return at.Sub(c.epoch) }

// Stage answers calls with what is kept, and has other calls that ask the same wait
// for the one that goes up. It is made for one version of an API.
type Stage struct {
	cache *Cache
	opts  *caching.Options
	usual rule
	rules *match.Endpoints[*rule] // nil: every call has the usual one
	own   bool                    // answers are kept by key
	names names                   // of headers that the key has, beside those known to everybody
	owner atomic.Uint64           // of what is kept

	onward []*pipeline.Ref // APIs that calls go on to, by Outgoing.Elsewhere; nil: upstreams alone are called

	mu      sync.Mutex
	flights map[string]*flight // by what they ask for
}

// rule is how the answers to some calls are kept.
type rule struct {
	lifetime time.Duration
	codes    []int
	path     string // for people; "" for all
}

// usualCodes are kept where nothing else is said: answers that hold for a while by
// their nature.
var usualCodes = []int{200, 203, 204, 300, 301, 308, 410}

// Compile returns the stage for a version of an API, which may be nil, or nil when
// its answers are not kept. The error names the field that is wrong.
func (c *Cache) Compile(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	s, err := c.compile(def, version)
	if s == nil {
		return nil, err
	}
	return s, nil
}

func (c *Cache) compile(def *definition.API, version *definition.Version) (*Stage, error) {
	opts, err := def.Caching()
	if err != nil || opts == nil || c.opts.MaxBytes == 0 {
		return nil, err
	}
	rules, err := version.CachingRules()
	if err != nil {
		return nil, err
	}
	if len(rules) == 0 && !opts.AllSafe {
		return nil, nil
	}
	for i, name := range opts.ByHeaders {
		opts.ByHeaders[i] = textproto.CanonicalMIMEHeaderKey(name)
	}
	s := &Stage{
		cache: c, opts: opts, usual: rule{lifetime: opts.Lifetime, codes: orUsual(opts.Codes)},
		own: !def.UseKeyless && !opts.Shared, names: namesFor(def, opts.Shared), flights: make(map[string]*flight),
	}
	s.owner.Store(c.owners.Add(1))
	if len(rules) > 0 {
		s.rules, err = s.compileRules(rules)
	}
	return s, err
}

func orUsual(codes []int) []int {
	if len(codes) == 0 {
		return usualCodes
	}
	return codes
}

func (s *Stage) compileRules(rules []caching.Rule) (*match.Endpoints[*rule], error) {
	var list []match.Endpoint[*rule]
	for _, r := range rules {
		one := s.usual
		one.path = r.Path
		if r.Lifetime > 0 {
			one.lifetime = r.Lifetime
		}
		if len(r.Codes) > 0 {
			one.codes = r.Codes
		}
		list = append(list, match.Endpoint[*rule]{Path: r.Path, Method: r.Method, Value: &one})
	}
	return match.CompileEndpoints(list)
}

// StageOf returns the stage that keeps answers among those of a version, or nil.
func StageOf(stages []pipeline.Stage) *Stage {
	for _, stage := range stages {
		if s, ok := stage.(*Stage); ok {
			return s
		}
	}
	return nil
}

// Before tells the stage which APIs calls go on to from here, by the places that
// Outgoing.Elsewhere counts, nil for upstreams: answers of theirs are kept, and waited
// for, only while they answer all who ask the same alike. It is for whoever compiles
// the stage.
func (s *Stage) Before(onward []*pipeline.Ref) { s.onward = onward }

// next returns the API that a call goes on to, or nil.
func (s *Stage) next(ex *pipeline.Exchange) *pipeline.Ref {
	if at := int(ex.Outgoing.Elsewhere); at < len(s.onward) {
		return s.onward[at]
	}
	return nil
}

// Swap is told which APIs came into service and which left it, each of them once.
// What was kept for those that left goes.
func (c *Cache) Swap(came, gone []*pipeline.API) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := make(map[uint64]bool)
	for _, api := range gone {
		id := api.Definition.ID
		for _, s := range stagesOf(api) {
			left[s.owner.Swap(c.owners.Add(1))] = true // what its last calls bring is not kept
			c.live[id] = without(c.live[id], s)
		}
		if len(c.live[id]) == 0 {
			delete(c.live, id)
		}
	}
	c.kept.DropAll(left)
	for _, api := range came {
		if stages := stagesOf(api); len(stages) > 0 {
			c.live[api.Definition.ID] = append(c.live[api.Definition.ID], stages...)
		}
	}
}

func without(list []*Stage, gone *Stage) []*Stage {
	var kept []*Stage
	for _, s := range list {
		if s != gone {
			kept = append(kept, s)
		}
	}
	return kept
}

// stagesOf returns the stages of an API that keep answers.
func stagesOf(api *pipeline.API) (found []*Stage) {
	for _, v := range api.Versions {
		for _, stages := range [...][]pipeline.Stage{v.Request, v.Open} {
			for _, stage := range stages {
				if s, ok := stage.(*Stage); ok {
					found = append(found, s)
				}
			}
		}
	}
	return found
}

// Invalidate forgets what is kept for an API, "" for all of them. Calls that are
// under way keep nothing that anybody will be told.
func (c *Cache) Invalidate(api string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := make(map[uint64]bool)
	for id, stages := range c.live {
		if id != api && api != "" {
			continue
		}
		for _, s := range stages {
			left[s.owner.Swap(c.owners.Add(1))] = true
		}
	}
	c.kept.DropAll(left)
}

// Stats is how full the cache is, and what became of calls.
type Stats struct {
	Hits, Misses   uint64 // calls that were answered at once, and that went up
	Shared         uint64 // calls that waited, and were given the answer to another one
	Entries, Bytes int
}

// Stats returns current numbers.
func (c *Cache) Stats() Stats {
	s := Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Shared: c.shared.Load()}
	s.Entries, s.Bytes = c.kept.Size()
	return s
}
