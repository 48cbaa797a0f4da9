package access

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// refusing makes a grant that refuses everything.
func refusing(r *pipeline.Rejection) *pipeline.Grant {
	g := pipeline.NewGrant()
	g.Refusal = r
	return g
}

// A maker is what it takes to make a grant, and is used again for the next: with
// more keys in use than are kept ready, one is made for most requests.
type maker struct {
	rights rights.Rights
	may    rights.Access
}

// grantFor makes the grant of a request's key, and logs what keeps one from
// being used.
func (a *Access) grantFor(ex *pipeline.Exchange, def *definition.API) *pipeline.Grant {
	m := a.makers.Get().(*maker)
	defer a.putBack(m)
	var grant *pipeline.Grant
	err := m.rights.Enforce(ex.Session, ex.Policies)
	if err != nil {
		grant = refusing(unusable)
	} else {
		if !ex.Dry {
			a.reportMissing(ex, m.rights.Missing)
		}
		grant, err = a.compile(m, def, ex.KeyHash)
	}
	if err != nil && !ex.Dry && a.reported.first(ex.Policies, err.Error()) {
		a.opts.Log.Warn("a key cannot be used, nor can others for the same reason", "api", def.ID, "key", ex.KeyName, "err", err)
	}
	return grant
}

func (a *Access) putBack(m *maker) {
	m.rights.Forget()
	m.may = rights.Access{}
	a.makers.Put(m)
}

func (a *Access) reportMissing(ex *pipeline.Exchange, missing []string) {
	for _, id := range missing {
		if a.reported.first(ex.Policies, id) {
			a.opts.Log.Warn("a policy that keys carry does not exist; their other policies apply", "policy", id, "key", ex.KeyName)
		}
	}
}

// compile compiles what a key with these rights may do with an API. subject is
// the key's hash. With an error the grant refuses every call.
func (a *Access) compile(m *maker, def *definition.API, subject string) (*pipeline.Grant, error) {
	r, may := &m.rights, &m.may
	if r.Inactive.Value {
		return refusing(inactive), nil
	}
	ok := r.Fill(may, def.ID)
	// A list on trial lets a key pass to the APIs of its organisation.
	unlisted := !ok && r.Measured().Access != "" && def.OrgID == r.Session.OrgID
	if unlisted {
		*may = *r.Unlisted(def.ID)
	}
	if !ok && !unlisted || r.Master && !a.opts.MasterKeys || foreign(r.Session, def) {
		return refusing(denied), nil
	}
	urls, err := a.urls.of(may.AllowedURLs)
	if err != nil {
		return refusing(unusable), err
	}
	g := pipeline.NewGrant()
	if urls != nil { // a nil *urlRules in the interface would not be nil
		g.URLs = urls
	}
	if !r.Master {
		g.Versions = a.versions.of(def, may.Versions)
	}
	if len(r.Policies) > 0 {
		g.Policy = r.Policies[0]
	}
	a.limit(g, may, def, subject)
	if g.Special, err = a.specialOf(g, r, may, &counterNames{a.opts.Naming, def, subject}); err != nil {
		return refusing(unusable), err
	}
	if unlisted {
		g.Special.Unlisted = true
	}
	if err := counter.Check(g.Limits()); err != nil {
		return refusing(unusable), err
	}
	return g, nil
}

// foreign tells whether a key and an API are of different organisations. Whoever
// writes the rights of one organisation's keys opens no API of another with them.
func foreign(s *definition.Session, def *definition.API) bool {
	return s.OrgID != "" && def.OrgID != "" && s.OrgID != def.OrgID
}

// limit adds the limits that calls to an API are counted under.
func (a *Access) limit(g *pipeline.Grant, may *rights.Access, def *definition.API, subject string) {
	if !def.DisableRateLimit {
		if rate, ok := may.RateLimit(a.opts.Naming, subject); ok {
			g.Rate = g.AddLimit(rate)
		}
	}
	if def.QuotaOff() {
		return
	}
	g.Unlimited = may.Quota.Max < 0
	if quota, ok := may.QuotaLimit(a.opts.Naming, subject); ok {
		g.Quota = g.AddLimit(quota)
	}
}
