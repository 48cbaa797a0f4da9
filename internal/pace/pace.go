// Package pace keeps work in the background from taking the processor away from
// requests: it works for a moment and rests for several.
package pace

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// slice is how long work goes on without a rest. A request that becomes ready
// meanwhile may have to wait for so long where there is one processor only.
const slice = 250 * time.Microsecond

// longest is the longest rest: one step of work that took long, because the
// machine was busy with other things perhaps, does not put off the next for more.
const longest = 100 * time.Millisecond

// A Pacer keeps one goroutine at a share of one processor. A nil *Pacer does not
// hold anybody up. It is used by one goroutine at a time.
type Pacer struct {
	rest  float64   // for each moment of work
	began time.Time // of the work since the last rest
}

// New returns a pacer for a share of one processor: 0.2 is a fifth, 1 works on
// one without a rest. It returns nil, which is no limit, for 0.
func New(share float64) *Pacer {
	if share <= 0 {
		return nil
	}
	return &Pacer{rest: max(0, 1/share-1), began: time.Now()}
}

// Begin says that work begins now: the time since the last step was none.
func (p *Pacer) Begin() {
	if p != nil {
		p.began = time.Now()
	}
}

// Step rests if it is time to. It is called between small pieces of work, and
// returns ctx's error once ctx has ended.
func (p *Pacer) Step(ctx context.Context) error {
	if p == nil || p.rest == 0 {
		return ctx.Err()
	}
	worked := time.Since(p.began)
	if worked < slice {
		return nil
	}
	timer := time.NewTimer(min(time.Duration(float64(worked)*p.rest), longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.began = time.Now()
	return nil
}

// Each calls do for 0 up to n: under a pacer one after the other, and with a nil
// one on all processors at once. It returns ctx's error once ctx has ended.
func Each(ctx context.Context, p *Pacer, n int, do func(i int)) error {
	if p == nil {
		return all(ctx, n, do)
	}
	p.Begin()
	for i := range n {
		do(i)
		if err := p.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func all(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}
