package counter

import (
	"context"
	"strings"

	"github.com/sluicegate/sluice/internal/counter/script"
)

// refundsInFlight bounds the refunds in flight: further ones are dropped, so that
// a flood of refused calls does not fill the client's queue.
const refundsInFlight = 64

// hashSlots is how many hash slots a cluster spreads its keys over.
const hashSlots = 16384

// hashTag returns the part of a key that decides its hash slot: what is in the
// first pair of braces, or all of it if there is none or it is empty.
func hashTag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key[open+1 : open+1+end]
		}
	}
	return key
}

// hashSlot returns the hash slot of a key, below hashSlots: CRC-16/XMODEM of its
// hash tag.
func hashSlot(key string) int {
	var crc uint16
	tag := hashTag(key)
	for i := range len(tag) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^tag[i]]
	}
	return int(crc) % hashSlots
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// A part is the limits of a call that share a hash slot, in their order.
type part struct {
	slot   int
	n      int
	limits [MaxLimits]Limit
	counts [MaxLimits]Count
	index  [MaxLimits]uint8 // of each in the call's list
	local  bool             // the outage policy decided it
}

func (p *part) all() ([]Limit, []Count) { return p.limits[:p.n], p.counts[:p.n] }

// copyCounts copies the part's counts to those of the call.
func (p *part) copyCounts(counts []Count) {
	for i := range p.n {
		counts[p.index[i]] = p.counts[i]
	}
}

// divide splits a call's limits by hash slot, in the order in which these appear.
func divide(limits []Limit) []part {
	parts := make([]part, 0, 2)
	for i := range limits {
		s := hashSlot(limits[i].Key)
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

// shared returns the lane of limits that one command can count, as it usually can.
func (v *Valkey) shared(limits []Limit) (*lane, bool) {
	if !v.clustered {
		return v.lanes[0], true
	}
	first := hashSlot(limits[0].Key)
	for i := 1; i < len(limits); i++ {
		if hashSlot(limits[i].Key) != first {
			return nil, false
		}
	}
	return v.laneOf(first), true
}

// countParts counts one hash slot after the other. What earlier slots counted for a
// call that a later one refuses, or does not answer, is refunded.
func (v *Valkey) countParts(ctx context.Context, limits []Limit, counts []Count, calls int32) (int, error) {
	clear(counts[:len(limits)])
	parts := divide(limits)
	for i := range parts {
		p := &parts[i]
		some, left := p.all()
		refused, local, err := v.laneOf(p.slot).decide(ctx, some, left, calls)
		if err == nil {
			p.copyCounts(counts)
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
		parts[i].copyCounts(counts)
	}
}

// refund takes back the quota calls of a part, if the period that counted them is
// still open. Rates forget them by themselves within their period. A refund that is
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
		done, _, _ = v.adjust(context.WithoutCancel(ctx), *c, batch) // failures are counted as lost
		<-v.refunds
	default:
	}
	v.stats.Refunds.Add(calls * int64(done))
	v.stats.RefundsLost.Add(calls * int64(len(batch)-done))
}
