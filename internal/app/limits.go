package app

import (
	"github.com/sluicegate/sluice/gateway/stage/access"
	"github.com/sluicegate/sluice/gateway/stage/limit"
)

// newLimits creates the limiter of keys and APIs and, where they are enforced, of
// organisations.
func (pl *plane) newLimits(p planeParts) {
	keys := p.cfg.Keys
	pl.limits = limit.New(limit.Options{
		Counter: p.stores.counters, Naming: p.stores.naming, Waiting: p.cfg.Quota.MaxWaiting, Monitor: monitorOf(p), Log: p.log,
	})
	if p.cfg.EnforceOrgQuotas {
		pl.orgs = pl.limits.Orgs(limit.OrgOptions{
			Store: p.stores.keys, TTL: keys.CacheTTL, StaleTTL: staleTTL(keys), Timeout: storeTimeout,
			Closed: p.cfg.Quota.OnStoreError == "closed",
		})
	}
}

// monitorOf returns the monitor of quota usage, or nil.
func monitorOf(p planeParts) *limit.Monitor {
	m := p.cfg.Monitor
	if !m.EnableTriggerMonitors || !m.MonitorUserKeys && !m.MonitorOrgKeys {
		return nil
	}
	return &limit.Monitor{Events: p.events, Global: m.GlobalTriggerLimit, Keys: m.MonitorUserKeys, Orgs: m.MonitorOrgKeys, RawKeys: p.cfg.Events.RawKeys}
}

// accessOptions returns how the grants of keys are compiled.
func accessOptions(p planeParts) access.Options {
	m := p.cfg.Monitor
	return access.Options{
		Naming: p.stores.naming, MasterKeys: p.cfg.Keys.AllowMasterKeys, Log: p.log,
		Triggers: m.EnableTriggerMonitors && m.MonitorUserKeys,
	}
}
