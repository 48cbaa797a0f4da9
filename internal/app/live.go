package app

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/control"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/definition"
)

// live exposes the configuration in force to the gateway API, which is created before
// the gateway.
type live struct {
	gateway atomic.Pointer[gateway.Gateway]
	admin   *source.Admin                      // nil: files
	keys    func() (ready bool, detail string) // what is served without the key store; "": it answers

	stopping atomic.Bool // no new requests are accepted
}

// refusal returns the record of a refused request, or nil.
func (l *live) refusal(id string) any {
	if g := l.gateway.Load(); g != nil {
		if found, ok := g.Refusal(id); ok {
			return found
		}
	}
	return nil
}

func (l *live) snapshot() *snapshot.Snapshot {
	if g := l.gateway.Load(); g != nil {
		return g.Current()
	}
	return nil
}

// Revision implements control.Live.
func (l *live) Revision() string {
	if s := l.snapshot(); s != nil {
		return s.Revision
	}
	return ""
}

// APIs implements control.Live.
func (l *live) APIs() []*definition.API {
	if s := l.snapshot(); s != nil {
		return s.APIs()
	}
	return nil
}

// API implements control.Live.
func (l *live) API(id string) *definition.API {
	if s := l.snapshot(); s != nil {
		return s.API(id)
	}
	return nil
}

// Policies implements control.Live.
func (l *live) Policies() *definition.PolicySet {
	if s := l.snapshot(); s != nil {
		return s.Policies()
	}
	return nil
}

// Failed implements control.Live.
func (l *live) Failed() map[string]error {
	if s := l.snapshot(); s != nil {
		return s.Failed
	}
	return nil
}

// source returns the name of the source of the configuration in force.
func (l *live) source() string {
	switch {
	case l.admin == nil:
		return "files"
	case l.admin.Origin() == source.FromDisk:
		return "disk"
	}
	return "admin"
}

// Origin implements control.Live.
func (l *live) Origin() control.Origin {
	o := control.Origin{Source: l.source(), Stale: l.admin != nil && l.admin.Away()}
	if l.admin != nil {
		o.Trouble = l.admin.Trouble()
	}
	if s := l.snapshot(); s != nil {
		o.Since = s.Since
	}
	return o
}

// ready reports whether traffic can be served.
func (l *live) ready() (ready bool, detail string) {
	s := l.snapshot()
	switch {
	case l.stopping.Load():
		return false, "stopping"
	case s == nil:
		text := "no configuration was loaded yet"
		if l.admin != nil && l.admin.Away() {
			text += ": " + l.admin.Trouble()
		}
		return false, text
	}
	if ready, without := l.withoutKeys(); without != "" {
		return ready, without
	}
	switch {
	case len(s.Failed) > 0:
		return true, "some definitions are not served as written"
	case l.admin != nil && l.admin.Away():
		return true, l.admin.Trouble()
	}
	return true, ""
}

// withoutKeys returns what the gateway does without its key store, "" if that answers.
func (l *live) withoutKeys() (ready bool, detail string) {
	if l.keys == nil {
		return true, ""
	}
	return l.keys()
}

// hasKeys reports whether an API in service asks for keys.
func (l *live) hasKeys() bool {
	return slices.ContainsFunc(l.APIs(), func(api *definition.API) bool { return !api.UseKeyless })
}

// orgs returns the organisations of the APIs in service.
func (l *live) orgs() []string {
	seen := map[string]bool{}
	for _, api := range l.APIs() {
		seen[api.OrgID] = true
	}
	return slices.Sorted(maps.Keys(seen))
}
