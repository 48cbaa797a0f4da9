package kafka

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A partition has the messages that were fetched and are not committed, in order. Offsets
// are committed only as far as everything before them is settled.
type partition struct {
	place
	open   []*record
	done   int64       // offset behind what is settled without a gap; 0: nothing yet
	end    int64       // offset behind the last message, when the partition was fetched last
	full   bool        // nothing is fetched until more is settled
	stands bool        // at a message that cannot be passed on
	gone   atomic.Bool // another member of the group has it
}

// A record is a message of a partition.
type record struct {
	*kgo.Record
	of      *partition
	flying  bool // it was passed on, and is not settled
	settled bool
	tries   int // that failed
}

func (p *partition) add(r *kgo.Record) *record {
	one := &record{Record: r, of: p}
	p.open = append(p.open, one)
	return one
}

// next returns the offset of the first message that is not settled.
func (p *partition) next() int64 {
	if len(p.open) > 0 {
		return p.open[0].Offset
	}
	return p.done
}

// settle notes that a record is settled, and returns the last one that may be committed
// because of that, or nil.
func (p *partition) settle(r *record) (last *kgo.Record) {
	r.settled = true
	for len(p.open) > 0 && p.open[0].settled {
		last = p.open[0].Record
		p.open[0] = nil
		p.open = p.open[1:]
	}
	if last != nil {
		p.done = last.Offset + 1
	}
	return last
}

// revoked lets go of partitions that another member of the group will have: what was passed
// on is waited for, and committed.
func (in *Input) revoked(ctx context.Context, client *kgo.Client, all map[string][]int32) {
	in.dropHeld(all)
	in.await(all)
	in.lost(ctx, client, all)
	ctx, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		in.site.State.Fail(err)
	}
}

// lost forgets partitions that another member of the group has already.
func (in *Input) lost(_ context.Context, _ *kgo.Client, all map[string][]int32) {
	in.dropHeld(all)
	in.mu.Lock()
	defer in.mu.Unlock()
	each(all, func(at place) {
		if p := in.partitions[at]; p != nil {
			p.gone.Store(true)
			delete(in.partitions, at)
		}
	})
	in.changed.Broadcast()
}

// dropHeld drops what was fetched of partitions and not passed on.
func (in *Input) dropHeld(all map[string][]int32) {
	of := make(map[place]bool)
	each(all, func(at place) { of[at] = true })
	in.mu.Lock()
	defer in.mu.Unlock()
	in.held = slices.DeleteFunc(in.held, func(r *record) bool { return of[r.of.place] })
}

// await waits until what was passed on of partitions is settled, for a while.
func (in *Input) await(all map[string][]int32) {
	over := false
	timer := time.AfterFunc(handOver, func() {
		in.mu.Lock()
		over = true
		in.mu.Unlock()
		in.changed.Broadcast()
	})
	defer timer.Stop()
	in.mu.Lock()
	defer in.mu.Unlock()
	for !over && !in.closed && in.isOpen(all) {
		in.changed.Wait()
	}
}

// isOpen reports whether something of partitions is not settled. It needs mu.
func (in *Input) isOpen(all map[string][]int32) (open bool) {
	each(all, func(at place) {
		if p := in.partitions[at]; p != nil {
			open = open || slices.ContainsFunc(p.open, func(r *record) bool { return r.flying })
		}
	})
	return open
}

func each(all map[string][]int32, do func(place)) {
	for topic, numbers := range all {
		for _, number := range numbers {
			do(place{topic, number})
		}
	}
}
