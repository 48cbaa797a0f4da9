package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// Explain tells what would become of a request, by the configuration in force
// and the very stages that requests go through. Nothing is counted, raised,
// remembered or sent.
func (g *Gateway) Explain(q *explain.Request) *explain.Report {
	w := walk{Gateway: g, snapshot: g.current.Load()}
	return w.explain(q)
}

// Since returns when the configuration in force came into force, the zero time
// before the first.
func (g *Gateway) Since() time.Time {
	if s := g.current.Load(); s != nil {
		return s.Since
	}
	return time.Time{}
}

// An Aside is a configuration that is not in force, to explain requests by. It
// is safe for concurrent use.
type Aside struct {
	gateway  *Gateway
	snapshot *Snapshot // of APIs that are not compiled
}

// Aside makes a bundle ready for explanations. The error is ctx's.
func (g *Gateway) Aside(ctx context.Context, b *definition.Bundle) (*Aside, error) {
	bl := builder{customDomains: g.conf.CustomDomains, compile: func(def *definition.API) (*pipeline.API, error) {
		return &pipeline.API{Definition: def}, nil
	}}
	snapshot, _, err := bl.build(ctx, b)
	if err != nil {
		return nil, err
	}
	return &Aside{g, snapshot}, nil
}

// Explain tells what would become of a request, as Gateway.Explain does. Of all
// APIs that which the request reaches is compiled.
func (a *Aside) Explain(q *explain.Request) *explain.Report {
	stages := a.gateway.stages.aside()
	defer stages.Pools.Close()
	w := walk{Gateway: a.gateway, snapshot: a.snapshot, compile: stages.compile}
	return w.explain(q)
}

// aside returns stages whose APIs are never served: what they share with those
// that are is only asked.
func (s *Stages) aside() *Stages {
	aside := *s
	aside.Pools = upstream.NewPools()
	aside.GraphQL = s.GraphQL.Aside()
	if s.Calls != nil {
		aside.Calls = s.Calls.Aside(aside.Pools)
	}
	aside.Cache = nil // what is kept was asked by the configuration in force
	aside.Meter = func(string) pipeline.Meter { return nil }
	aside.log = slog.New(slog.DiscardHandler) // what is wrong was said when it was new
	return &aside
}

// A walk is the way of one request that is only thought of.
type walk struct {
	*Gateway
	snapshot *Snapshot
	compile  func(*definition.API) (*pipeline.API, error) // nil: the snapshot's APIs are compiled
	report   *explain.Report
	keyHash  string         // of the key that calls in place of a credential, "" where that was taken off
	at       string         // id of the API that the request was handed over to; "" for none
	onward   []explain.Step // of that one, until the step is told by which the request got there
}

func (w *walk) explain(q *explain.Request) *explain.Report {
	w.report = &explain.Report{Method: q.Method, Path: q.PathSent(), Steps: []explain.Step{}}
	if w.snapshot != nil {
		w.report.Revision = w.snapshot.Revision
	}
	secrets := q.Secrets()
	q = w.withKey(q)
	call, fault := wire.Imagine(q.Raw(), w.conf.Wire)
	call.Peer, call.TLS, call.Cert = q.Peer(), q.Secure(), q.Shown()
	ex := pipeline.For(call)
	defer ex.Release()
	setID(&ex.ID)
	ex.Dry, ex.KeyHash, ex.Due = true, q.KeyHash, q.Due()
	w.keyHash = q.KeyHash
	if ex.Due != nil {
		w.report.At = ex.Due.UTC().Format(time.RFC3339)
	}
	if fault != nil {
		ex.Client, ex.Rejection = call.Peer, w.rejectionOf(fault)
		w.tell(ex, inFraming, nil, pipeline.Rejected)
		w.refused(ex)
	} else {
		ex.Client = upstream.ClientAddress(call, w.conf.Trusted)
		w.join(ex)
		w.follow(ex)
	}
	for at := ex; at != nil; at = at.Behind {
		secrets = append(secrets, string(at.Token))
	}
	w.report.Mask(secrets...)
	return w.report
}

// withKey puts the key of a description where the API that it reaches looks for
// one.
func (w *walk) withKey(q *explain.Request) *explain.Request {
	if q.Key == "" {
		return q
	}
	call, fault := wire.Imagine(q.Raw(), w.conf.Wire)
	if fault != nil {
		return q
	}
	ex := pipeline.For(call)
	defer ex.Release()
	if !w.snapshot.find(ex) {
		return q
	}
	return q.WithKey(ex.API.Definition.Token())
}

// follow takes a request through its API.
func (w *walk) follow(ex *pipeline.Exchange) {
	if w.control != nil && isControl(ex.Call.Path) {
		w.add("route", pipeline.Answered).Said = "the path is one of the gateway's own, which no API gets"
		return
	}
	if !w.snapshot.find(ex) {
		w.unreached(ex)
		return
	}
	ex.Others = w
	w.reached(ex)
	w.describe(ex)
	w.travel(ex)
	w.report.API.Version = ex.Version.Name
	w.identify(ex)
}

// travel takes a request through the stages of its API.
func (w *walk) travel(ex *pipeline.Exchange) {
	verdict := w.through(ex, inEntry, ex.API.Entry)
	if verdict == pipeline.Next {
		verdict = w.through(ex, inRequest, stagesOf(ex))
	}
	if verdict == pipeline.Next {
		verdict = w.forward(ex)
	}
	switch {
	case verdict == pipeline.Rejected:
		w.refused(ex)
	case ex.Answer.Status == 0:
		w.report.Outcome.Allowed = true // what else would happen is the upstream's to say
	default:
		pipeline.Run(ex.Version.Response, ex)
		w.report.Outcome.Allowed = true
		w.answered(ex)
	}
}

// unreached tells why a request reaches no API.
func (w *walk) unreached(ex *pipeline.Exchange) {
	f := w.tell(ex, inRoute, nil, pipeline.Rejected)
	switch ex.Rejection {
	case noRoute:
		f.Said = fmt.Sprintf("no API listens on the path for host %q", ex.Call.Host)
		f.Fix = "give an API a proxy.listen_path that the path begins with, or see that the one meant is active and served"
	case badPath:
		f.Fix = "leave out dot segments, and percent-encode only what has to be"
	}
	w.report.Outcome.Fix = f.Fix
	w.refused(ex)
}

// reached tells which API a request reaches, and compiles it when that is still
// to be done.
func (w *walk) reached(ex *pipeline.Exchange) {
	def := ex.API.Definition
	f := w.add("route", pipeline.Next)
	f.Said = fmt.Sprintf("API %q by listen path %s", def.ID, def.Proxy.ListenPath)
	if def.Proxy.StripListenPath {
		f.Said += ", stripped"
	}
	w.ready(ex)
}

// ready compiles the API that a request is at, when that is still to be done.
func (w *walk) ready(ex *pipeline.Exchange) {
	if w.compile == nil || len(ex.API.Entry) > 0 {
		return
	}
	def := ex.API.Definition
	compiled, err := w.compile(def)
	if err != nil {
		compiled = standIn(def, errors.Unwrap(err))
	}
	ex.API, ex.Version = compiled, compiled.Version
}

// HandOver implements pipeline.Others.
func (w *walk) HandOver(ex *pipeline.Exchange, to *pipeline.Ref, uri []byte) pipeline.Verdict {
	next, refused := w.snapshot.goOn(ex, to, uri)
	if refused != nil {
		return ex.Reject(refused)
	}
	w.ready(next)
	told, at, key := w.report.Steps, w.at, w.keyHash
	if ex.Session != nil && ex.API.Definition.StripAuthData { // what is asked for is taken off, for all that follow
		w.keyHash = ""
	}
	next.KeyHash = w.keyHash
	w.report.Steps, w.at = nil, next.API.Definition.ID
	w.travel(next)
	w.onward, w.report.Steps, w.at, w.keyHash = w.report.Steps, told, at, key
	return takeOver(ex, next)
}

// through takes a request through a list of stages.
func (w *walk) through(ex *pipeline.Exchange, part uint8, stages []pipeline.Stage) pipeline.Verdict {
	return pipeline.Walk(stages, ex, func(at int, s pipeline.Stage, v pipeline.Verdict) {
		ex.Stopped = uint8(at)
		w.tell(ex, part, s, v)
	})
}

// forward takes a request to where it would leave for the upstream.
func (w *walk) forward(ex *pipeline.Exchange) pipeline.Verdict {
	v := ex.Version.Forward.Handle(ex)
	if v != pipeline.Answered || ex.Answer.Status != 0 || ex.Behind != nil {
		w.tell(ex, inForward, ex.Version.Upstream, v)
		return v
	}
	p := explain.PlanOf(ex, ex.Buf)
	w.report.Outcome.Upstream = p
	f := w.tell(ex, inForward, ex.Version.Upstream, pipeline.Next)
	f.Said = strings.TrimSuffix(fmt.Sprintf("%s %s at %s; %s", p.Method, p.Target, p.Address, f.Said), "; ")
	return pipeline.Next
}

// tell adds what a stage decided.
func (w *walk) tell(ex *pipeline.Exchange, part uint8, s pipeline.Stage, v pipeline.Verdict) *pipeline.Finding {
	f := w.add(nameOf(explain.Place{List: part, Kind: kindOf(ex, part)}), v)
	if e, ok := s.(pipeline.Explainer); ok {
		e.Explain(ex, f)
	}
	if f.Untold && v == pipeline.Next {
		step := &w.report.Steps[len(w.report.Steps)-1]
		step.Result = explain.Untold
		w.report.Outcome.Untold = append(w.report.Outcome.Untold, f.Stage)
	}
	if v == pipeline.Rejected && !ex.Relayed() {
		w.report.Outcome.Stage, w.report.Outcome.Fix = f.Stage, f.Fix
		if f.Said == "" {
			f.Said = ex.Rejection.Message
		}
	}
	if w.onward == nil {
		return f
	}
	at := len(w.report.Steps) - 1
	w.report.Steps, w.onward = append(w.report.Steps, w.onward...), nil
	return &w.report.Steps[at].Finding
}

// add adds a step; what is returned is good until the next one.
func (w *walk) add(stage string, v pipeline.Verdict) *pipeline.Finding {
	w.report.Steps = append(w.report.Steps, explain.Step{
		API: w.at, Result: explain.ResultOf(v), Finding: pipeline.Finding{Stage: stage, Verdict: v},
	})
	return &w.report.Steps[len(w.report.Steps)-1].Finding
}

// describe tells what is called.
func (w *walk) describe(ex *pipeline.Exchange) {
	def := ex.API.Definition
	w.report.API = &explain.API{ID: def.ID, Org: def.OrgID, Name: def.Name}
}

// identify tells who calls: the key that the first API asks for, or the one that
// asks for one behind it.
func (w *walk) identify(ex *pipeline.Exchange) {
	for ; ex != nil; ex = ex.Behind {
		if ex.Session != nil {
			w.report.Key = &explain.Key{Name: ex.KeyName, Alias: ex.Session.Alias, Policies: ex.Session.Policies()}
			return
		}
	}
}

// refused tells what the client of a refused request gets.
func (w *walk) refused(ex *pipeline.Exchange) {
	w.report.Outcome.Reason, w.report.Outcome.Event = ex.Rejection.Reason.String(), string(ex.Rejection.Event)
	w.reject(ex)
	w.answered(ex)
}

// answered tells what an answer of the gateway's own says.
func (w *walk) answered(ex *pipeline.Exchange) {
	a, o := ex.Answer, &w.report.Outcome
	o.Status = a.Status
	if !a.NoBody {
		o.Body = string(a.Body)
	}
	if lines := strings.TrimSuffix(string(a.Lines), "\r\n"); lines != "" {
		o.Headers = strings.Split(lines, "\r\n")
	}
}
