package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/rights"
	"github.com/sluicegate/sluice/internal/sleep"
)

const askAdmin = ", please contact your API administrator"

var (
	orgQuotaExceeded = pipeline.NewRejection(pipeline.ReasonOrgQuota, 403, "This organisation quota has been exceeded"+askAdmin).Raising(event.OrgQuotaExceeded)
	orgRateExceeded  = pipeline.NewRejection(pipeline.ReasonOrgRateLimit, 403, "This organisation rate limit has been exceeded"+askAdmin).Raising(event.OrgRateLimitExceeded)
	orgInactive      = pipeline.NewRejection(pipeline.ReasonOrgInactive, 403, "this organisation access has been disabled"+askAdmin)
	orgUnknown       = pipeline.NewRejection(pipeline.ReasonKeyStoreUnavailable, 503, "Organisations cannot be checked at the moment, please try again")
)

// OrgOptions says how sessions of organisations are looked up and cached.
type OrgOptions struct {
	Store    keystore.Store
	TTL      time.Duration // how long a session is used before it is looked up again
	StaleTTL time.Duration // how much longer it is used while the store is unavailable
	Timeout  time.Duration // for one look-up
	Closed   bool          // refuse calls whose organisation cannot be looked up; else they pass without its limits
}

// Orgs counts the calls of each organisation, with any of its keys or none, under the
// limits of its session, if it has one. It is safe for concurrent use.
type Orgs struct {
	*Limiter
	opts    OrgOptions
	known   sync.Map      // id to *org; every organisation that an API in service ever belonged to
	changes atomic.Uint32 // counts reports that any session may have changed
}

// Orgs returns the counting of organisations by this limiter. Run invalidates cached
// sessions when the store changes.
func (l *Limiter) Orgs(o OrgOptions) *Orgs { return &Orgs{Limiter: l, opts: o} }

// Run watches the store for changes until ctx ends.
func (o *Orgs) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := o.opts.Store.Watch(ctx, o.changed)
		o.changed("") // changes until the next watch begins are not reported
		if ctx.Err() == nil {
			o.log.Warn("watching the key store for organisations ended, trying again", "err", err)
			_ = sleep.For(ctx, time.Second)
		}
	}
}

// changed invalidates the session of an identity that was written or deleted, all
// sessions for "".
func (o *Orgs) changed(identity string) {
	if identity == "" {
		o.changes.Add(1)
		return
	}
	if id := credential.OrgOf(identity); id != "" {
		if known, ok := o.known.Load(id); ok {
			known.(*org).changes.Add(1)
		}
	}
}

// Compile returns the stage for an API, or nil when it belongs to no organisation.
// The nil Orgs compiles no stages.
func (o *Orgs) Compile(def *definition.API) pipeline.Stage {
	if o == nil || def.OrgID == "" {
		return nil
	}
	one, _ := o.known.LoadOrStore(def.OrgID, &org{id: def.OrgID})
	return &orgStage{Orgs: o, org: one.(*org)}
}

// An org is the cached session of one organisation.
type org struct {
	id      string
	changes atomic.Uint32 // counts changes
	current atomic.Pointer[orgState]
	mu      sync.Mutex   // held while the session is looked up
	retryAt atomic.Int64 // unix nanoseconds before which it is not looked up again
}

// An orgState is the session of an organisation, as loaded. It is immutable but for
// its slots.
type orgState struct {
	session  *definition.Session // nil: there is none, and nothing is limited
	limits   [2]counter.Limit    // the rate, then the quota
	slots    [2]counter.Slot
	n        int
	quota    int                    // index of the quota, -1 without one
	calendar *definition.QuotaClock // of the quota; nil: a period after its first call
	loaded   time.Time
	version  orgVersion
}

// An orgVersion is the value of the change counters when a look-up began.
type orgVersion struct{ all, own uint32 }

func (o *Orgs) versionOf(g *org) orgVersion { return orgVersion{o.changes.Load(), g.changes.Load()} }

// find returns the state of an organisation; known is false when it cannot be
// looked up.
func (o *Orgs) find(g *org, now time.Time) (state *orgState, known bool) {
	state = g.current.Load()
	if state != nil && state.version == o.versionOf(g) && now.Sub(state.loaded) < o.opts.TTL {
		return state, true
	}
	usable := state != nil && state.version.own == g.changes.Load() && now.Sub(state.loaded) < o.opts.TTL+o.opts.StaleTTL
	if now.UnixNano() < g.retryAt.Load() {
		return state, usable
	}
	if !usable {
		g.mu.Lock()
	} else if !g.mu.TryLock() { // another call asks already
		return state, true
	}
	defer g.mu.Unlock()
	if latest := g.current.Load(); latest != nil && latest != state && latest.version == o.versionOf(g) {
		return latest, true
	}
	if now.UnixNano() < g.retryAt.Load() {
		return state, usable
	}
	loaded, err := o.load(g, now)
	if err != nil {
		g.retryAt.Store(time.Now().Add(time.Second).UnixNano())
		o.log.Warn("the session of an organisation cannot be looked up", "org", g.id, "err", err)
		return state, usable
	}
	g.current.Store(loaded)
	return loaded, true
}

// load reads the session from the store. The caller holds g.mu.
func (o *Orgs) load(g *org, now time.Time) (*orgState, error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.opts.Timeout)
	defer cancel()
	identity := credential.OrgIdentity(g.id)
	state := &orgState{quota: -1, loaded: now, version: o.versionOf(g)}
	session, err := o.opts.Store.Get(ctx, identity)
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		return state, nil
	case err != nil:
		return nil, err
	}
	state.session = session
	return state, state.limit(o.naming, identity)
}

// limit compiles the limits of the session.
func (s *orgState) limit(n counter.Naming, identity string) error {
	if s.session.Rate > 0 && s.session.Per > 0 {
		s.limits[s.n] = rights.RateOf(n.Rate("", identity, s.session.LastUpdated), s.session.Rate, s.session.Per)
		s.n++
	}
	quota := rights.Access{Quota: rights.Quota{Max: s.session.QuotaMax, Renewal: s.session.QuotaRenewalRate}}
	if s.session.Renewal.On() {
		clock, err := definition.NewQuotaClock(*s.session.Renewal)
		if err != nil {
			return err
		}
		s.calendar, quota.Quota.Calendar = clock, s.session.Renewal.Every
	}
	if limit, ok := quota.QuotaLimit(n, identity); ok {
		s.quota, s.limits[s.n] = s.n, limit
		s.n++
	}
	return counter.Check(s.limits[:s.n])
}

// orgStage counts the calls of one API for its organisation.
type orgStage struct {
	*Orgs
	org *org
}

// Handle counts a request. One that is refused later stays counted.
func (s *orgStage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	state, known := s.find(s.org, ex.Started)
	switch {
	case !known && s.opts.Closed:
		ex.RetryAfter = 1
		return ex.Reject(orgUnknown)
	case !known || state.session == nil:
		return pipeline.Next
	case state.session.IsInactive:
		return ex.Reject(orgInactive)
	case state.n == 0:
		return pipeline.Next
	}
	r := rounds.Get().(*round)
	defer r.release()
	refused, err := s.takeOrg(r, state, ex)
	switch {
	case err != nil:
		return s.fail(ex, err)
	case refused < 0:
		s.watchOrg(r, state, ex)
		return pipeline.Next
	case refused == state.quota:
		return ex.Reject(orgQuotaExceeded)
	}
	return refuseRate(ex, orgRateExceeded, r.counts[refused].ResetAt, state.limits[refused].Period)
}

// takeOrg counts one call under the limits of an organisation. The counts go to the
// round.
func (s *orgStage) takeOrg(r *round, state *orgState, ex *pipeline.Exchange) (refused int, err error) {
	limits, counts := state.limits[:state.n], r.counts[:state.n]
	if state.calendar != nil && state.quota >= 0 {
		copy(r.limits[:], limits)
		limits = r.limits[:state.n]
		limits[state.quota].Period = untilRenewal(state.calendar, ex.Moment().UnixMilli())
	}
	return s.count(ex, taking{limits, state.slots[:state.n], counts}, 1)
}

// watchOrg raises events for thresholds of the organisation's quota that a call
// reaches.
func (s *orgStage) watchOrg(r *round, state *orgState, ex *pipeline.Exchange) {
	if s.monitor == nil || !s.monitor.Orgs || ex.IsUncounted() || state.quota < 0 {
		return
	}
	var own []float64
	if state.session.Monitor != nil {
		own = state.session.Monitor.TriggerLimits
	}
	facts := event.Event{At: ex.Started, API: ex.API.Definition.ID, Org: s.org.id}
	s.monitor.watch(useOf(&state.limits[state.quota], &r.counts[state.quota], 1), own, &facts)
}
