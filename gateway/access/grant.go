package access

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// Grants that refuse everything, shared by all keys that they are for.
var (
	unusableGrant = refusing(unusable)
	deniedGrant   = refusing(denied)
	inactiveGrant = refusing(inactive)
)

func refusing(r *pipeline.Rejection) *pipeline.Grant {
	return &pipeline.Grant{Refusal: r, Rate: -1, Quota: -1}
}

// grantFor makes the grant of a request's key, and logs what keeps one from
// being used.
func (a *Access) grantFor(ex *pipeline.Exchange, def *definition.API) *pipeline.Grant {
	effective, err := rights.Effective(ex.Session, ex.Policies)
	grant := unusableGrant
	if err == nil {
		a.reportMissing(ex, effective.Missing)
		grant, err = a.GrantFor(effective, def, ex.KeyHash)
	}
	if err != nil && a.reported.first(ex.Policies, err.Error()) {
		a.opts.Log.Warn("a key cannot be used, nor can others for the same reason", "api", def.ID, "key", ex.KeyName, "err", err)
	}
	return grant
}

func (a *Access) reportMissing(ex *pipeline.Exchange, missing []string) {
	for _, id := range missing {
		if a.reported.first(ex.Policies, id) {
			a.opts.Log.Warn("a policy that keys carry does not exist; their other policies apply", "policy", id, "key", ex.KeyName)
		}
	}
}

// GrantFor compiles what a key with these rights may do with an API. subject is
// the key's hash. With an error the grant refuses every call.
func (a *Access) GrantFor(r *rights.Rights, def *definition.API, subject string) (*pipeline.Grant, error) {
	if r.Inactive.Value {
		return inactiveGrant, nil
	}
	may, ok := r.For(def.ID)
	if !ok || r.Master && !a.opts.MasterKeys {
		return deniedGrant, nil
	}
	urls, err := a.urls.of(may.AllowedURLs)
	if err != nil {
		return unusableGrant, err
	}
	g := &pipeline.Grant{Rate: -1, Quota: -1, Limits: make([]counter.Limit, 0, 2)}
	if urls != nil { // a nil *urlRules in the interface would not be nil
		g.URLs = urls
	}
	if len(r.Policies) > 0 {
		g.Policy = r.Policies[0]
	}
	a.limit(g, may, def, subject)
	if err := counter.Check(g.Limits); err != nil {
		return unusableGrant, err
	}
	return g, nil
}

// limit adds the limits that calls to an API are counted under.
func (a *Access) limit(g *pipeline.Grant, may *rights.Access, def *definition.API, subject string) {
	if !def.DisableRateLimit {
		if rate, ok := may.RateLimit(a.opts.Naming, subject); ok {
			g.Rate = int8(len(g.Limits))
			g.Limits = append(g.Limits, rate)
		}
	}
	if def.QuotaOff() {
		return
	}
	g.Unlimited = may.Quota.Max < 0
	if quota, ok := may.QuotaLimit(a.opts.Naming, subject); ok {
		g.Quota = int8(len(g.Limits))
		g.Limits = append(g.Limits, quota)
	}
}
