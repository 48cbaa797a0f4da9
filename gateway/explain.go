package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// Explain reports what would happen to a request under the configuration in force,
// by running the stages of real requests as a dry run: nothing is counted, logged,
// recorded or sent.
func (g *Gateway) Explain(q *explain.Request) *explain.Report {
	d := dryRun{Gateway: g, Snapshot: g.Current()}
	return d.explain(q)
}

// Since returns when the configuration came into force, the zero time before the
// first.
func (g *Gateway) Since() time.Time {
	if s := g.Current(); s != nil {
		return s.Since
	}
	return time.Time{}
}

// An Aside is a configuration that is not in force, for explanations. It is safe for
// concurrent use.
type Aside struct {
	gateway  *Gateway
	snapshot *snapshot.Snapshot // its APIs are not compiled
}

// API returns a definition of the aside, or nil.
func (a *Aside) API(id string) *definition.API { return a.snapshot.API(id) }

// Aside prepares a bundle for explanations. The error is ctx's.
func (g *Gateway) Aside(ctx context.Context, b *definition.Bundle) (*Aside, error) {
	s, err := snapshot.Uncompiled(ctx, b, snapshot.Options{CustomDomains: g.conf.CustomDomains})
	if err != nil {
		return nil, err
	}
	return &Aside{g, s}, nil
}

// Explain is Gateway.Explain under the aside's configuration. Only the APIs that the
// request reaches are compiled.
func (a *Aside) Explain(q *explain.Request) *explain.Report {
	compiler := a.gateway.compiler.Detached()
	defer compiler.Close()
	d := dryRun{Gateway: a.gateway, Snapshot: a.snapshot, compiler: compiler}
	return d.explain(q)
}

// A dryRun runs one request without effects and reports what each stage decides. It
// implements pipeline.InternalCalls.
type dryRun struct {
	*Gateway
	*snapshot.Snapshot
	compiler *snapshot.Compiler // nil: the snapshot's APIs are compiled
	compiled compiledAPIs       // of compiler; nil: they are not kept
	brief    bool               // only the stage that refuses the request is reported
	report   *explain.Report
	keyHash  string         // of the key that the request names in place of a credential; "" once an API has stripped it
	at       string         // id of the API of the internal call that runs; "" for none
	child    []explain.Step // of the last internal call, until the step that made it is added
}

func (d *dryRun) explain(q *explain.Request) *explain.Report {
	d.report = &explain.Report{Method: q.Method, Path: q.PathSent(), Steps: []explain.Step{}}
	if d.Snapshot != nil {
		d.report.Revision = d.Revision
	}
	secrets := q.Secrets()
	q = d.withKey(q)
	call, fault := wire.Imagine(q.Raw(), d.conf.Wire)
	call.Peer, call.TLS, call.Cert = q.Peer(), q.Secure(), q.Shown()
	ex := pipeline.For(call)
	defer ex.Release()
	setID(&ex.ID)
	ex.DryRun, ex.KeyHash = &pipeline.DryRun{At: q.Due(), Recorded: q.IsRecorded(), Policies: q.Policies}, q.KeyHash
	if q.Length != 0 && fault == nil {
		call.Length = q.Length
	}
	d.keyHash = q.KeyHash
	if q.Policy != "" {
		ex.Play = &pipeline.Play{Policy: q.Policy}
	}
	if at := ex.DryRunAt(); at != nil {
		d.report.At = at.UTC().Format(time.RFC3339)
	}
	if fault != nil {
		ex.Client, ex.Rejection = call.Peer, d.rejectionOf(fault)
		d.step(ex, framing, nil, pipeline.Rejected)
		d.refused(ex)
	} else {
		ex.GivenID = d.givenID(call)
		ex.Client = upstream.ClientAddress(call, d.conf.Trusted)
		d.join(ex)
		d.follow(ex)
	}
	for at := ex; at != nil; at = at.Child {
		secrets = append(secrets, string(at.Token))
		if at.API != nil {
			secrets = append(secrets, at.API.Definition.Secrets()...)
		}
	}
	d.report.Mask(secrets...)
	return d.report
}

// withKey puts the key of a description where the API that the request reaches
// expects one.
func (d *dryRun) withKey(q *explain.Request) *explain.Request {
	if q.Key == "" {
		return q
	}
	call, fault := wire.Imagine(q.Raw(), d.conf.Wire)
	if fault != nil {
		return q
	}
	ex := pipeline.For(call)
	defer ex.Release()
	if !d.Find(ex) {
		return q
	}
	return q.WithKey(ex.API.Definition.Token())
}

// follow runs a request through the API that it reaches.
func (d *dryRun) follow(ex *pipeline.Exchange) {
	if d.ownHandler(ex.Call.Path) != nil {
		d.add("route", pipeline.Answered).Said = "the path is one of the gateway's own, which no API gets"
		return
	}
	if !d.Find(ex) {
		d.unreached(ex)
		return
	}
	ex.Internal = d
	d.reached(ex)
	d.describe(ex)
	d.stages(ex)
	d.report.API.Version = ex.Version.Name
	d.identify(ex)
}

// stages runs the stages of the API.
func (d *dryRun) stages(ex *pipeline.Exchange) {
	verdict := d.pass(ex, ex.API.Entry)
	if verdict == pipeline.Next {
		verdict = d.pass(ex, requestStages(ex))
	}
	if verdict == pipeline.Next {
		verdict = d.forward(ex)
	}
	switch {
	case verdict == pipeline.Rejected:
		d.refused(ex)
	case ex.Answer.Status == 0:
		d.report.Outcome.Allowed = true // the rest depends on the upstream
	default:
		pipeline.Run(ex.Version.Response, ex)
		d.report.Outcome.Allowed = true
		d.answered(ex)
	}
}

// unreached reports why a request reaches no API.
func (d *dryRun) unreached(ex *pipeline.Exchange) {
	f := d.step(ex, routing, nil, pipeline.Rejected)
	switch ex.Rejection.Reason {
	case pipeline.ReasonRouteNotFound:
		f.Said = fmt.Sprintf("no API listens on the path for host %q", ex.Call.Host)
		f.Fix = "give an API a proxy.listen_path that the path begins with, or see that the one meant is active and served"
		d.elsewhere(ex, f)
	case pipeline.ReasonBadRequest:
		f.Fix = "leave out dot segments, and percent-encode only what has to be"
	}
	d.report.Outcome.Fix = f.Fix
	d.refused(ex)
}

// elsewhere reports an API at the path that other gateways serve. Paths with parameters
// are not compared.
func (d *dryRun) elsewhere(ex *pipeline.Exchange, f *pipeline.Finding) {
	if d.Snapshot == nil {
		return
	}
	for _, def := range d.Elsewhere {
		under := strings.TrimRight(def.Proxy.ListenPath, "/")
		rest, ok := strings.CutPrefix(string(ex.Call.Path), under)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		f.Said = fmt.Sprintf("API %q listens on the path, but its tags are those of other gateways", def.ID)
		f.Fact("tags", strings.Join(def.Tags, ", "), strings.Join(d.conf.Tags, ", "), "definition")
		f.Fix = "call a gateway that has one of the tags in gateway.tags, or give this one such a tag"
		return
	}
}

// reached reports which API a request reaches, and compiles it if needed.
func (d *dryRun) reached(ex *pipeline.Exchange) {
	def := ex.API.Definition
	f := d.add("route", pipeline.Next)
	f.Said = fmt.Sprintf("API %q by listen path %s", def.ID, def.Proxy.ListenPath)
	if def.Proxy.StripListenPath {
		f.Said += ", stripped"
	}
	if len(def.Tags) > 0 {
		f.Said += "; served by gateways with one of its tags alone: " + strings.Join(def.Tags, ", ")
	}
	d.compile(ex)
}

// compile compiles the API of an exchange if the snapshot's are not compiled.
func (d *dryRun) compile(ex *pipeline.Exchange) {
	if d.compiler == nil || len(ex.API.Entry) > 0 { // a stand-in is not compiled again
		return
	}
	def := ex.API.Definition
	if known := d.compiled[def]; known != nil {
		ex.API, ex.Version = known, known.Version
		return
	}
	ex.API = d.compiler.CompileOrRefuse(def)
	ex.Version = ex.API.Version
	if d.compiled != nil {
		d.compiled[def] = ex.API
	}
}

// Call implements pipeline.InternalCalls.
func (d *dryRun) Call(ex *pipeline.Exchange, to *pipeline.APIRef, uri []byte) pipeline.Verdict {
	child, refused := d.Child(ex, to, uri)
	if refused != nil {
		return ex.Reject(refused)
	}
	d.compile(child)
	steps, at, key := d.report.Steps, d.at, d.keyHash
	if ex.Session != nil && ex.API.Definition.StripAuthData { // APIs that follow do not get the credential
		d.keyHash = ""
	}
	child.KeyHash = d.keyHash
	d.report.Steps, d.at = nil, child.API.Definition.ID
	d.stages(child)
	d.child, d.report.Steps, d.at, d.keyHash = d.report.Steps, steps, at, key
	return takeResult(ex, child)
}

// pass runs a list of stages and reports each.
func (d *dryRun) pass(ex *pipeline.Exchange, stages []pipeline.CompiledStage) pipeline.Verdict {
	return pipeline.Walk(stages, ex, func(s pipeline.CompiledStage, v pipeline.Verdict) {
		d.step(ex, s.Kind, s.Stage, v)
	})
}

// forward reports the upstream call that would be made.
func (d *dryRun) forward(ex *pipeline.Exchange) pipeline.Verdict {
	v := ex.Version.Forward.Handle(ex)
	if d.brief && v == pipeline.Answered {
		return pipeline.Next
	}
	if v != pipeline.Answered || ex.Answer.Status != 0 || ex.Child != nil {
		if v == pipeline.Answered && ex.Live != nil && ex.Live.Events && len(ex.Answer.Body) > 0 {
			v = d.eventsOf(ex, nil)
		}
		d.step(ex, forwarding, ex.Version.Upstream, v)
		return v
	}
	p := explain.PlanOf(ex, ex.Buf)
	d.report.Outcome.Upstream = p
	f := d.step(ex, forwarding, ex.Version.Upstream, pipeline.Next)
	f.Said = strings.TrimSuffix(fmt.Sprintf("%s %s at %s; %s", p.Method, p.Target, p.Address, f.Said), "; ")
	return pipeline.Next
}

// step adds the decision of a stage, which may be nil.
func (d *dryRun) step(ex *pipeline.Exchange, kind *pipeline.StageKind, s pipeline.Stage, v pipeline.Verdict) *pipeline.Finding {
	if d.brief && v != pipeline.Rejected {
		d.child = nil
		return new(pipeline.Finding)
	}
	f := d.add(kind.Name, v)
	if e, ok := s.(pipeline.Explainer); ok {
		e.Explain(ex, f)
	}
	if f.Untold && v == pipeline.Next {
		step := &d.report.Steps[len(d.report.Steps)-1]
		step.Result = explain.Untold
		d.report.Outcome.Untold = append(d.report.Outcome.Untold, f.Stage)
	}
	if v == pipeline.Rejected && !ex.RefusedByChild() {
		d.report.Outcome.Stage, d.report.Outcome.Fix = f.Stage, f.Fix
		if f.Said == "" {
			f.Said = ex.Rejection.Message
		}
	}
	if d.child == nil {
		return f
	}
	at := len(d.report.Steps) - 1
	d.report.Steps, d.child = append(d.report.Steps, d.child...), nil
	return &d.report.Steps[at].Finding
}

// add adds a step. Its finding is valid until the next one is added.
func (d *dryRun) add(stage string, v pipeline.Verdict) *pipeline.Finding {
	d.report.Steps = append(d.report.Steps, explain.Step{
		API: d.at, Result: explain.ResultOf(v), Finding: pipeline.Finding{Stage: stage, Verdict: v},
	})
	return &d.report.Steps[len(d.report.Steps)-1].Finding
}

// describe reports the API that is called.
func (d *dryRun) describe(ex *pipeline.Exchange) {
	def := ex.API.Definition
	d.report.API = &explain.API{ID: def.ID, Org: def.OrgID, Name: def.Name, Tags: def.Tags}
}

// identify reports the key of the caller: that of the first API with a session,
// internal calls included.
func (d *dryRun) identify(ex *pipeline.Exchange) {
	for ; ex != nil; ex = ex.Child {
		if ex.Session != nil {
			d.report.Key = &explain.Key{Name: ex.KeyName, Alias: ex.Session.Alias, Policies: ex.Session.Policies()}
			return
		}
	}
}

// refused reports the error answer.
func (d *dryRun) refused(ex *pipeline.Exchange) {
	d.report.Outcome.Reason, d.report.Outcome.Event = ex.Rejection.Reason.String(), string(ex.Rejection.Event)
	d.reject(ex)
	d.answered(ex)
}

// answered reports an answer that the gateway itself writes.
func (d *dryRun) answered(ex *pipeline.Exchange) {
	a, o := ex.Answer, &d.report.Outcome
	o.Status = a.Status
	if !a.NoBody {
		o.Body = string(a.Body)
	}
	if lines := strings.TrimSuffix(string(a.Lines), "\r\n"); lines != "" {
		o.Headers = strings.Split(lines, "\r\n")
	}
}
