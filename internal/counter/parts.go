package counter

import (
	"context"

	"github.com/sluicegate/sluice/internal/counter/script"
	"github.com/sluicegate/sluice/internal/counter/slots"
)

// refundsAway bounds the refunds under way: beyond it they are dropped, rather
// than let a flood of refused calls fill the client's queue.
const refundsAway = 64

// A part is the limits of a call that share a slot, in their order.
type part struct {
	slot   int
	n      int
	limits [MaxLimits]Limit
	counts [MaxLimits]Count
	index  [MaxLimits]uint8 // where each stood in the call's list
	local  bool             // the outage policy decided it
}

func (p *part) all() ([]Limit, []Count) { return p.limits[:p.n], p.counts[:p.n] }

// give copies the part's counts to where its limits stood.
func (p *part) give(counts []Count) {
	for i := range p.n {
		counts[p.index[i]] = p.counts[i]
	}
}

// divide splits a call's limits by slot, in the order in which slots appear.
func divide(limits []Limit) []part {
	parts := make([]part, 0, 2)
	for i := range limits {
		s := slots.Of(limits[i].Key)
		at := 0
		for at < len(parts) && parts[at].slot != s {
			at++
		}
		if at == len(parts) {
			parts = append(parts, part{slot: s})
		}
		p := &parts[at]
		p.limits[p.n], p.index[p.n] = limits[i], uint8(i)
		p.n++
	}
	return parts
}

// shared returns the lane of limits that one command can count: the usual case.
func (v *Valkey) shared(limits []Limit) (*lane, bool) {
	if !v.clustered {
		return v.lanes[0], true
	}
	first := slots.Of(limits[0].Key)
	for i := 1; i < len(limits); i++ {
		if slots.Of(limits[i].Key) != first {
			return nil, false
		}
	}
	return v.laneOf(first), true
}

// askParts counts slot after slot. An earlier slot's counts for a call that a
// later one refuses, or gives no answer to, are given back.
func (v *Valkey) askParts(ctx context.Context, limits []Limit, counts []Count, calls int32) (int, error) {
	clear(counts[:len(limits)])
	parts := divide(limits)
	for i := range parts {
		p := &parts[i]
		some, left := p.all()
		refused, local, err := v.laneOf(p.slot).decide(ctx, some, left, calls)
		if err == nil {
			p.give(counts)
		}
		if refused < 0 && err == nil {
			p.local = local
			continue
		}
		if calls > 0 {
			v.refundAll(ctx, parts[:i], int64(calls), counts)
		}
		if err != nil {
			return 0, err
		}
		return int(p.index[refused]), nil
	}
	return -1, nil
}

func (v *Valkey) refundAll(ctx context.Context, parts []part, calls int64, counts []Count) {
	for i := range parts {
		v.refund(ctx, &parts[i], calls)
		parts[i].give(counts)
	}
}

// refund gives back the quota calls of a part, if the period that counted them
// is still open. Rates heal by themselves within their period. A refund that is
// lost leaves its quota too strict by these calls.
func (v *Valkey) refund(ctx context.Context, p *part, calls int64) {
	l := v.laneOf(p.slot)
	some, counts := p.all()
	var batch []script.Adjustment
	for i := range some {
		if some[i].Kind == Quota {
			batch = append(batch, script.Adjustment{What: script.Refund, Key: some[i].Key, Calls: calls, Reset: counts[i].ResetAt})
			counts[i].Remaining += calls
		}
	}
	if p.local {
		l.standby.refund(some, calls)
		return
	}
	c := v.client.Load()
	if len(batch) == 0 || c == nil {
		return
	}
	done := 0
	select {
	case v.refunds <- struct{}{}:
		done, _, _ = v.adjust(context.WithoutCancel(ctx), *c, batch) // what failed is counted as lost
		<-v.refunds
	default:
	}
	v.stats.Refunds.Add(calls * int64(done))
	v.stats.RefundsLost.Add(calls * int64(len(batch)-done))
}
