package app

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/internal/doctor"
)

// settings returns the effective settings of this process.
func (p *managementParts) settings() []admin.Setting {
	all := p.cfg.Settings(p.origins)
	shown := make([]admin.Setting, 0, len(all))
	for _, s := range all {
		shown = append(shown, admin.Setting(s))
	}
	return shown
}

// examine checks this machine and the servers of the configuration.
func (p *managementParts) examine(ctx context.Context, ask admin.Ask) []admin.Finding {
	d := doctor.Doctor{Config: p.cfg, Admin: &ownAdmin{url: p.url, ask: ask}, Gateway: p.traffic, Within: true, Now: time.Now}
	found := d.Examine(ctx)
	shown := make([]admin.Finding, 0, len(found))
	for _, f := range found {
		shown = append(shown, admin.Finding{State: string(f.State), Check: f.Check, Detail: f.Detail, Remedy: f.Remedy})
	}
	return shown
}

// ownAdmin is the admin of this process as its user sees it.
type ownAdmin struct {
	url string
	ask admin.Ask
}

// Base implements doctor.Admin.
func (a *ownAdmin) Base() string { return a.url }

// Call implements doctor.Admin. The doctor only reads: method is GET, and there is no body.
func (a *ownAdmin) Call(ctx context.Context, _, path string, _ any) ([]byte, error) {
	return a.ask(ctx, path)
}
