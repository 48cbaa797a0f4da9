// Package caching reads what a definition says about keeping answers of its
// upstreams.
package caching

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// Options is what holds for all calls of an API, complete with defaults.
type Options struct {
	Lifetime  time.Duration // of an answer that does not say less
	AllSafe   bool          // every GET and HEAD; else those of the rules alone
	Codes     []int         // statuses that are kept; empty: those that RFC 9110 calls cacheable
	Upstream  bool          // answers are kept for as long as they say themselves, and not at all when they say nothing
	TTLHeader string        // in which they say so in seconds, beside Cache-Control
	ByHeaders []string      // request headers that answers depend on
	Shared    bool          // callers get what was answered to others
}

// A Rule is calls whose answers are kept.
type Rule struct {
	Path     string // a pattern, below the listen path
	Method   string // GET or HEAD; "" for both
	Lifetime time.Duration
	Codes    []int // empty: as for all calls
}

const (
	maxRules    = 10_000
	maxHeaders  = 32
	maxLifetime = 30 * 24 * 3600 // seconds

	defaultLifetime  = 60 * time.Second
	defaultTTLHeader = "X-Svc-Cache-Action-Set-Ttl"
)

// Parse reads a definition's cache_options, and returns nil when nothing is kept.
// The faults have paths below it.
func Parse(raw json.RawMessage) (*Options, []object.Fault) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one struct {
		Enable    bool     `json:"enable_cache"`
		Timeout   int64    `json:"cache_timeout"`
		AllSafe   bool     `json:"cache_all_safe_requests"`
		Codes     []int    `json:"cache_response_codes"`
		Upstream  bool     `json:"enable_upstream_cache_control"`
		TTLHeader string   `json:"cache_control_ttl_header"`
		ByHeaders []string `json:"cache_by_headers"`
		Shared    bool     `json:"shared"`
	}
	var f object.Faults
	f = append(f, object.Decode(raw, &one)...)
	if !one.Enable || len(f) > 0 {
		return nil, f
	}
	o := &Options{
		Lifetime: lifetime(&f, "cache_timeout", one.Timeout, defaultLifetime), AllSafe: one.AllSafe,
		Upstream: one.Upstream, TTLHeader: one.TTLHeader, ByHeaders: one.ByHeaders, Shared: one.Shared,
	}
	if o.TTLHeader == "" {
		o.TTLHeader = defaultTTLHeader
	}
	o.Codes = codes(&f, "cache_response_codes", one.Codes)
	if !isToken(o.TTLHeader) {
		f.Add("cache_control_ttl_header", "must be a header name")
	}
	f.Count("cache_by_headers", len(one.ByHeaders), maxHeaders)
	for i, name := range one.ByHeaders {
		if !isToken(name) {
			f.Add(object.Item("cache_by_headers", i), "must be a header name, such as Accept-Language")
		}
	}
	return o, f
}

// ParseRules reads the lists of a version's extended_paths that say which calls
// are kept. The faults have paths below that.
func ParseRules(extended json.RawMessage) ([]Rule, []object.Fault) {
	if len(extended) == 0 || extended[0] != '{' {
		return nil, nil
	}
	var lists struct {
		Plain    []string `json:"cache"`
		Advanced []entry  `json:"advance_cache_config"`
	}
	var f object.Faults
	f = append(f, object.Decode(extended, &lists)...)
	if len(f) > 0 {
		return nil, f
	}
	var rules []Rule
	f.Count("advance_cache_config", len(lists.Advanced), maxRules)
	for i, one := range lists.Advanced {
		if !one.Disabled {
			rules = append(rules, one.rule(&f, object.Item("advance_cache_config", i)))
		}
	}
	f.Count("cache", len(lists.Plain), maxRules)
	for i, path := range lists.Plain {
		checkPath(&f, object.Item("cache", i), path)
		rules = append(rules, Rule{Path: path})
	}
	return rules, f
}

// entry is an element of advance_cache_config.
type entry struct {
	Path     string `json:"path"`
	Method   string `json:"method"`
	KeyRegex string `json:"cache_key_regex"`
	Codes    []int  `json:"cache_response_codes"`
	Timeout  int64  `json:"timeout"`
	Disabled bool   `json:"disabled"`
}

func (e *entry) rule(f *object.Faults, at string) Rule {
	checkPath(f, at+".path", e.Path)
	switch e.Method {
	case "", "GET", "HEAD":
	default:
		f.Add(at+".method", "must be GET or HEAD, or be left out for both: answers to other methods are not kept")
	}
	if e.KeyRegex != "" {
		f.Add(at+".cache_key_regex", "must be left out: it is for bodies of requests, and answers to those are not kept")
	}
	return Rule{
		Path: e.Path, Method: e.Method, Lifetime: lifetime(f, at+".timeout", e.Timeout, 0), Codes: codes(f, at+".cache_response_codes", e.Codes),
	}
}

func checkPath(f *object.Faults, at, path string) {
	if err := pattern.Check(path); err != nil {
		f.Add(at, err.Error())
	}
}

// lifetime reads seconds; 0 stands for otherwise.
func lifetime(f *object.Faults, path string, seconds int64, otherwise time.Duration) time.Duration {
	switch {
	case seconds == 0:
		return otherwise
	case seconds < 0 || seconds > maxLifetime:
		f.Addf(path, "must be from 1 to %d seconds, or 0 for the default", maxLifetime)
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}

// codes checks statuses. Those of parts and of answers without one of their own
// are never kept.
func codes(f *object.Faults, path string, list []int) []int {
	for i, status := range list {
		if status < 200 || status > 599 || status == 206 || status == 304 {
			f.Add(object.Item(path, i), "must be a status from 200 to 599, but 206 and 304, which are no whole answers")
		}
	}
	return slices.Clone(list)
}

func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
