package gateway

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/tunnels"
	"github.com/sluicegate/sluice/gateway/wire"
)

// hold has a connection that leaves HTTP watched over. It returns false where
// there is no room for one more: the upstream is let go then, and the exchange
// refused.
func (g *Gateway) hold(ex *pipeline.Exchange) bool {
	if g.stages.Tunnels == nil {
		return true
	}
	p := &permit{
		gateway: g, call: ex.Call.Keep(), client: ex.Client, api: ex.API.Definition.ID,
		key: strings.Clone(ex.KeyHash), behind: ex.Front != nil,
	}
	a, about := ex.Answer, tunnels.AboutOf(ex)
	// A key's texts may be parts of something large, which a tunnel would keep.
	about.Key, about.Identity = strings.Clone(about.Key), strings.Clone(about.Identity)
	held, full := g.stages.Tunnels.Hold(a.Takeover, about, p)
	if full != tunnels.Free {
		a.Takeover(nil, nil)
		a.Takeover, a.NoBody, a.Length = nil, false, 0
		tunnels.Refuse(ex, full)
		return false
	}
	a.Takeover = held
	return true
}

// A permit is the request that began a tunnel, which must go on being one that is
// let in.
type permit struct {
	gateway *Gateway
	call    *wire.Call
	client  netip.Addr
	api     string
	key     string // identity; "" for none
	behind  bool   // the request came from another API, and the path is none that clients call

	checked bool
	seen    standing
	ends    int64 // when the key expires, in unix seconds; 0: never
	always  bool  // it may end at any time, without a word
}

// standing is what the last check was made under.
type standing struct {
	snapshot *Snapshot
	key      uint64
}

func (p *permit) standing() standing {
	s := standing{snapshot: p.gateway.Current()}
	if p.key != "" {
		s.key = p.gateway.stages.Auth.Mark(p.key)
	}
	return s
}

// Stale implements tunnels.Permit.
func (p *permit) Stale() bool {
	return !p.checked || p.always || p.ends > 0 && time.Now().Unix() >= p.ends || p.seen != p.standing()
}

var (
	errMoved = errors.New("its path leads to another API")
	errGone  = errors.New("its path leads to no API")
)

// Check implements tunnels.Permit. It holds the request against the rules that
// say who may call what, in their form of now, and against no limits: those have
// counted the request when it came.
func (p *permit) Check() error {
	now := p.standing()                                       // first: what changes meanwhile is for the next check
	p.call.Started, p.call.Answer = time.Now(), wire.Answer{} // of which nobody sees anything
	ex := pipeline.For(p.call)
	defer ex.Release()
	ex.Client = p.client
	if err := p.find(now.snapshot, ex); err != nil {
		return err
	}
	verdict := walkOnly(ex.API.Entry, ex.API.EntryMade, entryRights, ex)
	if verdict == pipeline.Next {
		made := ex.Version.RequestMade
		if ex.Open {
			made = ex.Version.OpenMade
		}
		verdict = walkOnly(stagesOf(ex), made, requestRights, ex)
	}
	if verdict == pipeline.Rejected {
		if ex.Rejection.Reason == pipeline.ReasonKeyStoreUnavailable {
			return nil // and asked again at the next look
		}
		return errors.New(ex.Rejection.Message)
	}
	p.settle(ex, now)
	return nil
}

// find finds the API that the request is at.
func (p *permit) find(in *Snapshot, ex *pipeline.Exchange) error {
	switch {
	case p.behind && !in.place(ex, p.api), !p.behind && !in.find(ex):
		return errGone
	case ex.API.Definition.ID != p.api:
		return errMoved
	}
	ex.Others = endOfWay{}
	return nil
}

// endOfWay is where a check leaves a request that goes on to another API: that one
// has the tunnel watched over as well.
type endOfWay struct{}

// HandOver implements pipeline.Others.
func (endOfWay) HandOver(*pipeline.Exchange, *pipeline.Ref, []byte) pipeline.Verdict {
	return pipeline.Answered
}

// settle takes note of what a check has found.
func (p *permit) settle(ex *pipeline.Exchange, under standing) {
	p.checked, p.seen, p.ends = true, under, 0
	// Tokens and keys that have a successor end at a time that the session does not
	// tell, and so may certificates.
	p.always = ex.Claims != nil || ex.Retiring || ex.Call.Cert != nil || ex.KeyHash != p.key
	if ex.Session != nil && ex.Session.Expires > 0 {
		p.ends = ex.Session.Expires
	}
}

// The stages that say who may call what, as bits of their places in the lists.
var (
	entryRights   = kindsOf(entryStages, "version", "ip", "certificate")
	requestRights = kindsOf(requestStages, "auth", "access")
)

func kindsOf(makers []stageMaker, names ...string) (kinds pipeline.Made) {
	for i, m := range makers {
		if slices.Contains(names, m.name) {
			kinds |= 1 << i
		}
	}
	return kinds
}

// walkOnly is pipeline.Run with those stages alone that are of some kinds, and
// with those that are on no list.
func walkOnly(stages []pipeline.Stage, made, kinds pipeline.Made, ex *pipeline.Exchange) pipeline.Verdict {
	for i, s := range stages {
		if kind := made.Kind(i); kind >= 0 && kinds>>kind&1 == 0 {
			continue
		}
		if v := s.Handle(ex); v != pipeline.Next {
			return v
		}
	}
	return pipeline.Next
}
