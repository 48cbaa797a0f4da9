package targets

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/internal/definition"
)

// shared is what the versions of an API have in common.
type shared struct {
	api     string
	hash    [16]byte // of what it was made of
	urls    []target
	group   *group   // of urls; nil: there is one, of which nothing is to be known
	watched []*group // of addresses that are checked and not called
	breaker *circuit // nil: none for all calls
	tasks   []*task
}

// target is a URL that calls may go to, and where the definition has it.
type target struct{ url, at string }

// ownTarget is where a definition has the one target that it must have.
const ownTarget = "proxy.target_url"

// plain reports whether there is one target, with neither checks nor breakers.
func (s *shared) plain() bool { return s.group == nil && len(s.watched) == 0 && s.breaker == nil }

// hashOf returns a hash of the members that the versions of a definition share.
func hashOf(def *definition.API) [16]byte {
	p := &def.Proxy
	part := definition.API{
		ID: def.ID, UptimeTests: def.UptimeTests, UpstreamCertificates: def.UpstreamCertificates,
		Proxy: definition.Proxy{
			TargetURL: p.TargetURL, EnableLoadBalancing: p.EnableLoadBalancing, Transport: p.Transport,
			TargetList: p.TargetList, Ejection: p.Ejection, HealthCheck: p.HealthCheck, CircuitBreaker: p.CircuitBreaker,
		},
	}
	return part.ContentHash()
}

// share makes what the versions of a definition have in common.
func (c *Registry) share(def *definition.API) (*shared, error) {
	rules := def.Upstreams()
	s := &shared{api: def.ID}
	if rules.Breaker != nil {
		s.breaker = newCircuit(*rules.Breaker, def.ID, "", c.opts.Raise)
	}
	if len(rules.Targets) == 0 {
		rules.Targets = []definition.WeightedTarget{{URL: def.Proxy.TargetURL, Weight: 1, At: ownTarget}}
	}
	for _, t := range rules.Targets {
		s.urls = append(s.urls, target{t.URL, t.At})
	}
	if len(rules.Targets) > 1 || rules.Check != nil || len(rules.Uptime) > 0 {
		w := watcher{calls: c, def: def, shared: s}
		return s, w.watch(rules)
	}
	return s, nil
}

// A watcher makes the group of an API, and the checks of its targets.
type watcher struct {
	calls  *Registry
	def    *definition.API
	shared *shared
}

func (w *watcher) watch(rules definition.UpstreamRules) error {
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
	targets := make([]member, len(checked))
	for i, a := range checked {
		targets[i] = a.member
		targets[i].Weight = rules.Targets[i].Weight
	}
	w.shared.group = newGroup(groupOptions{API: w.def.ID, Targets: targets, Ejection: rules.Ejection, Raise: w.calls.opts.Raise})
	if rules.Check != nil {
		for i, a := range checked {
			w.add(*rules.Check, a.origin+rules.Check.Path, a.tls, turning(w.shared.group, []int{i}))
		}
	}
	return w.uptime(rules.Uptime, places)
}

// uptime makes the checks that name addresses. Those of targets decide on them.
func (w *watcher) uptime(checks []definition.Check, places map[string][]int) error {
	for _, check := range checks {
		a, err := w.address(check.URL, check.At)
		if err != nil {
			return err
		}
		group, at := w.shared.group, places[a.Host]
		if len(at) == 0 {
			a.Weight = 1
			group, at = newGroup(groupOptions{API: w.def.ID, Targets: []member{a.member}, Raise: w.calls.opts.Raise}), []int{0}
			w.shared.watched = append(w.shared.watched, group)
		}
		w.add(check, check.URL, a.tls, turning(group, at))
	}
	return nil
}

func (w *watcher) add(check definition.Check, url string, conf *tls.Config, turn func(bool, checkResult)) {
	w.shared.tasks = append(w.shared.tasks, newTask(check, url, conf, turn))
}

// turning returns a function that passes the result of a check to a group, for its
// targets at the given places.
func turning(group *group, places []int) func(bool, checkResult) {
	return func(up bool, r checkResult) {
		why := failure{Status: r.Status}
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
	member
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
	a := address{member: member{Host: t.Address}, tls: id.Config, origin: "http://" + t.Host}
	if t.TLS {
		a.origin = "https://" + t.Host
	}
	a.URL, _, _ = strings.Cut(url, "?")
	return a, nil
}
