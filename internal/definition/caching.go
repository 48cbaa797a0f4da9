package definition

import (
	"slices"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

const (
	maxCacheHeaders  = 32
	maxCacheLifetime = 30 * 24 * 3600 // seconds

	defaultCacheLifetime = 60 // seconds
	defaultTTLHeader     = "X-Svc-Cache-Action-Set-Ttl"
)

// CacheOptions says how responses of an API are cached.
type CacheOptions struct {
	// Whether responses are cached.
	Enable bool `json:"enable_cache,omitempty"`
	// Seconds that a response is kept, unless it says less; at most 2592000. Default: 60.
	// Example: 30
	Timeout int64 `json:"cache_timeout,omitempty"`
	// Whether every GET and HEAD is cached. Default: only the paths that extended_paths names.
	AllSafe bool `json:"cache_all_safe_requests,omitempty"`
	// Statuses that are kept, but 206 and 304. Default: 200, 203, 204, 300, 301, 308 and 410.
	// Example: [200, 404]
	Codes []int `json:"cache_response_codes,omitempty"`
	// Whether responses are kept only for as long as they say themselves, and not at all if they say nothing.
	Upstream bool `json:"enable_upstream_cache_control,omitempty"`
	// Response header with the lifetime in seconds, beside Cache-Control. Default: X-Svc-Cache-Action-Set-Ttl.
	// Example: "X-Cache-Seconds"
	TTLHeader string `json:"cache_control_ttl_header,omitempty"`
	// Request headers that responses depend on, at most 32, beside those that look like credentials or override the method, path or host.
	// Example: ["Accept-Language"]
	ByHeaders []string `json:"cache_by_headers,omitempty"`
	// Whether clients get responses to requests of other keys.
	Shared  bool    `json:"shared,omitempty"`
	Unknown Unknown `json:"-"`
}

// CachedPath is an element of advance_cache_config: requests whose responses are
// cached.
type CachedPath struct {
	// Pattern of the path, below the listen path.
	// Example: "/catalogue/{id}"
	Path string `json:"path,omitempty"`
	// GET or HEAD. Default: both.
	// Example: "GET"
	Method string `json:"method,omitempty" oneof:"GET HEAD"`
	// Part of the request body that responses depend on. Not supported: must be empty.
	// Example: ""
	KeyRegex string `json:"cache_key_regex,omitempty"`
	// Statuses that are kept. Default: those of cache_options.
	// Example: [200]
	Codes []int `json:"cache_response_codes,omitempty"`
	// Seconds that a response is kept, at most 2592000. Default: that of cache_options.
	// Example: 300
	Timeout int64 `json:"timeout,omitempty"`
	// Whether the entry is off.
	Disabled bool    `json:"disabled,omitempty"`
	Unknown  Unknown `json:"-"`
}

// On reports whether responses are cached. o may be nil.
func (o *CacheOptions) On() bool { return o != nil && o.Enable }

// Lifetime returns how long a response is kept that does not say less.
func (o *CacheOptions) Lifetime() time.Duration {
	if o.Timeout == 0 {
		return defaultCacheLifetime * time.Second
	}
	return time.Duration(o.Timeout) * time.Second
}

// LifetimeHeader returns the name of the response header with a lifetime.
func (o *CacheOptions) LifetimeHeader() string {
	if o.TTLHeader == "" {
		return defaultTTLHeader
	}
	return o.TTLHeader
}

// check returns what is wrong, with paths below cache_options.
func (o *CacheOptions) check() (f object.Faults) {
	if !o.On() {
		return nil
	}
	checkLifetime(&f, "cache_timeout", o.Timeout)
	checkCodes(&f, "cache_response_codes", o.Codes)
	if !isToken(o.LifetimeHeader()) {
		f.Add("cache_control_ttl_header", "must be a header name")
	}
	f.Count("cache_by_headers", len(o.ByHeaders), maxCacheHeaders)
	for i, name := range o.ByHeaders {
		if !isToken(name) {
			f.Add(object.Item("cache_by_headers", i), "must be a header name, such as Accept-Language")
		}
	}
	return f
}

// A CacheRule is requests whose responses are cached.
type CacheRule struct {
	Path     string        // pattern, below the listen path
	Method   string        // GET or HEAD; "" for both
	Lifetime time.Duration // 0: as for all calls
	Codes    []int         // empty: as for all calls
}

// CacheRules returns the requests of a version, which may be nil, whose responses
// are cached.
func (v *Version) CacheRules() (rules []CacheRule) {
	paths := v.Extended()
	for _, one := range paths.AdvancedCache {
		if !one.Disabled {
			rules = append(rules, CacheRule{Path: one.Path, Method: one.Method, Lifetime: time.Duration(one.Timeout) * time.Second, Codes: slices.Clone(one.Codes)})
		}
	}
	for _, path := range paths.Cache {
		rules = append(rules, CacheRule{Path: path})
	}
	return rules
}

// checkCache checks the lists of paths whose responses are cached.
func (e *ExtendedPaths) checkCache(f *object.Faults) {
	f.Count("advance_cache_config", len(e.AdvancedCache), maxPathEntries)
	for i := range e.AdvancedCache {
		one, at := &e.AdvancedCache[i], object.Item("advance_cache_config", i)
		if one.Disabled {
			continue
		}
		checkPattern(f, at+".path", one.Path)
		switch one.Method {
		case "", "GET", "HEAD":
		default:
			f.Add(at+".method", "must be GET or HEAD, or be left out for both: responses to other methods are not cached")
		}
		if one.KeyRegex != "" {
			f.Add(at+".cache_key_regex", "must be left out: it is for request bodies, and responses to such requests are not cached")
		}
		checkLifetime(f, at+".timeout", one.Timeout)
		checkCodes(f, at+".cache_response_codes", one.Codes)
	}
	f.Count("cache", len(e.Cache), maxPathEntries)
	for i, path := range e.Cache {
		checkPattern(f, object.Item("cache", i), path)
	}
}

func checkPattern(f *object.Faults, at, path string) {
	if err := pattern.Check(path); err != nil {
		f.Add(at, err.Error())
	}
}

// checkLifetime checks a number of seconds; 0 is the default.
func checkLifetime(f *object.Faults, path string, seconds int64) {
	if seconds < 0 || seconds > maxCacheLifetime {
		f.Addf(path, "must be from 1 to %d seconds, or 0 for the default", maxCacheLifetime)
	}
}

// checkCodes checks statuses. Those of partial responses and of responses to
// conditional requests are never cached.
func checkCodes(f *object.Faults, path string, list []int) {
	for i, status := range list {
		if status < 200 || status > 599 || status == 206 || status == 304 {
			f.Add(object.Item(path, i), "must be a status from 200 to 599, but 206 and 304, which are not whole responses")
		}
	}
}
