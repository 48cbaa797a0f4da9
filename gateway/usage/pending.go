package usage

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/usage"
)

// maxPending bounds the rows that wait, in about 70 MiB. A gateway counts fewer
// between two Takes, so no detail is lost while the admin answers.
const maxPending = 350_000

// pendingKey is what calls have in common that are shipped in one row.
type pendingKey struct {
	minute                int64
	org, api, key, reason string
	status                int
}

// pendingSums are the numbers of such calls.
type pendingSums struct{ hits, total, upstream int64 }

// apiMinute is a minute of an API.
type apiMinute struct {
	minute   int64
	org, api string
}

// pending holds what the admin does not have yet. If the admin is away for long,
// rows become coarser, but no call is lost.
type pending struct {
	most      int
	rows      map[pendingKey]pendingSums
	latencies map[apiMinute]*usage.Latencies
	refusals  []usage.Refusal // in the order in which they came
	samples   []usage.Sample  // the same
	sampled   int             // bytes of the texts of samples
	merged    uint64
	forgotten uint64 // refusals
	unsampled uint64 // samples
	level     int    // index into coarseness
}

func newPending(most int) *pending {
	return &pending{most: most, rows: make(map[pendingKey]pendingSums), latencies: make(map[apiMinute]*usage.Latencies)}
}

func (p *pending) len() int { return len(p.rows) + len(p.latencies) }

// addRow adds a row. It copies the key, so that the row's texts can be freed.
func (p *pending) addRow(r usage.Row) {
	at := p.coarse(pendingKey{minute: r.Minute, org: r.Org, api: r.API, key: r.Key, reason: r.Reason, status: r.Status})
	was, found := p.rows[at]
	if !found {
		if p.len() >= p.most && p.level < coarsest {
			p.coarsen()
			p.addRow(r)
			return
		}
		at.key = strings.Clone(at.key) // otherwise it keeps the whole session from being freed
	}
	p.rows[at] = pendingSums{was.hits + r.Hits, was.total + r.Total, was.upstream + r.Upstream}
}

// maxRefusals bounds the refusals that wait, in about 5 MiB. The oldest are given up for
// new ones: their counts are in rows.
const maxRefusals = 8 * usage.MaxRefusals

func (p *pending) addRefusal(r usage.Refusal) {
	if len(p.refusals) >= maxRefusals {
		p.forgotten += maxRefusals / 8
		p.refusals = append(p.refusals[:0], p.refusals[maxRefusals/8:]...)
	}
	p.refusals = append(p.refusals, r)
}

// maxSampled bounds the texts of the samples that wait, in bytes. The oldest are given up
// for new ones.
const maxSampled = 8 << 20

func (p *pending) addSample(s usage.Sample) {
	p.samples = append(p.samples, s)
	p.sampled += s.Size()
	gone := 0
	for p.sampled > maxSampled {
		p.sampled -= p.samples[gone].Size()
		gone++
	}
	p.unsampled += uint64(gone)
	p.samples = slices.Delete(p.samples, 0, gone)
}

// takeSamples removes and returns as many samples as fit into one batch.
func (p *pending) takeSamples() []usage.Sample {
	n := usage.Fits(p.samples)
	some := slices.Clone(p.samples[:n])
	for i := range some {
		p.sampled -= some[i].Size()
	}
	p.samples = slices.Delete(p.samples, 0, n)
	return some
}

func (p *pending) addLatency(l usage.Latency) {
	at := apiMinute{l.Minute, l.Org, l.API}
	if p.level > 0 {
		at.minute -= at.minute % coarseness[p.level].seconds
	}
	p.mergeLatency(at, &l.Counts)
}

func (p *pending) mergeLatency(at apiMinute, counts *usage.Latencies) {
	sum := p.latencies[at]
	if sum == nil {
		sum = new(usage.Latencies)
		p.latencies[at] = sum
	}
	for i, n := range counts {
		sum[i] += n
	}
}

// coarseness lists what rows still tell apart as more of them wait: minutes, hours,
// hours without keys, days without keys.
var coarseness = [...]struct {
	seconds int64
	keyless bool
}{{60, false}, {3600, false}, {3600, true}, {24 * 3600, true}}

const coarsest = len(coarseness) - 1

// coarse reduces a key to the current level.
func (p *pending) coarse(at pendingKey) pendingKey {
	c := coarseness[p.level]
	at.minute -= at.minute % c.seconds
	if c.keyless && at.key != "" {
		at.key = usage.Other
	}
	return at
}

// coarsen moves to the next level, which stays until nothing waits any more, and merges
// the rows that wait.
func (p *pending) coarsen() {
	p.level++
	rows, latencies := p.rows, p.latencies
	p.rows, p.latencies = make(map[pendingKey]pendingSums), make(map[apiMinute]*usage.Latencies)
	for at, n := range rows {
		at = p.coarse(at)
		was := p.rows[at]
		p.rows[at] = pendingSums{was.hits + n.hits, was.total + n.total, was.upstream + n.upstream}
	}
	for at, counts := range latencies {
		at.minute -= at.minute % coarseness[p.level].seconds
		p.mergeLatency(at, counts)
	}
	p.merged += uint64(len(rows) - len(p.rows))
}

// maxBatch bounds a batch in bytes of JSON without escapes. The admin accepts twice as
// much.
const maxBatch = 2 << 20

// rowSize estimates the bytes of a row in JSON, without its texts.
const rowSize = 160

// take removes and returns as much as fits into one batch.
func (p *pending) take() (next part) {
	size := 0
	for at, n := range p.rows {
		if len(next.rows) == usage.MaxRows || size > maxBatch {
			return next
		}
		size += rowSize + len(at.org) + len(at.api) + len(at.key) + len(at.reason)
		delete(p.rows, at)
		next.rows = append(next.rows, usage.Row{
			Minute: at.minute, Org: at.org, API: at.api, Key: at.key, Status: at.status, Reason: at.reason,
			Hits: n.hits, Total: n.total, Upstream: n.upstream,
		})
	}
	for at, counts := range p.latencies {
		if len(next.latencies) == usage.MaxLatencies || size > maxBatch {
			return next
		}
		size += rowSize + len(at.org) + len(at.api)
		delete(p.latencies, at)
		next.latencies = append(next.latencies, usage.Latency{Minute: at.minute, Org: at.org, API: at.api, Counts: *counts})
	}
	p.level = 0
	if size <= maxBatch/2 {
		n := min(len(p.refusals), usage.MaxRefusals)
		next.refusals = slices.Clone(p.refusals[:n])
		p.refusals = slices.Delete(p.refusals, 0, n)
	}
	if len(next.refusals) == 0 && size <= maxBatch/2 {
		next.samples = p.takeSamples()
	}
	return next
}
