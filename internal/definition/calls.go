package definition

import (
	"github.com/sluicegate/sluice/internal/definition/caching"
	"github.com/sluicegate/sluice/internal/definition/upstreams"
)

// Upstreams returns what the definition says about its targets. The error is
// *Problems.
func (a *API) Upstreams() (upstreams.Rules, error) {
	p := a.Proxy.Rest()
	rules, faults := upstreams.Read(upstreams.Source{
		Balance: a.Proxy.EnableLoadBalancing, Targets: p.TargetList, Ejection: p.Ejection,
		HealthCheck: p.HealthCheck, Breaker: p.CircuitBreaker, Uptime: a.UptimeTests,
	})
	return rules, asProblems(faults...)
}

// CallRules returns what a version, which may be nil, says about calls of certain
// paths to its upstream. The error is *Problems, with paths below extended_paths.
func (v *Version) CallRules() (upstreams.CallRules, error) {
	if v == nil || !v.UseExtendedPaths {
		return upstreams.CallRules{}, nil
	}
	rules, faults := upstreams.ReadCalls(v.ExtendedPaths)
	return rules, asProblems(faults...)
}

// Caching returns how answers are kept, or nil when they are not. The error is
// *Problems, with paths below cache_options.
func (a *API) Caching() (*caching.Options, error) {
	options, faults := caching.Parse(a.CacheOptions)
	return options, asProblems(faults...)
}

// CachingRules returns the calls of a version, which may be nil, whose answers are
// kept. The error is *Problems, with paths below extended_paths.
func (v *Version) CachingRules() ([]caching.Rule, error) {
	if v == nil || !v.UseExtendedPaths {
		return nil, nil
	}
	rules, faults := caching.ParseRules(v.ExtendedPaths)
	return rules, asProblems(faults...)
}

// checkCalls checks what is said about calls to upstreams and about their
// answers.
func (p *Problems) checkCalls(a *API) {
	rules, err := a.Upstreams()
	p.join("", err)
	for _, t := range rules.Targets {
		p.checkWith(t.At, upstreams.CheckURL(t.URL))
	}
	for _, c := range rules.Uptime {
		p.checkWith(c.At, upstreams.CheckURL(c.URL))
	}
	if rules.Check != nil && a.IsHandedOver() && len(rules.Targets) == 0 {
		p.addf("proxy.health_check", "asks an upstream how it is, and proxy.target_url is another API; give that one the check")
	}
	if p.checkObject("cache_options", a.CacheOptions) {
		options, err := a.Caching()
		p.join("cache_options", err)
		if options != nil && a.IsGraphQL() {
			p.refuse("cache_options.enable_cache", "response cache of GraphQL APIs")
		}
	}
}

// checkCallRules checks what a version says about certain calls.
func (p *Problems) checkCallRules(at string, v *Version) {
	_, err := v.CallRules()
	p.join(at+".extended_paths", err)
	_, err = v.CachingRules()
	p.join(at+".extended_paths", err)
}
