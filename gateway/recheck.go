package gateway

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/stage/tunnels"
	"github.com/sluicegate/sluice/gateway/wire"
)

// hold registers a tunnel, so that the rights of its request are checked again while
// it is open. It returns false when there are too many tunnels: the upstream is
// closed then, and the exchange is refused. s is the GraphQL connection that the exchange
// opens, or nil.
func (g *Gateway) hold(ex *pipeline.Exchange, s *socket) bool {
	if g.stages.Tunnels == nil {
		return true
	}
	a, r, about := ex.Answer, g.recheckOf(ex), aboutOf(ex)
	if o := ex.Opening; o != nil {
		about.Cut, r.call, r.operations = o.Cut, o.Call, o.Check
		if s.late != nil {
			about.Owner, r.late = &s.late.owner, s.late
		}
	} else {
		about.Cut, r.call = ex.Cut, ex.Call.Keep()
	}
	held, full := g.stages.Tunnels.Hold(a.Takeover, about, r)
	if full != tunnels.Free {
		a.Takeover(nil, nil)
		a.Takeover, a.NoBody, a.Length = nil, false, 0
		tunnels.Refuse(ex, full)
		return false
	}
	a.Takeover = held
	return true
}

// holdEvents registers the event stream of a subscription like hold. Unless a bound keeps it
// from being opened, release is called at its end.
func (g *Gateway) holdEvents(ex *pipeline.Exchange, cut func(why error)) (release func(), full tunnels.Bound) {
	if g.stages.Tunnels == nil || ex.Play != nil { // a call of the playground ends soon
		return func() {}, tunnels.Free
	}
	about, r := aboutOf(ex), g.recheckOf(ex)
	about.Cut, r.call, r.subscribes, r.body = cut, ex.Call.Keep(), true, bytes.Clone(ex.Call.Body)
	return g.stages.Tunnels.HoldOpen(about, r)
}

// aboutOf returns what a tunnel is registered with. The texts of a key may be part of a
// large buffer, which a tunnel would retain.
func aboutOf(ex *pipeline.Exchange) tunnels.About {
	about := tunnels.AboutOf(ex)
	about.Key, about.Identity = strings.Clone(about.Key), strings.Clone(about.Identity)
	return about
}

func (g *Gateway) recheckOf(ex *pipeline.Exchange) *recheck {
	return &recheck{
		gateway: g, client: ex.Client, api: ex.API.Definition.ID,
		key: strings.Clone(ex.KeyHash), internal: ex.Parent != nil,
	}
}

// A recheck holds the request that began a tunnel against the rules in force.
type recheck struct {
	gateway  *Gateway
	call     *wire.Call
	client   netip.Addr
	api      string
	key      string   // identity; "" for none
	internal bool     // an internal call: its path is below the listen path of the API
	late     *lateKey // of which call and key are not known yet; nil: they are

	subscribes bool   // the call is a subscription over HTTP, which is checked as well
	body       []byte // of that call
	operations func() // checks the operations of a GraphQL connection; nil: the tunnel is none

	checked bool
	seen    standing
	expires int64 // when the key expires, in unix seconds; 0: never
	always  bool  // the credential may end at a time that the session does not say
}

// standing is the state of the rules at a check.
type standing struct {
	snapshot *snapshot.Snapshot
	key      uint64
}

func (r *recheck) standing() standing {
	s := standing{snapshot: r.gateway.Current()}
	if r.key != "" {
		s.key = r.gateway.stages.Auth.Stamp(r.key)
	}
	return s
}

// Stale implements tunnels.Recheck.
func (r *recheck) Stale() bool {
	if r.late != nil {
		if found := r.late.found.Load(); found != nil {
			r.call, r.key, r.late, r.checked = found.call, found.key, nil, false
		}
	}
	return !r.checked || r.always || r.expires > 0 && time.Now().Unix() >= r.expires || r.seen != r.standing()
}

var (
	errMoved = errors.New("its path leads to another API")
	errGone  = errors.New("its path leads to no API")
	errFault = errors.New("its rights could not be checked")
)

// Check implements tunnels.Recheck. It runs the stages that decide who may call what,
// as they are now, but no limits: those counted the request when it came. A panic ends the
// tunnel and no other.
func (r *recheck) Check() (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r.gateway.server.Fault(fault)
			err = errFault
		}
	}()
	now := r.standing() // first: a later change is left to the next check
	call := r.call.Again(nil)
	defer call.Free()
	call.Started = time.Now()
	ex := pipeline.For(&call.Call)
	defer ex.Release()
	ex.Client = r.client
	which := pipeline.OfRights
	if r.subscribes {
		call.SetBody(r.body)
		which, ex.Live = pipeline.OfOperations, &pipeline.Live{Events: true, Again: true}
	}
	if err := r.find(now.snapshot, ex); err != nil {
		return err
	}
	verdict := pipeline.RunOnly(ex.API.Entry, ex, which)
	if verdict == pipeline.Next && r.late == nil {
		verdict = pipeline.RunOnly(requestStages(ex), ex, which)
	}
	if verdict == pipeline.Rejected {
		if ex.Rejection.Reason == pipeline.ReasonKeyStoreUnavailable {
			return nil // the next check asks again
		}
		return errors.New(ex.Rejection.Message)
	}
	again := r.checked && r.seen != now
	r.passed(ex, now)
	if again && r.operations != nil {
		r.operations()
	}
	return nil
}

// find sets the API of the request.
func (r *recheck) find(in *snapshot.Snapshot, ex *pipeline.Exchange) error {
	switch {
	case in == nil, r.internal && !in.FindID(ex, r.api), !r.internal && !in.Find(ex):
		return errGone
	case ex.API.Definition.ID != r.api:
		return errMoved
	}
	ex.Internal = noCalls{in}
	return nil
}

// noCalls makes no internal calls: the tunnel of an internal call is registered and
// checked by itself.
type noCalls struct{ *snapshot.Snapshot }

// Call implements pipeline.InternalCalls.
func (noCalls) Call(*pipeline.Exchange, *pipeline.APIRef, []byte) pipeline.Verdict {
	return pipeline.Answered
}

// passed records a check that the request passed.
func (r *recheck) passed(ex *pipeline.Exchange, now standing) {
	r.checked, r.seen, r.expires = true, now, 0
	// Tokens, certificates and rotated keys end at a time that the session does not say.
	r.always = ex.Claims != nil || ex.InGrace || ex.Call.Cert != nil || ex.KeyHash != r.key
	if ex.Session != nil && ex.Session.Expires > 0 {
		r.expires = ex.Session.Expires
	}
}
