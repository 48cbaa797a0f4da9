package gateway

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/wire"
)

// A Playing is a call of the playground to be made.
type Playing struct {
	Request *explain.Request
	API     string        // id of the API that the request must reach
	Counted bool          // under rates and quotas, and in usage
	Within  time.Duration // how long an answer is read that arrives in parts
}

// Play sends a request through the stages and upstream as a client's would go, and
// explains it. The request may name its caller instead of showing a credential. It is
// measured and counted only if that is asked for; a refusal is recorded in any case.
func (g *Gateway) Play(p *Playing) *explain.Played {
	report := g.Explain(p.Request)
	s := g.current.Load()
	if s == nil || !reaches(report, p.API) {
		return &explain.Played{Report: report}
	}
	done := g.play(p, s.Snapshot, s)
	done.Report = report
	return done
}

// Play is Gateway.Play under the aside's configuration. Nothing is measured.
func (a *Aside) Play(p *Playing) *explain.Played {
	report := a.Explain(p.Request)
	if !reaches(report, p.API) {
		return &explain.Played{Report: report}
	}
	compiler := a.gateway.compiler.Detached()
	defer compiler.Close()
	done := a.gateway.play(p, a.snapshot, &aside{dryRun: dryRun{Gateway: a.gateway, Snapshot: a.snapshot, compiler: compiler}})
	done.Report = report
	return done
}

// aside makes internal calls of the playground to APIs that are not compiled. It
// implements pipeline.InternalCalls.
type aside struct {
	dryRun
	compiling sync.Mutex // a data graph calls several at the same time
}

// Call implements pipeline.InternalCalls.
func (a *aside) Call(ex *pipeline.Exchange, to *pipeline.APIRef, uri []byte) pipeline.Verdict {
	child, refused := a.Child(ex, to, uri)
	if refused != nil {
		return ex.Reject(refused)
	}
	a.compiling.Lock()
	a.compile(child)
	a.compiling.Unlock()
	a.run(child)
	return takeResult(ex, child)
}

func reaches(report *explain.Report, api string) bool {
	return report.API != nil && report.API.ID == api
}

// play makes a call that reaches an API of a snapshot.
func (g *Gateway) play(p *Playing, s *snapshot.Snapshot, internal pipeline.InternalCalls) *explain.Played {
	ex := g.playing(p, s, internal)
	if ex == nil {
		return &explain.Played{}
	}
	done := &explain.Played{Sent: true, RequestID: string(ex.RequestID())}
	g.run(ex)
	g.read(ex, done, p.Within)
	played(p, ex)
	return done
}

// playing returns the exchange of a call, or nil if it reaches no API.
func (g *Gateway) playing(p *Playing, s *snapshot.Snapshot, internal pipeline.InternalCalls) *pipeline.Exchange {
	q := p.Request
	call, fault := wire.NewCall(q.Raw(), g.conf.Wire)
	if fault != nil {
		return nil
	}
	call.Peer, call.TLS, call.Cert = q.Peer(), q.Secure(), q.Shown()
	ex := pipeline.For(call)
	setID(&ex.ID)
	ex.Client, ex.Internal = call.Peer, internal
	ex.KeyHash = q.KeyHash
	ex.Play = &pipeline.Play{KeyHash: q.KeyHash, Policy: q.Policy, Counted: p.Counted}
	if !s.Find(ex) {
		ex.Release()
		return nil
	}
	if a, ok := internal.(*aside); ok {
		a.compile(ex)
	}
	return ex
}

// played ends the exchange of a call.
func played(p *Playing, ex *pipeline.Exchange) {
	if meter := ex.API.Meter; p.Counted && meter != nil {
		meter.Done(ex)
	}
	ex.Release()
}

// readHead takes the answer of an exchange but for its body.
func readHead(ex *pipeline.Exchange, done *explain.Played) {
	done.Status, done.Upstream = ex.Answer.Status, ex.Upstream.Duration
	for line := range strings.Lines(string(ex.Answer.Lines)) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		done.Headers = append(done.Headers, explain.Header{Name: name, Value: strings.TrimSpace(value)})
	}
	done.Took = time.Since(ex.Started)
}

// read takes the answer of an exchange.
func (g *Gateway) read(ex *pipeline.Exchange, done *explain.Played, within time.Duration) {
	a := ex.Answer
	readHead(ex, done)
	switch {
	case a.Takeover != nil: // nobody is there to speak another protocol with
		a.Takeover(nil, nil)
	case a.Stream != nil:
		ex.Settle()
		done.Body, done.Cut = readWithin(a.Stream, time.Now().Add(within))
		_ = a.Stream.Close() // what it could say was said by Read
	case !a.NoBody:
		done.Body, done.Cut = bytes.Clone(a.Body[:min(len(a.Body), explain.MaxPlayed)]), len(a.Body) > explain.MaxPlayed
	}
	done.Took = time.Since(ex.Started)
}

// readWithin reads what comes until a moment, at most explain.MaxPlayed. cut reports that
// this was not all.
func readWithin(from io.Reader, until time.Time) (all []byte, cut bool) {
	piece := make([]byte, 32<<10)
	for len(all) <= explain.MaxPlayed {
		n, err := from.Read(piece)
		all = append(all, piece[:n]...)
		if err != nil {
			cut = !errors.Is(err, io.EOF)
			break
		}
		if time.Now().After(until) {
			cut = true
			break
		}
	}
	if len(all) > explain.MaxPlayed {
		return all[:explain.MaxPlayed], true
	}
	return all, cut
}
