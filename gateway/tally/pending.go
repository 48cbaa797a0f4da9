package tally

import (
	"strings"

	"github.com/sluicegate/sluice/internal/definition/usage"
)

// maxPending bounds the rows that wait, in some 70 MiB. A gateway counts fewer
// between two looks, so that nothing is given up while the admin answers.
const maxPending = 350_000

// like says which calls count together.
type like struct {
	minute                int64
	org, api, key, reason string
	status                int
}

// sums are the numbers of calls that count together.
type sums struct{ hits, total, upstream int64 }

// when is the minute of an API.
type when struct {
	minute   int64
	org, api string
}

// pending holds what the admin does not have. While that is away for long, what
// is held becomes coarser, and no call is forgotten.
type pending struct {
	most      int
	rows      map[like]sums
	latencies map[when]*usage.Latencies
	merged    uint64
	level     int // how coarse what comes in is kept
}

func newPending(most int) *pending {
	return &pending{most: most, rows: make(map[like]sums), latencies: make(map[when]*usage.Latencies)}
}

func (p *pending) len() int { return len(p.rows) + len(p.latencies) }

// addRow adds a row, whose texts are not kept.
func (p *pending) addRow(r usage.Row) {
	at := p.coarse(like{minute: r.Minute, org: r.Org, api: r.API, key: r.Key, reason: r.Reason, status: r.Status})
	was, found := p.rows[at]
	if !found {
		if p.len() >= p.most && p.level < coarsest {
			p.coarsen()
			p.addRow(r)
			return
		}
		at.key = strings.Clone(at.key) // else it holds on to the credential beside it
	}
	p.rows[at] = sums{was.hits + r.Hits, was.total + r.Total, was.upstream + r.Upstream}
}

func (p *pending) addLatency(l usage.Latency) {
	at := when{l.Minute, l.Org, l.API}
	if p.level > 0 {
		at.minute -= at.minute % coarseness[p.level].seconds
	}
	p.mergeLatency(at, &l.Counts)
}

func (p *pending) mergeLatency(at when, counts *usage.Latencies) {
	sum := p.latencies[at]
	if sum == nil {
		sum = new(usage.Latencies)
		p.latencies[at] = sum
	}
	for i, n := range counts {
		sum[i] += n
	}
}

// coarseness says what is still told apart, the more rows wait: the hour, then
// the hour without keys, then the day. What is left are the APIs with what came
// of their calls, of which there are only so many.
var coarseness = [...]struct {
	seconds int64
	keyless bool
}{{60, false}, {3600, false}, {3600, true}, {24 * 3600, true}}

const coarsest = len(coarseness) - 1

// coarse returns with what calls count together at the level of now.
func (p *pending) coarse(at like) like {
	c := coarseness[p.level]
	at.minute -= at.minute % c.seconds
	if c.keyless && at.key != "" {
		at.key = usage.Other
	}
	return at
}

// coarsen tells less apart of what waits, and of what comes in until nothing
// waits any more.
func (p *pending) coarsen() {
	p.level++
	rows, latencies := p.rows, p.latencies
	p.rows, p.latencies = make(map[like]sums), make(map[when]*usage.Latencies)
	for at, n := range rows {
		at = p.coarse(at)
		was := p.rows[at]
		p.rows[at] = sums{was.hits + n.hits, was.total + n.total, was.upstream + n.upstream}
	}
	for at, counts := range latencies {
		at.minute -= at.minute % coarseness[p.level].seconds
		p.mergeLatency(at, counts)
	}
	p.merged += uint64(len(rows) - len(p.rows))
}

// maxBatch bounds a batch, in bytes of JSON without escapes; the admin takes twice
// as much.
const maxBatch = 2 << 20

// rowSize is about what a row takes in JSON, without its texts.
const rowSize = 160

// take takes out as much as goes into one batch.
func (p *pending) take() (rows []usage.Row, latencies []usage.Latency) {
	size := 0
	for at, n := range p.rows {
		if len(rows) == usage.MaxRows || size > maxBatch {
			return rows, nil
		}
		size += rowSize + len(at.org) + len(at.api) + len(at.key) + len(at.reason)
		delete(p.rows, at)
		rows = append(rows, usage.Row{
			Minute: at.minute, Org: at.org, API: at.api, Key: at.key, Status: at.status, Reason: at.reason,
			Hits: n.hits, Total: n.total, Upstream: n.upstream,
		})
	}
	for at, counts := range p.latencies {
		if len(latencies) == usage.MaxLatencies || size > maxBatch {
			return rows, latencies
		}
		size += rowSize + len(at.org) + len(at.api)
		delete(p.latencies, at)
		latencies = append(latencies, usage.Latency{Minute: at.minute, Org: at.org, API: at.api, Counts: *counts})
	}
	p.level = 0
	return rows, latencies
}
