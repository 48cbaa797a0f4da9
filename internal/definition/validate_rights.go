package definition

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Bounds of the numbers that limit callers: those that counters can keep.
const (
	maxRate   = 1<<31 - 1
	maxQuota  = 1<<53 - 1
	maxPeriod = 100 * 365 * 86400 // seconds
)

// Validate tells everything that is wrong with a policy, and every feature that
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
	if p.State != "" && p.State != "active" && p.State != "draft" && p.State != "deny" {
		all.addf("state", `must be "active", "draft" or "deny"`)
	}
	if p.KeyExpiresIn < 0 || p.KeyExpiresIn > maxPeriod {
		all.addf("key_expires_in", "must be from 0 (never) to %d seconds", maxPeriod)
	}
	all.checkObject("smoothing", p.Smoothing)
	refuse(&all, "", missingPolicies, p)
	return all.err()
}

// Validate tells everything that is wrong with a session, and every feature that
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
	refuse(&all, "", missingSessions, s)
	if s.Extra != nil {
		all.checkObject("jwt_data", s.Extra.JWT)
		all.checkObject("smoothing", s.Extra.Smoothing)
		refuse(&all, "", missingExtras, s.Extra)
	}
	return all.err()
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
	p.checkComplexity(path, l)
	refuse(p, path, missingLimits, l)
}

func (p *Problems) checkRate(path string, rate, per float64) {
	switch {
	case math.IsNaN(rate) || rate > maxRate:
		p.addf(object.Member(path, "rate"), "must be at most %d", maxRate)
	case rate > 0 && rate != math.Trunc(rate):
		p.addf(object.Member(path, "rate"), "must be a whole number of calls; half a call per second is a rate of 1 per 2 seconds")
	}
	switch {
	case math.IsNaN(per) || per > maxPeriod:
		p.addf(object.Member(path, "per"), "must be at most %d seconds", maxPeriod)
	case per > 0 && math.Abs(per*1000-math.Round(per*1000)) > 1e-6 || per > 0 && per < 0.001:
		p.addf(object.Member(path, "per"), "must be a whole number of milliseconds, given in seconds, such as 0.25")
	}
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
		p.checkURLs(path+".allowed_urls", access.AllowedURLs)
		p.checkFieldRules(path, access)
		if access.Limit != nil {
			p.checkLimits(path+".limit", &access.Limit.Limits)
		}
		for i, e := range access.Endpoints {
			if e.limits() {
				p.refuse(object.Item(path+".endpoints", i), "endpoint rate limits")
			}
		}
	}
}

// limits tells whether e holds callers back.
func (e *Endpoint) limits() bool {
	for i := range e.Methods {
		if e.Methods[i].Limit.limits() {
			return true
		}
	}
	return false
}

func (p *Problems) checkURLs(path string, urls []AllowedURL) {
	p.checkCount(path, len(urls), maxAllowedURLs)
	for i, u := range urls {
		if _, err := regexp.Compile(u.URL); err != nil {
			p.addf(object.Item(path, i)+".url", "%s", expressionMessage(err))
		}
		for j, method := range u.Methods {
			at := object.Item(object.Item(path, i)+".methods", j)
			if upper := strings.ToUpper(method); !isToken(method) {
				p.addf(at, "must be an HTTP method such as GET")
			} else if upper != method && isStandard(upper) {
				p.addf(at, "must be %s: methods are compared as they are written", upper)
			}
		}
	}
}

func isStandard(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// missingLimits lists what limits can ask for in vain.
var missingLimits = []feature[*Limits]{
	{"throttle_retry_limit", "throttling", func(l *Limits) bool { return l.ThrottleRetryLimit > 0 && l.ThrottleInterval > 0 }},
}

// missingPolicies lists what a policy can ask for in vain.
var missingPolicies = []feature[*Policy]{
	{"hmac_enabled", "HMAC request signatures", func(p *Policy) bool { return p.HMACEnabled }},
	{"enable_http_signature_validation", "HTTP message signatures", func(p *Policy) bool { return p.SignatureValidation }},
	{"smoothing.enabled", "rate limit smoothing", func(p *Policy) bool { return isOn(p.Smoothing, "enabled") }},
	{"post_expiry_action", "deletion of expired keys", func(p *Policy) bool { return p.PostExpiryAction == "delete" }},
	{"meta_data.rate_limit_pattern", "custom counters", func(p *Policy) bool { return hasPattern(p.MetaData) }},
}

// missingSessions lists what a key can ask for in vain.
var missingSessions = []feature[*Session]{
	{"basic_auth_data.password", "basic authentication", func(s *Session) bool { return s.BasicAuth != nil && s.BasicAuth.Password != "" }},
	{"monitor.trigger_limits", "quota monitors", func(s *Session) bool { return s.Monitor != nil && len(s.Monitor.TriggerLimits) > 0 }},
	{"meta_data.rate_limit_pattern", "custom counters", func(s *Session) bool { return hasPattern(s.MetaData) }},
}

// missingExtras lists what the rarer members of a key can ask for in vain.
var missingExtras = []feature[*Extra]{
	{"jwt_data.secret", "JWT authentication", func(e *Extra) bool { return says(part(e.JWT, "secret")) }},
	{"hmac_enabled", "HMAC request signatures", func(e *Extra) bool { return e.HMACEnabled }},
	{"certificate", "client certificates as tokens", func(e *Extra) bool { return e.Certificate != "" }},
	{"mtls_static_certificate_bindings", "certificate bindings", func(e *Extra) bool { return len(e.CertificateBindings) > 0 }},
	{"oauth_client_id", "OAuth 2.0 authentication", func(e *Extra) bool { return e.OAuthClientID != "" }},
	{"oauth_keys", "OAuth 2.0 authentication", func(e *Extra) bool { return says(e.OAuthKeys) }},
	{"smoothing.enabled", "rate limit smoothing", func(e *Extra) bool { return isOn(e.Smoothing, "enabled") }},
	{"session_lifetime", "removal of keys after a time; use expires", func(e *Extra) bool { return e.SessionLifetime > 0 }},
	{"post_expiry_action", "deletion of expired keys", func(e *Extra) bool { return e.PostExpiryAction == "delete" }},
}

// hasPattern tells whether meta data names counters after something else than
// the key.
func hasPattern(meta map[string]json.RawMessage) bool { return says(meta["rate_limit_pattern"]) }
