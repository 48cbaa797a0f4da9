package limit

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// apiLimits are the rates that all callers of an API share.
type apiLimits struct {
	paths *match.Endpoints[*counter.Limit] // of single endpoints; nil: none
	all   *counter.Limit                   // of all calls; nil: none
}

// gather adds the rates that a request falls under. The nil apiLimits have none.
func (a *apiLimits) gather(r *round, ex *pipeline.Exchange) {
	if a == nil {
		return
	}
	if a.paths != nil {
		var l *counter.Limit
		var found bool
		if l, found, ex.Buf = a.paths.FindStrict(ex.Call.Method, ex.Path, ex.PathBuf, ex.Buf); found {
			r.add(pathRate, l)
		}
	}
	if a.all != nil {
		r.add(apiRate, a.all)
	}
}

// sharedRates compiles the rates that all callers of a version share, or nil when
// there are none. Versions share the rate of the API; each has its own rates of
// endpoints.
func (l *Limiter) sharedRates(def *definition.API, version *definition.Version) (*apiLimits, error) {
	if def.DisableRateLimit {
		return nil, nil
	}
	a := &apiLimits{}
	name := l.naming.APIRate(def.ID)
	if r := def.GlobalRateLimit; r.Limits() {
		limit := rights.RateOf(name, r.Rate, r.Per)
		a.all = &limit
	}
	if version != nil {
		if err := a.compilePaths(name, version); err != nil {
			return nil, err
		}
	}
	if a.all == nil && a.paths == nil {
		return nil, nil
	}
	return a, nil
}

func (a *apiLimits) compilePaths(name string, version *definition.Version) error {
	rates := version.RateLimits()
	if len(rates) == 0 {
		return nil
	}
	list := make([]match.Endpoint[*counter.Limit], len(rates))
	for i, one := range rates {
		// No id and no method has a colon in it.
		limit := rights.RateOf(fmt.Sprintf("%s:%s:%s:%s", name, version.Name, one.Method, one.Path), one.Rate, one.Per)
		list[i] = match.Endpoint[*counter.Limit]{
			Path: one.Path, Method: one.Method, Value: &limit,
			Options: match.PatternOptions{IgnoreCase: one.IgnoreCase || version.IgnoreEndpointCase},
		}
	}
	var err error
	if a.paths, err = match.CompileEndpoints(list); err != nil {
		return fmt.Errorf("extended_paths.rate_limit%w", err)
	}
	return nil
}
