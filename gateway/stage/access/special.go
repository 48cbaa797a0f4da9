package access

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// specialOf compiles the rules that few keys have, or nil when this key has none. g
// has its limits already.
func (a *Access) specialOf(g *pipeline.Grant, r *rights.Rights, may *rights.Access, keeper *counterNames) (*pipeline.Special, error) {
	var sp pipeline.Special
	used := false
	if g.Rate >= 0 && may.Throttle.Retries > 0 && may.Throttle.Interval > 0 {
		sp.Throttle = pipeline.Throttle{
			Interval: time.Duration(may.Throttle.Interval * float64(time.Second)), Retries: may.Throttle.Retries,
		}
		used = true
	}
	if g.Quota >= 0 && may.Quota.Calendar != "" {
		clock, err := a.clocks.find(definition.Calendar{Every: may.Quota.Calendar, Zone: may.Quota.Zone})
		if err != nil {
			return nil, err
		}
		sp.Calendar, used = clock, true
	}
	if a.opts.Triggers && g.Quota >= 0 && r.Session.Monitor != nil && len(r.Session.Monitor.TriggerLimits) > 0 {
		sp.Triggers, used = r.Session.Monitor.TriggerLimits, true
	}
	if len(may.Endpoints) > 0 && !keeper.def.DisableRateLimit {
		rates, err := a.endpoints.find(may, keeper)
		if err != nil {
			return nil, err
		}
		if rates != nil {
			sp.Endpoints, used = rates, true
		}
	}
	if m := r.ReportOnly(); m != (rights.ReportOnly{}) {
		sp.ReportOnly, used = reportOnly(m, may), true
	}
	if !used {
		return nil, nil
	}
	kept := sp // only keys that need one allocate it
	return &kept, nil
}

// reportOnly returns the report-only policies. For rate and quota it is the policy
// that set them.
func reportOnly(m rights.ReportOnly, may *rights.Access) pipeline.ReportOnlyPolicies {
	named := pipeline.ReportOnlyPolicies(m)
	if named.Rate != "" && may.Rate.From.ID != "" {
		named.Rate = may.Rate.From.ID
	}
	if named.Quota != "" && may.Quota.From.ID != "" {
		named.Quota = may.Quota.From.ID
	}
	return named
}

// clocks shares the clocks of quotas with the same calendar.
type clocks struct {
	mu    sync.Mutex
	known map[definition.Calendar]*definition.QuotaClock // bounded by units and zones
}

func (c *clocks) find(calendar definition.Calendar) (*definition.QuotaClock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[calendar]; known != nil {
		return known, nil
	}
	made, err := definition.NewQuotaClock(calendar)
	if err != nil {
		return nil, err
	}
	if c.known == nil {
		c.known = make(map[definition.Calendar]*definition.QuotaClock)
	}
	c.known[calendar] = made
	return made, nil
}

// counterNames has the parts of the counter names of one key and API.
type counterNames struct {
	naming  counter.Naming
	def     *definition.API
	subject string
}

// endpointRules are rates of single endpoints, shared between keys with the same
// rates.
type endpointRules struct {
	calls *match.Endpoints[int32] // indices into rates
	rates []rights.EndpointRate
}

// endpointRates are the rates of one key. It implements pipeline.EndpointRates.
type endpointRates struct {
	*endpointRules
	names  rights.EndpointNames
	limits []atomic.Pointer[counter.Limit] // as in rates; nil before the first such call
}

// Limit implements pipeline.EndpointRates.
func (e *endpointRates) Limit(method, path, buf []byte) (l *counter.Limit, grown []byte) {
	at, found, grown := e.calls.FindStrict(method, path, nil, buf)
	if !found {
		return nil, grown
	}
	if known := e.limits[at].Load(); known != nil {
		return known, grown
	}
	made := e.names.Limit(&e.rates[at])
	e.limits[at].CompareAndSwap(nil, &made)
	return e.limits[at].Load(), grown
}

// endpointTable shares rules. It holds them weakly: they are freed with the last grant
// that uses them.
type endpointTable struct {
	mu    sync.Mutex
	known map[digest]weak.Pointer[endpointRules]
}

// find returns the rates of a key, or nil when none of them limits.
func (t *endpointTable) find(may *rights.Access, names *counterNames) (*endpointRates, error) {
	var limiting []rights.EndpointRate
	for _, e := range may.Endpoints {
		if e.Rate.Calls > 0 && e.Rate.Per > 0 {
			limiting = append(limiting, e)
		}
	}
	if len(limiting) == 0 {
		return nil, nil
	}
	rules, err := t.rules(limiting)
	if err != nil {
		return nil, err
	}
	return &endpointRates{
		endpointRules: rules, names: may.EndpointNames(names.naming, names.subject),
		limits: make([]atomic.Pointer[counter.Limit], len(rules.rates)),
	}, nil
}

func (t *endpointTable) rules(rates []rights.EndpointRate) (*endpointRules, error) {
	h := sha256.New()
	for _, e := range rates {
		write(h, e.Path)
		write(h, e.Method)
		write(h, fmt.Sprint(e.Rate.Calls, e.Rate.Per))
	}
	var id digest
	h.Sum(id[:0])
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[id].Value(); known != nil {
		return known, nil
	}
	made, err := compileEndpoints(rates)
	if err != nil {
		return nil, err
	}
	if t.known == nil {
		t.known = make(map[digest]weak.Pointer[endpointRules])
	}
	t.known[id] = weak.Make(made)
	runtime.AddCleanup(made, t.forget, id)
	return made, nil
}

// forget removes rules that were freed, unless they have been compiled again.
func (t *endpointTable) forget(id digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[id].Value() == nil {
		delete(t.known, id)
	}
}

func compileEndpoints(rates []rights.EndpointRate) (*endpointRules, error) {
	list := make([]match.Endpoint[int32], len(rates))
	for i, e := range rates {
		list[i] = match.Endpoint[int32]{Path: e.Path, Method: e.Method, Value: int32(i)}
	}
	calls, err := match.CompileEndpoints(list)
	if err != nil {
		return nil, fmt.Errorf("endpoints%w", err)
	}
	return &endpointRules{calls: calls, rates: rates}, nil
}
