package definition

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// Bounds of the numbers that limit callers: those that counters can keep.
const (
	maxRate   = 1<<31 - 1
	maxQuota  = 1<<53 - 1
	maxPeriod = 100 * 365 * 86400 // seconds

	maxThrottle  = 3600 // seconds
	maxRetries   = 1000
	maxEndpoints = 10_000
)

// Validate returns everything that is wrong with a policy, and every feature that
// it asks for and that this release does not have. The error is *Problems.
func (p *Policy) Validate() error {
	var all Problems
	all.checkID("id", p.ID)
	all.checkID("_id", p.StoreID)
	all.checkID("org_id", p.OrgID)
	all.checkText("name", p.Name)
	all.checkTexts("tags", p.Tags)
	all.checkLimits("", &p.Limits)
	all.checkAccess(p.AccessRights)
	all.checkAccessList(p.AccessList)
	if p.State != "" && p.State != "active" && p.State != "draft" && p.State != "deny" {
		all.addf("state", `must be "active", "draft" or "deny"`)
	}
	if p.Enforcement != "" && p.Enforcement != "enforce" && p.Enforcement != "measure" {
		all.addf("enforcement", `must be "enforce" or "measure", or be left out`)
	}
	if p.KeyExpiresIn < 0 || p.KeyExpiresIn > maxPeriod {
		all.addf("key_expires_in", "must be from 0 (never) to %d seconds", maxPeriod)
	}
	all.checkObject("smoothing", p.Smoothing)
	refuse(&all, "", missingPolicies, p)
	return all.err()
}

// Validate returns everything that is wrong with a session, and every feature that
// it asks for and that this release does not have. The error is *Problems.
func (s *Session) Validate() error {
	var all Problems
	all.checkID("org_id", s.OrgID)
	all.checkText("alias", s.Alias)
	all.checkTexts("tags", s.Tags)
	all.checkLimits("", &s.Limits)
	all.checkAccess(s.AccessRights)
	all.checkCount("apply_policies", len(s.ApplyPolicies), maxPolicies)
	for i, id := range s.ApplyPolicies {
		if !isID(id) {
			all.addf(object.Item("apply_policies", i), idMessage)
		}
	}
	all.checkID("apply_policy_id", s.ApplyPolicyID)
	all.join("monitor", asProblems(s.Monitor.check()...))
	refuse(&all, "", missingSessions, s)
	if s.Extra != nil {
		all.checkBindings(s.Extra)
		all.join("jwt_data", asProblems(s.Extra.JWT.Check(s.HasPassword())...))
		all.checkObject("smoothing", s.Extra.Smoothing)
		refuse(&all, "", missingExtras, s.Extra)
	}
	return all.err()
}

// checkBindings checks the certificates that a key needs.
func (p *Problems) checkBindings(e *Extra) {
	if e.Certificate != "" {
		p.checkWith("certificate", CheckCertificateID(e.Certificate))
	}
	for i, id := range e.CertificateBindings {
		p.checkWith(object.Item("mtls_static_certificate_bindings", i), CheckCertificateID(id))
	}
}

// checkLimits checks numbers. Zero and -1 limit nothing, nor do other negative
// numbers of calls and seconds.
func (p *Problems) checkLimits(path string, l *Limits) {
	p.checkRate(path, l.Rate, l.Per)
	if l.QuotaMax > maxQuota {
		p.addf(object.Member(path, "quota_max"), "must be at most %d", maxQuota)
	}
	if l.QuotaRenewalRate > maxPeriod {
		p.addf(object.Member(path, "quota_renewal_rate"), "must be at most %d seconds; 0 never renews", maxPeriod)
	}
	for _, fault := range l.Renewal.check() {
		p.addf(object.Member(path, fault.Path), "%s", fault.Message)
	}
	if l.ThrottleInterval > maxThrottle || math.IsNaN(l.ThrottleInterval) {
		p.addf(object.Member(path, "throttle_interval"), "must be at most %d seconds; the client waits for so long", maxThrottle)
	}
	if l.ThrottleRetryLimit > maxRetries {
		p.addf(object.Member(path, "throttle_retry_limit"), "must be at most %d", maxRetries)
	}
	p.checkComplexity(path, l)
}

func (p *Problems) checkRate(path string, rate, per float64) {
	for _, fault := range rateFaults(rate, per) {
		p.addf(object.Member(path, fault.Path), "%s", fault.Message)
	}
}

// limits reports whether a rate limits calls.
func limits(rate, per float64) bool { return rate > 0 && per > 0 }

// Limits reports whether r limits calls. r may be nil.
func (r *RateLimit) Limits() bool { return r != nil && !r.Disabled && limits(r.Rate, r.Per) }

// rateFaults returns what is wrong with a rate. Zero and negative numbers limit
// nothing.
func rateFaults(rate, per float64) (f object.Faults) {
	switch {
	case math.IsNaN(rate) || rate > maxRate:
		f.Addf("rate", "must be at most %d", maxRate)
	case rate > 0 && rate != math.Trunc(rate):
		f.Add("rate", "must be a whole number of calls; half a call per second is a rate of 1 per 2 seconds")
	}
	switch {
	case math.IsNaN(per) || per > maxPeriod:
		f.Addf("per", "must be at most %d seconds", maxPeriod)
	case per > 0 && math.Abs(per*1000-math.Round(per*1000)) > 1e-6 || per > 0 && per < 0.001:
		f.Add("per", "must be a whole number of milliseconds, given in seconds, such as 0.25")
	}
	return f
}

func (p *Problems) checkAccess(rights map[string]*Access) {
	p.checkCount("access_rights", len(rights), maxAccess)
	for _, id := range object.SortedKeys(rights) {
		access, path := rights[id], object.Entry("access_rights", id)
		switch {
		case access == nil:
			p.addf(path, "must be an object")
			continue
		case !isID(id):
			p.addf(path, "the id of an API "+idMessage)
		case access.APIID != "" && access.APIID != id:
			p.addf(path+".api_id", "must be %q, the name of the entry, or be left out", id)
		}
		p.checkEntry(path, access)
	}
}

func (p *Problems) checkAccessList(rights []*Access) {
	const path = "access_rights_array"
	p.checkCount(path, len(rights), maxAccess)
	for i, access := range rights {
		if access != nil {
			p.checkID(object.Item(path, i)+".api_id", access.APIID)
			p.checkEntry(object.Item(path, i), access)
		}
	}
}

// checkEntry checks what may be done with one API.
func (p *Problems) checkEntry(path string, access *Access) {
	p.checkURLs(path+".allowed_urls", access.AllowedURLs)
	p.checkFieldRules(path, access)
	if access.Limit != nil {
		p.checkLimits(path+".limit", &access.Limit.Limits)
		refuse(p, path+".limit", missingLimits, access.Limit)
	}
	p.checkEndpoints(path+".endpoints", access.Endpoints)
}

func (p *Problems) checkEndpoints(path string, endpoints []Endpoint) {
	p.checkCount(path, len(endpoints), maxEndpoints)
	for i, e := range endpoints {
		at := object.Item(path, i)
		if err := pattern.Check(e.Path); err != nil {
			p.addf(at+".path", "%s", err)
		}
		for j, m := range e.Methods {
			at := object.Item(at+".methods", j)
			p.checkMethod(at+".name", m.Name)
			p.checkRate(at+".limit", m.Limit.Rate, m.Limit.Per)
		}
	}
}

func (p *Problems) checkURLs(path string, urls []AllowedURL) {
	p.checkCount(path, len(urls), maxAllowedURLs)
	for i, u := range urls {
		if _, err := regexp.Compile(u.URL); err != nil {
			p.addf(object.Item(path, i)+".url", "%s", expressionMessage(err))
		}
		for j, method := range u.Methods {
			p.checkMethod(object.Item(object.Item(path, i)+".methods", j), method)
		}
	}
}

func (p *Problems) checkMethod(path, method string) {
	if upper := strings.ToUpper(method); !isToken(method) {
		p.addf(path, "must be an HTTP method such as GET")
	} else if upper != method && isStandard(upper) {
		p.addf(path, "must be %s: methods are compared as they are written", upper)
	}
}

func isStandard(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// missingPolicies lists the features of policies that do not exist.
var missingPolicies = []feature[*Policy]{
	{"hmac_enabled", "HMAC request signatures", AccessWeight, func(p *Policy) bool { return p.HMACEnabled }},
	{"enable_http_signature_validation", "HTTP message signatures", AccessWeight, func(p *Policy) bool { return p.SignatureValidation }},
	{"smoothing.enabled", "rate limit smoothing", MinorWeight, func(p *Policy) bool { return isOn(p.Smoothing, "enabled") }},
	{"post_expiry_action", "deletion of expired keys", MinorWeight, func(p *Policy) bool { return p.PostExpiryAction == "delete" }},
	{"meta_data.rate_limit_pattern", "custom counters", MinorWeight, func(p *Policy) bool { return hasPattern(p.MetaData) }},
}

// missingLimits lists the features of limits of single APIs that do not exist.
var missingLimits = []feature[*AccessLimit]{
	{"smoothing.enabled", "rate limit smoothing", MinorWeight, func(l *AccessLimit) bool { return isOn(l.Unknown.Get("smoothing"), "enabled") }},
}

// missingSessions lists the features of keys that do not exist.
var missingSessions = []feature[*Session]{
	{"enable_http_signature_validation", "HTTP message signatures", AccessWeight, func(s *Session) bool { return means(s.Unknown.Get("enable_http_signature_validation")) }},
	{"meta_data.rate_limit_pattern", "custom counters", MinorWeight, func(s *Session) bool { return hasPattern(s.MetaData) }},
}

// missingExtras lists the features of the rarer members of keys that do not exist.
var missingExtras = []feature[*Extra]{
	{"hmac_enabled", "HMAC request signatures", AccessWeight, func(e *Extra) bool { return e.HMACEnabled }},
	{"oauth_keys", "tokens of OAuth clients in a key", AccessWeight, func(e *Extra) bool { return says(e.OAuthKeys) }},
	{"smoothing.enabled", "rate limit smoothing", MinorWeight, func(e *Extra) bool { return isOn(e.Smoothing, "enabled") }},
	{"session_lifetime", "removal of keys after a time; use expires", AccessWeight, func(e *Extra) bool { return e.SessionLifetime > 0 }},
	{"post_expiry_action", "deletion of expired keys", MinorWeight, func(e *Extra) bool { return e.PostExpiryAction == "delete" }},
}

// hasPattern reports whether meta data names counters after something else than
// the key.
func hasPattern(meta map[string]json.RawMessage) bool { return says(meta["rate_limit_pattern"]) }
