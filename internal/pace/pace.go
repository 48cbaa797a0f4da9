// Package pace limits the CPU share of background work, so that it does not delay
// requests: work is interrupted by short rests.
package pace

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// slice is how long work runs without a rest. With one CPU, a request may have to wait
// for as long.
const slice = 250 * time.Microsecond

// longest is the longest rest. It bounds the rest after a step that took long because
// the machine was busy.
const longest = 100 * time.Millisecond

// A Pacer keeps one goroutine at a share of one CPU. A nil *Pacer does not limit
// anything. It is not safe for concurrent use.
type Pacer struct {
	rest  float64   // per duration of work
	began time.Time // when the work since the last rest began
}

// New returns a pacer for a share of one CPU: 0.2 is a fifth, 1 is without rests. For 0
// it returns nil, which is no limit.
func New(share float64) *Pacer {
	if share <= 0 {
		return nil
	}
	return &Pacer{rest: max(0, 1/share-1), began: time.Now()}
}

// Begin starts the work: the time since the last step does not count.
func (p *Pacer) Begin() {
	if p != nil {
		p.began = time.Now()
	}
}

// Step rests if it is time to. Call it between small pieces of work. It returns ctx's
// error once ctx has ended.
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

// Each calls do for 0 to n-1: one after the other with a pacer, and on all CPUs at the
// same time with nil. It returns ctx's error once ctx has ended.
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
