package tunnels

import (
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/http1"
)

var (
	keyFull = pipeline.NewRejection(pipeline.ReasonTunnelLimit, 429, "Too many connections of this key are open")
	apiFull = pipeline.NewRejection(pipeline.ReasonTunnelLimit, 503, "Too many connections to this API are open, please try again")
)

// retryAfter is when to try again where an API has as many tunnels as it may, in
// seconds.
const retryAfter = 5

// Compile returns the stage that refuses one tunnel too many before the upstream is
// called, or nil for an API without a bound. r may be nil.
func (r *Registry) Compile(def *definition.API) pipeline.Stage {
	if r == nil || r.opts.PerAPI == 0 && (r.opts.PerKey == 0 || def.UseKeyless) || def.IsGraphQL() {
		return nil
	}
	return &stage{r}
}

// stage refuses early what Hold would refuse. Hold decides, as other tunnels may be
// opened in between.
type stage struct{ registry *Registry }

// Handle refuses a request for a tunnel when no slot is free.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if !wishes(ex.Call) {
		return pipeline.Next
	}
	return Refuse(ex, s.registry.Full(AboutOf(ex)))
}

// AboutOf returns the API and the key of the tunnel that an exchange opens. A tunnel
// through several APIs with one key counts once for the key, and one that returns to
// an API counts once for that API.
func AboutOf(ex *pipeline.Exchange) About {
	a := About{API: ex.API.Definition.ID, Key: ex.KeyName, Identity: ex.KeyHash}
	for front := ex.Parent; front != nil; front = front.Parent {
		if front.KeyHash == ex.KeyHash {
			a.Identity = ""
		}
		a.Again = a.Again || front.API.Definition.ID == a.API
	}
	return a
}

// Refuse rejects an exchange because of a bound. It returns Next for Free.
func Refuse(ex *pipeline.Exchange, full Bound) pipeline.Verdict {
	switch full {
	case OfKey:
		return ex.Reject(keyFull)
	case OfAPI:
		ex.RetryAfter = retryAfter
		return ex.Reject(apiFull)
	}
	return pipeline.Next
}

// wishes reports whether a request wants to leave HTTP, in a form that may be
// forwarded.
func wishes(call *wire.Call) bool {
	if call.Find(wire.NameUpgrade) == nil || call.HTTP10 || call.HasBody() || string(call.Method) != "GET" {
		return false
	}
	return http1.Lists(call.Get(wire.NameConnection), upgrade) && http1.IsUpgradable(call.Get(wire.NameUpgrade))
}

var upgrade = []byte("upgrade")

// Explain reports how many tunnels there may be.
func (s *stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	if !wishes(ex.Call) {
		return
	}
	o := &s.registry.opts
	for _, bound := range []struct {
		rule string
		most int
	}{{"gateway.max_tunnels_per_key", o.PerKey}, {"gateway.max_tunnels_per_api", o.PerAPI}} {
		if bound.most > 0 {
			f.Fact(bound.rule, strconv.Itoa(bound.most), "", "setting")
		}
	}
	switch ex.Rejection {
	case keyFull:
		f.Fix = "close connections of the key, or raise gateway.max_tunnels_per_key"
	case apiFull:
		f.Fix = "wait until others close theirs, or raise gateway.max_tunnels_per_api"
	}
}
