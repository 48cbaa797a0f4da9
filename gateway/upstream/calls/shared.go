package calls

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/upstream/balance"
	"github.com/sluicegate/sluice/gateway/upstream/breaker"
	"github.com/sluicegate/sluice/gateway/upstream/health"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/upstreams"
)

// shared is what the versions of an API have in common.
type shared struct {
	api     string
	hash    [16]byte // of what it was made of
	urls    []target
	group   *balance.Group   // of urls; nil: there is one, of which nothing is to be known
	watched []*balance.Group // of addresses that are checked and not called
	breaker *breaker.Circuit // nil: none for all calls
	tasks   []*health.Task
}

// target is a URL that calls may go to, and where the definition has it.
type target struct{ url, at string }

// ownTarget is where a definition has the one target that it must have.
const ownTarget = "proxy.target_url"

// plain tells whether there is nothing to it but where calls go.
func (s *shared) plain() bool { return s.group == nil && len(s.watched) == 0 && s.breaker == nil }

// hashOf tells definitions apart by what is shared between their versions.
func hashOf(def *definition.API) [16]byte {
	p := &def.Proxy
	part := definition.API{
		ID: def.ID, UptimeTests: def.UptimeTests, UpstreamCertificates: def.UpstreamCertificates,
		Proxy: definition.Proxy{
			TargetURL: p.TargetURL, EnableLoadBalancing: p.EnableLoadBalancing, Extra: p.Extra, Transport: p.Transport,
		},
	}
	return part.ContentHash()
}

// share makes what the versions of a definition have in common.
func (c *Calls) share(def *definition.API) (*shared, error) {
	rules, err := def.Upstreams()
	if err != nil {
		return nil, err
	}
	s := &shared{api: def.ID}
	if rules.Breaker != nil {
		s.breaker = breaker.NewCircuit(*rules.Breaker, def.ID, "", c.opts.Raise)
	}
	if len(rules.Targets) == 0 {
		rules.Targets = []upstreams.Target{{URL: def.Proxy.TargetURL, Weight: 1, At: ownTarget}}
	}
	for _, t := range rules.Targets {
		s.urls = append(s.urls, target{t.URL, t.At})
	}
	if len(rules.Targets) > 1 || rules.Check != nil || len(rules.Uptime) > 0 {
		w := watcher{calls: c, def: def, shared: s}
		err = w.watch(rules)
	}
	return s, err
}

// A watcher makes the group of an API, and the checks of its targets.
type watcher struct {
	calls  *Calls
	def    *definition.API
	shared *shared
}

func (w *watcher) watch(rules upstreams.Rules) error {
	places := make(map[string][]int) // by address
	checked := make([]address, len(rules.Targets))
	for i, t := range rules.Targets {
		a, err := w.address(t.URL, t.At)
		if err != nil {
			return err
		}
		checked[i] = a
		places[a.Host] = append(places[a.Host], i)
	}
	targets := make([]balance.Target, len(checked))
	for i, a := range checked {
		targets[i] = a.Target
		targets[i].Weight = rules.Targets[i].Weight
	}
	w.shared.group = balance.NewGroup(balance.Options{API: w.def.ID, Targets: targets, Ejection: rules.Ejection, Raise: w.calls.opts.Raise})
	if rules.Check != nil {
		for i, a := range checked {
			w.add(*rules.Check, a.origin+rules.Check.Path, a.tls, turning(w.shared.group, []int{i}))
		}
	}
	return w.uptime(rules.Uptime, places)
}

// uptime makes the checks that name addresses. Those of targets decide on them.
func (w *watcher) uptime(checks []upstreams.Check, places map[string][]int) error {
	for _, check := range checks {
		a, err := w.address(check.URL, check.At)
		if err != nil {
			return err
		}
		group, at := w.shared.group, places[a.Host]
		if len(at) == 0 {
			a.Weight = 1
			group, at = balance.NewGroup(balance.Options{API: w.def.ID, Targets: []balance.Target{a.Target}, Raise: w.calls.opts.Raise}), []int{0}
			w.shared.watched = append(w.shared.watched, group)
		}
		w.add(check, check.URL, a.tls, turning(group, at))
	}
	return nil
}

func (w *watcher) add(check upstreams.Check, url string, conf *tls.Config, turn func(bool, health.Result)) {
	w.shared.tasks = append(w.shared.tasks, health.NewTask(check, url, conf, turn))
}

// turning tells a group what a check finds of its targets at some places.
func turning(group *balance.Group, places []int) func(bool, health.Result) {
	return func(up bool, r health.Result) {
		why := balance.Failure{Status: r.Status}
		if r.Err != nil {
			why.Error = r.Err.Error()
		}
		for _, i := range places {
			group.Turn(i, up, why)
		}
	}
}

// address is where a URL leads.
type address struct {
	balance.Target
	origin string // scheme, host and port
	tls    *tls.Config
}

func (w *watcher) address(url, at string) (address, error) {
	t, err := match.CompileTarget(url)
	if err == nil {
		err = reachable.Check(t.Address)
	}
	if err != nil {
		return address{}, fmt.Errorf("%s: %w", at, err)
	}
	id, err := w.calls.files.Compile(w.def, t, w.calls.opts.Upstream.Given())
	if err != nil {
		return address{}, err
	}
	a := address{Target: balance.Target{Host: t.Address}, tls: id.Config, origin: "http://" + t.Host}
	if t.TLS {
		a.origin = "https://" + t.Host
	}
	a.URL, _, _ = strings.Cut(url, "?")
	return a, nil
}
