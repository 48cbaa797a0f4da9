// Package cache caches responses of upstreams to GET and HEAD requests (RFC 9111),
// within a bound in bytes for all APIs together.
//
// Responses are cached by key, and by the credentials that the upstream receives,
// unless the definition says that they are the same for all callers. Responses that
// are private, or set a cookie, are never cached.
package cache

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/cache"
	"github.com/sluicegate/sluice/internal/definition"
)

// Options are the bounds for all APIs.
type Options struct {
	MaxBytes int           // of all cached responses; 0: nothing is cached
	MaxBody  int           // bytes of a body; responses with larger ones are not cached
	Patience time.Duration // how long a call waits for another one with the same cache key
}

// Cache caches responses. It is safe for concurrent use.
type Cache struct {
	opts  Options
	kept  *cache.Texts[answer]
	epoch time.Time
	seeds [2]maphash.Seed // of the hashes of credentials

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
	c.kept = cache.NewTexts[answer](o.MaxBytes)
	for i := range c.seeds {
		c.seeds[i] = maphash.MakeSeed()
	}
	return c
}

// now returns a time on the cache's clock.
func (c *Cache) now(at time.Time) time.Duration { return at.Sub(c.epoch) }

// A Stage answers calls of one version of an API from the cache. Of several calls with
// the same cache key that miss, one calls the upstream and the others wait for it.
type Stage struct {
	cache *Cache
	opts  *definition.CacheOptions
	usual rule
	rules *match.Endpoints[*rule] // nil: all calls have the usual one
	own   bool                    // responses are cached by key

	byHeaders []string // request headers that are part of the cache key, in the form of normal
	ttlHeader string   // response header with a lifetime

	names names         // of headers in the cache key, beside the standard ones
	owner atomic.Uint64 // owner of the cached responses

	internal []*pipeline.APIRef // APIs that are called, by Outgoing.Alternate; nil: only upstreams are called

	mu    sync.Mutex
	calls map[string]*sharedCall // single-flight calls, by cache key
}

// rule is how the responses to some calls are cached.
type rule struct {
	lifetime time.Duration
	codes    []int
	path     string // in explanations; "" for all
}

// usualCodes are the status codes that are cached by default: those that are
// heuristically cacheable (RFC 9110, section 15.1), without errors.
var usualCodes = []int{200, 203, 204, 300, 301, 308, 410}

// Compile returns the stage of a version of an API, which may be nil, or nil when its
// responses are not cached.
func (c *Cache) Compile(def *definition.API, version *definition.Version) (*Stage, error) {
	opts := def.CacheOptions
	if !opts.On() || c.opts.MaxBytes == 0 {
		return nil, nil
	}
	rules := version.CacheRules()
	if len(rules) == 0 && !opts.AllSafe {
		return nil, nil
	}
	s := &Stage{
		cache: c, opts: opts, usual: rule{lifetime: opts.Lifetime(), codes: orUsual(opts.Codes)},
		own: !def.UseKeyless && !opts.Shared, names: namesFor(def, opts.Shared), calls: make(map[string]*sharedCall),
	}
	for _, name := range opts.ByHeaders {
		s.byHeaders = append(s.byHeaders, normal(name))
	}
	s.ttlHeader = opts.LifetimeHeader()
	s.owner.Store(c.owners.Add(1))
	if len(rules) == 0 {
		return s, nil
	}
	var err error
	s.rules, err = s.compileRules(rules)
	return s, err
}

func orUsual(codes []int) []int {
	if len(codes) == 0 {
		return usualCodes
	}
	return codes
}

func (s *Stage) compileRules(rules []definition.CacheRule) (*match.Endpoints[*rule], error) {
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

// Before sets the APIs that the version calls, by Outgoing.Alternate, nil for
// upstreams. Their responses are cached, and waited for, only while all of them have a
// fingerprint. It is called before the stage is used.
func (s *Stage) Before(internal []*pipeline.APIRef) { s.internal = internal }

// next returns the API that an exchange calls, or nil.
func (s *Stage) next(ex *pipeline.Exchange) *pipeline.APIRef {
	if at := int(ex.Outgoing.Alternate); at < len(s.internal) {
		return s.internal[at]
	}
	return nil
}

// Swap adds the APIs that entered service and removes those that left it, each once,
// with their cached responses.
func (c *Cache) Swap(came, gone []*pipeline.API) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := make(map[uint64]bool)
	for _, api := range gone {
		id := api.Definition.ID
		for _, s := range stagesOf(api) {
			left[s.owner.Swap(c.owners.Add(1))] = true // responses to its last calls are not cached
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

// stagesOf returns the cache stages of an API.
func stagesOf(api *pipeline.API) (found []*Stage) {
	for _, v := range api.Versions {
		for _, stage := range [...]pipeline.Stage{v.Cache, v.OpenCache} {
			if s, ok := stage.(*Stage); ok {
				found = append(found, s)
			}
		}
	}
	return found
}

// Invalidate drops the cached responses of an API, of all APIs for "". Responses to
// calls that have begun are not cached.
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

// Stats are counts of the cache.
type Stats struct {
	Hits, Misses   uint64 // calls answered from the cache, and calls of the upstream
	Shared         uint64 // calls that waited for another one and got its response
	Entries, Bytes int
}

// Stats returns current numbers.
func (c *Cache) Stats() Stats {
	s := Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Shared: c.shared.Load()}
	s.Entries, s.Bytes = c.kept.Size()
	return s
}
