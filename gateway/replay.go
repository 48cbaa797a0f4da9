package gateway

import (
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/internal/definition"
)

// compiledAPIs are APIs that were compiled for explanations.
type compiledAPIs map[*definition.API]*pipeline.API

// mostCompiled bounds the compiled APIs that a Replay keeps.
const mostCompiled = 200

// A Replay explains many requests under the configuration of an aside. It keeps what it
// compiled for one of them for the next. One goroutine uses it at a time.
type Replay struct {
	aside    *Aside
	compiler *snapshot.Compiler
	compiled compiledAPIs
}

// Replay returns a replay, which the caller closes.
func (a *Aside) Replay() *Replay {
	return &Replay{aside: a, compiler: a.gateway.compiler.Detached(), compiled: make(compiledAPIs)}
}

// Explain is Aside.Explain, but of the steps the report has only that which refuses the
// request.
func (r *Replay) Explain(q *explain.Request) *explain.Report {
	if len(r.compiled) >= mostCompiled {
		r.compiler.Close()
		r.compiler, r.compiled = r.aside.gateway.compiler.Detached(), make(compiledAPIs)
	}
	d := dryRun{Gateway: r.aside.gateway, Snapshot: r.aside.snapshot, compiler: r.compiler, compiled: r.compiled, brief: true}
	return d.explain(q)
}

// Close releases what was compiled.
func (r *Replay) Close() { r.compiler.Close() }
