// Package access decides what the key of a request may do with the API. It compiles
// the access rights of session and policies into a grant, once, and checks requests
// against it.
package access

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

const noAccess = "Access to this API has been disallowed"

var (
	unusable  = pipeline.NewRejection(pipeline.ReasonAccessDenied, 403, noAccess).Raising(event.AuthFailure)
	denied    = pipeline.NewRejection(pipeline.ReasonAccessDenied, 403, noAccess)
	inactive  = pipeline.NewRejection(pipeline.ReasonAuthInactive, 403, "Key is inactive, please renew").Raising(event.KeyExpired)
	urlDenied = pipeline.NewRejection(pipeline.ReasonURLDenied, 403, "Access to this resource has been disallowed")
)

// Options says how grants are compiled.
type Options struct {
	Naming     counter.Naming // of the counters that keys are counted under
	MasterKeys bool           // keys with neither policies nor access rights may call every API
	Triggers   bool           // quotas raise events at thresholds
	Log        *slog.Logger
}

// Access compiles and caches the grants of all APIs.
type Access struct {
	opts      Options
	urls      urlTable
	versions  versionTable
	endpoints endpointTable
	clocks    clocks
	policies  atomic.Pointer[policies]
	reported  reports
	makers    sync.Pool // of *maker
}

// policies is a set of policies with its weak pointer, which grants are scoped by.
type policies struct {
	set  *definition.PolicySet
	name weak.Pointer[definition.PolicySet]
}

// New returns an Access without grants.
func New(o Options) *Access {
	return &Access{
		opts: o, urls: urlTable{known: make(map[digest]weak.Pointer[urlRules])},
		makers: sync.Pool{New: func() any { return new(maker) }},
	}
}

// Compile returns the stage for an API, or nil when it is keyless.
func (a *Access) Compile(def *definition.API) pipeline.Stage {
	if def.UseKeyless {
		return nil
	}
	return &stage{Access: a, def: def, api: weak.Make(def)}
}

type stage struct {
	*Access
	def *definition.API
	api weak.Pointer[definition.API]
}

// Handle implements pipeline.Stage. A grant is compiled at the key's first request,
// and again when policies, API or session change.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	scope := pipeline.GrantScope{API: s.api, Policies: s.nameOf(ex.Policies)}
	grant := ex.Grants.Find(scope)
	if grant == nil {
		grant = s.grantFor(ex, s.def)
		if !ex.IsDry() {
			ex.Grants.Keep(scope, grant)
		}
	}
	ex.Grant = grant
	if grant.Refusal != nil {
		return ex.Reject(grant.Refusal)
	}
	if grant.URLs == nil && grant.Special == nil && grant.Versions == nil { // most keys
		return pipeline.Next
	}
	if r := grantRefusal(ex, grant); r != nil {
		return rejectOrReport(ex, grant, r)
	}
	return pipeline.Next
}

// grantRefusal returns why a grant does not permit a request, or nil.
func grantRefusal(ex *pipeline.Exchange, grant *pipeline.Grant) *pipeline.Rejection {
	switch {
	case grant.Special != nil && grant.Special.Unlisted:
		return denied
	case grant.Versions != nil && !grant.Versions.Has(ex.Version.Place):
		return versionDenied
	case grant.URLs != nil && !grant.URLs.Allows(ex.Call.Method, ex.Path):
		return urlDenied
	}
	return nil
}

// rejectOrReport refuses a request, or records that a report-only policy would.
func rejectOrReport(ex *pipeline.Exchange, grant *pipeline.Grant, r *pipeline.Rejection) pipeline.Verdict {
	if grant.Special == nil || grant.Special.ReportOnly.Access == "" {
		return ex.Reject(r)
	}
	ex.ReportOnly.Add(r.Reason, grant.Special.ReportOnly.Access)
	return pipeline.Next
}

// nameOf returns the weak pointer of a set of policies. It is made once for those in
// force: that costs more than the rest of Handle.
func (a *Access) nameOf(set *definition.PolicySet) weak.Pointer[definition.PolicySet] {
	if p := a.policies.Load(); p != nil && p.set == set {
		return p.name
	}
	p := &policies{set: set, name: weak.Make(set)}
	a.policies.Store(p)
	return p.name
}

// maxReports bounds how many problems are logged for one set of policies.
const maxReports = 100

// reports is what has been logged since the policies last changed: a missing policy
// concerns all its keys and is logged once.
type reports struct {
	mu   sync.Mutex
	set  *definition.PolicySet
	seen map[string]bool
}

// first reports whether text is new under these policies.
func (r *reports) first(set *definition.PolicySet, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set != set || r.seen == nil {
		r.set, r.seen = set, make(map[string]bool)
	}
	if r.seen[text] || len(r.seen) >= maxReports {
		return false
	}
	r.seen[strings.Clone(text)] = true // it may be part of a large buffer
	return true
}
