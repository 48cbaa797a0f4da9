package definition

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Target is an upstream for load balancing. In JSON it is an object, or a URL alone.
type Target struct {
	// URL of the upstream, http or https.
	// Example: "http://a.internal:8080"
	URL string `json:"url,omitempty" object:"short"`
	// Share of the calls that go to the target, from 1 to 1000. Default: 1.
	// Example: 3
	Weight  int     `json:"weight,omitempty"`
	Unknown Unknown `json:"-"`
}

// Ejection is when a target that fails is left out for a while.
type Ejection struct {
	// Whether targets that fail go on being called.
	Disabled bool `json:"disabled,omitempty"`
	// Failures in a row after which the target is left out, from 1 to 1000. Default: 5.
	// Example: 3
	Failures int `json:"failures,omitempty"`
	// Seconds that the target is left out at first, from 0.1 to 3600; longer each time that it goes on failing. Default: 10.
	// Example: 30
	Seconds float64 `json:"seconds,omitempty"`
	// Most seconds that the target is left out, from 0.1 to 86400. Default: 300.
	// Example: 600
	Longest float64 `json:"longest,omitempty"`
	Unknown Unknown `json:"-"`
}

// CheckSettings are the settings that both kinds of health check have.
type CheckSettings struct {
	// Method of the request, in upper case. Default: GET.
	// Example: "HEAD"
	Method string `json:"method,omitempty"`
	// Headers of the request.
	// Example: {"X-Check": "gateway"}
	Headers map[string]string `json:"headers,omitempty"`
	// Seconds between two checks, from 0.1 to 3600, varied by a fifth. Default: 10.
	// Example: 5
	Interval float64 `json:"interval,omitempty"`
	// Good responses in a row after which a target is called again, from 1 to 100. Default: 2.
	// Example: 3
	Healthy int `json:"healthy,omitempty"`
	// Bad responses in a row after which a target is not called, from 1 to 100. Default: 3.
	// Example: 5
	Unhealthy int `json:"unhealthy,omitempty"`
	// Statuses of good responses. Default: 200 to 399.
	// Example: [200, 204]
	Expected []int `json:"expected,omitempty"`
}

// HealthCheck is the health check of every target of an API.
type HealthCheck struct {
	CheckSettings
	// Whether no checks are made.
	Disabled bool `json:"disabled,omitempty"`
	// Path, with a query if there is one, such as /health. It begins at the host of the target:
	// what target_url has after its host is not put before it.
	// Example: "/health"
	Path string `json:"path,omitempty"`
	// Seconds to wait for the response, from 0.01 to 60 and at most the interval. Default: 2.
	// Example: 1.5
	Timeout float64 `json:"timeout,omitempty"`
	Unknown Unknown `json:"-"`
}

// UptimeTests are health checks of addresses. Those of targets decide whether they
// are called.
type UptimeTests struct {
	// Whether no checks are made.
	Disabled bool `json:"disabled,omitempty"`
	// The checks, at most 256.
	// Example: [{"url": "http://orders.internal:8080/health", "interval": 5}]
	List []UptimeCheck `json:"check_list,omitempty" object:"lenient"`
	// Settings of comparable gateways.
	// Example: {"service_discovery": {"use_discovery_service": false}}
	Config  UptimeConfig `json:"config,omitzero"`
	Unknown Unknown      `json:"-"`
}

// UptimeConfig holds settings of comparable gateways.
type UptimeConfig struct {
	// Where targets are looked up.
	// Example: {"use_discovery_service": false}
	Discovery ServiceDiscovery `json:"service_discovery,omitzero"`
	Unknown   Unknown          `json:"-"`
}

// ServiceDiscovery looks targets up in a registry, which is not supported.
type ServiceDiscovery struct {
	// Whether targets are looked up in a registry. Not supported: must be false.
	Use     bool    `json:"use_discovery_service,omitempty"`
	Unknown Unknown `json:"-"`
}

// UptimeCheck is the health check of one address. In JSON it is an object, or a URL
// alone.
type UptimeCheck struct {
	CheckSettings
	// URL that is requested, http or https.
	// Example: "http://orders.internal:8080/health"
	URL string `json:"url,omitempty" object:"short"`
	// Body of the request, in Base64.
	// Example: "cGluZw=="
	Body string `json:"body,omitempty"`
	// Protocol of the check: http or https.
	// Example: "https"
	Protocol string `json:"protocol,omitempty" oneof:"http https"`
	// Whether connections begin with a PROXY protocol header. Not supported: must be false.
	Proxied bool `json:"enable_proxy_protocol,omitempty"`
	// Commands of a TCP check. Not supported: must be empty.
	// Example: []
	Commands []json.RawMessage `json:"commands,omitempty"`
	// Time to wait for the response, from 1 ms to 1 min: nanoseconds, or a text such as "500ms". Default: 2 seconds.
	// Example: "500ms"
	Timeout json.RawMessage `json:"timeout,omitempty"`
	Unknown Unknown         `json:"-"`
}

// BreakerSettings are when a circuit breaker trips, and for how long.
type BreakerSettings struct {
	// Share of the calls of the last ten seconds that must fail, above 0 and up to 1.
	// Example: 0.5
	Threshold float64 `json:"threshold_percent,omitempty"`
	// Calls that there must have been in these seconds, from 1 to 1000000.
	// Example: 20
	Samples int `json:"samples,omitempty"`
	// Seconds that calls are refused, from 0.1 to 86400. Default: 60.
	// Example: 30
	Return float64 `json:"return_to_service_after,omitempty"`
	// Whether all calls are made afterwards. Default: one call is made as a probe.
	NoHalfOpen bool `json:"disable_half_open_state,omitempty"`
}

// APIBreaker is the circuit breaker of all calls of an API.
type APIBreaker struct {
	BreakerSettings
	// Whether the breaker is off.
	Disabled bool    `json:"disabled,omitempty"`
	Unknown  Unknown `json:"-"`
}

// UpstreamRules is what a definition says about its upstreams, with defaults.
type UpstreamRules struct {
	Targets  []WeightedTarget // of load balancing; empty: proxy.target_url alone
	Ejection *EjectionRule    // nil: targets that fail go on being called
	Check    *Check           // of every target; nil: none
	Uptime   []Check          // of addresses
	Breaker  *Breaker         // of all calls; nil: none
}

// A WeightedTarget is an upstream for load balancing.
type WeightedTarget struct {
	URL    string
	Weight int    // share of the calls, at least 1
	At     string // path of the URL in the definition
}

// An EjectionRule is when a target that fails is left out for a while.
type EjectionRule struct {
	Failures int           // in a row
	For      time.Duration // at first; longer each time that it goes on failing
	Longest  time.Duration // upper bound of the time
}

// A Check is a request that is made again and again to find out whether a target
// is healthy.
type Check struct {
	URL     string // of an address; "" for a check of every target
	At      string // path of URL in the definition
	Path    string // on every target, with a query if there is one
	Method  string
	Headers map[string]string
	Body    []byte

	Interval  time.Duration // between two checks, varied by a fifth
	Timeout   time.Duration // for the head of the response
	Healthy   int           // good responses in a row after which a target is healthy again
	Unhealthy int           // bad responses in a row after which it is not
	Expected  []int         // statuses of good responses; empty: 200 to 399
}

// A Breaker is when calls are refused because too many of them fail.
type Breaker struct {
	Share    float64       // of the calls of the last ten seconds that failed, in (0, 1]
	Samples  int           // how many calls there must have been
	Return   time.Duration // how long calls are refused
	HalfOpen bool          // whether one call is made as a probe afterwards, else all calls are
}

const (
	maxTargets = 256
	maxWeight  = 1_000
	maxWeights = 10_000 // of all targets together
	maxChecks  = 256

	checkInterval = 10 * time.Second
	checkTimeout  = 2 * time.Second
)

// HasUpstreamRules reports whether the definition says more about its upstreams than
// the target's URL.
func (a *API) HasUpstreamRules() bool {
	p := &a.Proxy
	return p.EnableLoadBalancing || p.HealthCheck != nil || p.CircuitBreaker != nil || a.UptimeTests != nil
}

// Upstreams returns what the definition says about its upstreams.
func (a *API) Upstreams() UpstreamRules {
	var r upstreamReader
	return r.read(a)
}

// An upstreamReader fills in defaults, and collects what is wrong.
type upstreamReader struct{ object.Faults }

func (r *upstreamReader) read(a *API) (rules UpstreamRules) {
	p := &a.Proxy
	if p.EnableLoadBalancing {
		r.Below("proxy.target_list", p.Unknown.LenientFaults("target_list", new([]Target)))
		r.Below("proxy.ejection", p.Unknown.LenientFaults("ejection", new(Ejection)))
		rules.Targets = r.targets("proxy.target_list", p.TargetList)
		rules.Ejection = r.ejection("proxy.ejection", p.Ejection)
	}
	if h := p.HealthCheck; h != nil && !h.Disabled {
		rules.Check = r.healthCheck("proxy.health_check", h)
	}
	if a.UptimeTests != nil && !a.UptimeTests.Disabled {
		rules.Uptime = r.uptime(a.UptimeTests)
	}
	if b := p.CircuitBreaker; b != nil && !b.Disabled {
		rules.Breaker = new(r.breaker("proxy.circuit_breaker", &b.BreakerSettings))
	}
	return rules
}

// targets returns each URL once, with the weight of all its entries.
func (r *upstreamReader) targets(path string, list []Target) (targets []WeightedTarget) {
	if len(list) == 0 && len(r.Faults) == 0 {
		r.Add(path, `must name the targets while proxy.enable_load_balancing is true: URLs, or objects such as {"url": "http://a.example:8080", "weight": 3}`)
	}
	r.Count(path, len(list), maxTargets)
	all := 0
	for i := range list {
		at := object.Item(path, i)
		weight := r.count(at+".weight", list[i].Weight, maxWeight, 1)
		all += weight
		if !list[i].Unknown.Short() {
			at += ".url"
		}
		if same := slices.IndexFunc(targets, func(t WeightedTarget) bool { return t.URL == list[i].URL }); same >= 0 {
			targets[same].Weight += weight
			continue
		}
		targets = append(targets, WeightedTarget{URL: list[i].URL, Weight: weight, At: at})
	}
	if all > maxWeights {
		r.Addf(path, "has weights of %d together; at most %d are allowed: divide them by a number that they have in common", all, maxWeights)
	}
	return targets
}

// ejection also fills in the defaults of a definition that has no ejection.
func (r *upstreamReader) ejection(path string, e *Ejection) *EjectionRule {
	if e == nil {
		e = new(Ejection)
	}
	rule := &EjectionRule{
		Failures: r.count(path+".failures", e.Failures, 1000, 5),
		For:      r.within(path+".seconds", e.Seconds, 0.1, 3600, 10*time.Second),
		Longest:  r.within(path+".longest", e.Longest, 0.1, 86400, 5*time.Minute),
	}
	if rule.Longest < rule.For {
		rule.Longest = rule.For
		if e.Longest != 0 {
			r.Addf(path+".longest", "must not be below the %g seconds of the first time", rule.For.Seconds())
		}
	}
	if e.Disabled {
		return nil
	}
	return rule
}

func (r *upstreamReader) healthCheck(path string, h *HealthCheck) *Check {
	c := r.check(path, &h.CheckSettings)
	c.Path = h.Path
	u, err := url.ParseRequestURI(h.Path)
	if err != nil || !strings.HasPrefix(h.Path, "/") || u.Host != "" || strings.ContainsAny(h.Path, "# ") {
		r.Add(path+".path", `must be a path on the target, such as "/health"`)
	}
	c.Timeout = r.within(path+".timeout", h.Timeout, 0.01, 60, min(checkTimeout, c.Interval))
	if h.Timeout != 0 && c.Timeout > c.Interval {
		r.Addf(path+".timeout", "must not be above the interval of %g seconds", c.Interval.Seconds())
	}
	return c
}

// check reads what both kinds of check have.
func (r *upstreamReader) check(path string, s *CheckSettings) *Check {
	method := s.Method
	if method == "" {
		method = "GET"
	}
	if !isUpperMethod(method) || method == "CONNECT" {
		r.Add(path+".method", "must be a method in upper case such as GET or HEAD")
	}
	for _, name := range object.SortedKeys(s.Headers) {
		if !isToken(name) || strings.ContainsAny(s.Headers[name], "\r\n\x00") {
			r.Add(object.Entry(path+".headers", name), "must be a header name with a value of one line")
		}
	}
	for i, status := range s.Expected {
		if status < 100 || status > 599 {
			r.Add(object.Item(path+".expected", i), "must be a status from 100 to 599")
		}
	}
	return &Check{
		Method: method, Headers: s.Headers, Expected: s.Expected,
		Interval:  r.within(path+".interval", s.Interval, 0.1, 3600, checkInterval),
		Healthy:   r.count(path+".healthy", s.Healthy, 100, 2),
		Unhealthy: r.count(path+".unhealthy", s.Unhealthy, 100, 3),
	}
}

func (r *upstreamReader) uptime(u *UptimeTests) (checks []Check) {
	if u.Config.Discovery.Use {
		r.Add("uptime_tests.config.service_discovery.use_discovery_service", "must not be true: this release does not look targets up in a registry; list them")
	}
	const path = "uptime_tests.check_list"
	r.Below(path, u.Unknown.LenientFaults("check_list", new([]UptimeCheck)))
	r.Count(path, len(u.List), maxChecks)
	for i := range u.List {
		checks = append(checks, r.uptimeCheck(object.Item(path, i), &u.List[i]))
	}
	return checks
}

func (r *upstreamReader) uptimeCheck(at string, u *UptimeCheck) Check {
	c := r.check(at, &u.CheckSettings)
	c.URL, c.At = u.URL, at
	if !u.Unknown.Short() {
		c.At += ".url"
	}
	body, err := base64.StdEncoding.DecodeString(u.Body)
	if err != nil {
		r.Add(at+".body", "must be Base64")
	}
	c.Body = body
	if protocol := strings.ToLower(u.Protocol); protocol != "" && protocol != "http" && protocol != "https" {
		r.Add(at+".protocol", "must be http or https: this release makes no other checks")
	}
	if len(u.Commands) > 0 || u.Proxied {
		r.Add(at, "must have no commands and no PROXY protocol: this release makes checks by HTTP alone")
	}
	c.Timeout = r.duration(at+".timeout", u.Timeout, min(checkTimeout, c.Interval))
	return *c
}

// breaker reads when a breaker trips, and for how long.
func (r *upstreamReader) breaker(path string, s *BreakerSettings) Breaker {
	if !(s.Threshold > 0 && s.Threshold <= 1) {
		r.Add(path+".threshold_percent", "must be a share above 0 and up to 1: 0.5 is half of the calls")
	}
	if s.Samples < 1 || s.Samples > 1_000_000 {
		r.Add(path+".samples", "must be from 1 to 1000000: how many calls there must be before their failures count")
	}
	return Breaker{
		Share: s.Threshold, Samples: s.Samples, HalfOpen: !s.NoHalfOpen,
		Return: r.within(path+".return_to_service_after", s.Return, 0.1, 86400, time.Minute),
	}
}

// within reads seconds that must lie in [least, most]; 0 is the default.
func (r *upstreamReader) within(path string, seconds, least, most float64, otherwise time.Duration) time.Duration {
	if seconds == 0 {
		return otherwise
	}
	if seconds < least || seconds > most || math.IsNaN(seconds) {
		r.Addf(path, "must be from %g to %g seconds, or 0 for %g", least, most, otherwise.Seconds())
		return otherwise
	}
	return time.Duration(seconds * float64(time.Second))
}

// count reads a number that must lie in [1, most]; 0 is the default.
func (r *upstreamReader) count(path string, n, most, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	if n < 1 || n > most {
		r.Addf(path, "must be from 1 to %d, or 0 for %d", most, otherwise)
		return otherwise
	}
	return n
}

// duration reads nanoseconds, or a text with a unit.
func (r *upstreamReader) duration(path string, raw json.RawMessage, otherwise time.Duration) time.Duration {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "0" || string(raw) == `""` {
		return otherwise
	}
	var d time.Duration
	var err error
	if raw[0] == '"' {
		d, err = time.ParseDuration(object.Unquote(raw))
	} else {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil || d < time.Millisecond || d > time.Minute {
		r.Add(path, `must be from 1 ms to 1 min: a number of nanoseconds, or a text such as "500ms"`)
		return otherwise
	}
	return d
}

// checkUpstreams checks what is said about upstreams.
func (p *Problems) checkUpstreams(a *API) {
	var r upstreamReader
	rules := r.read(a)
	p.join("", asProblems(r.Faults...))
	for _, t := range rules.Targets {
		p.checkWith(t.At, checkURL(t.URL))
	}
	for _, c := range rules.Uptime {
		p.checkWith(c.At, checkURL(c.URL))
	}
	if rules.Check != nil && IsInternal(a.Proxy.TargetURL) && len(rules.Targets) == 0 {
		p.addf("proxy.health_check", "needs an upstream, and proxy.target_url is another API; give that one the check")
	}
}
