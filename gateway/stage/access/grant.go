package access

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// A maker is what it takes to make a grant, and is used again for the next: with
// more keys in use than are kept ready, one is made for most requests.
type maker struct {
	rights rights.Rights
	may    rights.Access
	naming counter.Naming // of the grant's counters
}

// grantFor makes the grant of a request's key, and logs what keeps one from
// being used.
func (a *Access) grantFor(ex *pipeline.Exchange, def *definition.API) *pipeline.Grant {
	m := a.makers.Get().(*maker)
	defer a.putBack(m)
	m.naming = a.opts.Naming
	grant := pipeline.NewGrant()
	err := m.rights.Enforce(ex.Session, ex.Policies)
	if err == nil {
		if !ex.IsDry() {
			a.reportMissing(ex, m.rights.Missing)
		}
		err = a.compile(grant, m, def, ex.KeyHash)
	}
	if err == nil {
		return grant
	}
	if !ex.IsDry() && a.reported.first(ex.Policies, err.Error()) {
		a.opts.Log.Warn("a key cannot be used, nor can others for the same reason", "api", def.ID, "key", ex.KeyName, "err", err)
	}
	grant.Clear().Refusal = unusable
	return grant
}

func (a *Access) putBack(m *maker) {
	m.rights.Forget()
	m.may.Forget()
	a.makers.Put(m)
}

func (a *Access) reportMissing(ex *pipeline.Exchange, missing []string) {
	for _, id := range missing {
		if a.reported.first(ex.Policies, id) {
			a.opts.Log.Warn("a policy that keys carry does not exist; their other policies apply", "policy", id, "key", ex.KeyName)
		}
	}
}

// compile compiles the rights of a key for an API into g, which is empty. subject is
// the key's hash. With an error g is invalid.
func (a *Access) compile(g *pipeline.Grant, m *maker, def *definition.API, subject string) (err error) {
	r, may := &m.rights, &m.may
	if r.Inactive.Value {
		g.Refusal = inactive
		return nil
	}
	ok := r.Fill(may, def.ID)
	// A report-only list lets a key pass to all APIs of its organisation.
	unlisted := !ok && r.ReportOnly().Access != "" && def.OrgID == r.Session.OrgID
	if unlisted {
		*may = *r.Unlisted(def.ID)
	}
	if !ok && !unlisted || r.Master && !a.opts.MasterKeys || foreign(r.Session, def) {
		g.Refusal = denied
		return nil
	}
	urls, err := a.urls.find(may.AllowedURLs)
	if err != nil {
		return err
	}
	if urls != nil { // a nil *urlRules in the interface would not be nil
		g.URLs = urls
	}
	if !r.Master {
		g.Versions = a.versions.find(def, may.Versions)
	}
	if len(r.Policies) > 0 {
		g.Policy = r.Policies[0]
	}
	g.Meta = r.PolicyMeta()
	m.limit(g, def, subject)
	// Names that are made later do not use m.
	if g.Special, err = a.specialOf(g, r, may, &counterNames{a.opts.Naming, def, subject}); err != nil {
		return err
	}
	if unlisted {
		g.Special.Unlisted = true
	}
	return counter.Check(g.Limits())
}

// foreign reports whether a key and an API are of different organisations. Access
// rights of one organisation's keys never open an API of another.
func foreign(s *definition.Session, def *definition.API) bool {
	return s.OrgID != "" && def.OrgID != "" && s.OrgID != def.OrgID
}

// limit adds the limits that calls to an API are counted under.
func (m *maker) limit(g *pipeline.Grant, def *definition.API, subject string) {
	may := &m.may
	if !def.DisableRateLimit {
		if rate, ok := may.RateLimit(m.naming, subject); ok {
			g.Rate = g.AddLimit(rate)
		}
	}
	if def.QuotaOff() {
		return
	}
	g.Unlimited = may.Quota.Max < 0
	if quota, ok := may.QuotaLimit(m.naming, subject); ok {
		g.Quota = g.AddLimit(quota)
	}
}
