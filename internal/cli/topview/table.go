package topview

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Row is the traffic of one API, or of all.
type Row struct {
	API      string   `json:"api"` // "" for the total, or for requests without an API
	Requests float64  `json:"requests_per_second"`
	Refused  float64  `json:"refused_per_second"`
	Failed   float64  `json:"failed_per_second"` // responses with 5xx
	P50      *float64 `json:"p50_ms"`            // nil: no responses
	P99      *float64 `json:"p99_ms"`
	Own      *float64 `json:"gateway_p99_ms"`
	Upstream *float64 `json:"upstream_p99_ms"`
}

// A Reason is a reason of refusals with its rate.
type Reason struct {
	Reason string  `json:"reason"`
	Rate   float64 `json:"per_second"`
}

// A Table is the traffic between two samples.
type Table struct {
	Seconds float64  `json:"seconds"`
	All     Row      `json:"all"`
	APIs    []Row    `json:"apis"`    // busiest first
	Reasons []Reason `json:"reasons"` // most frequent first
}

// Between returns the traffic between two samples, of one API unless that is "".
func Between(before, after *Sample, only string) *Table {
	t := &Table{Seconds: after.At.Sub(before.At).Seconds(), APIs: []Row{}, Reasons: []Reason{}}
	if t.Seconds <= 0 {
		t.Seconds = 1
	}
	reasons := make(map[string]float64)
	all := counts{refused: make(map[string]float64)}
	for id, now := range after.apis {
		if only != "" && id != only {
			continue
		}
		d := now.since(before.apis[id])
		t.APIs = append(t.APIs, d.row(id, t.Seconds))
		for reason, n := range d.refused {
			reasons[reason] += n
		}
		all.merge(d)
	}
	all.refused = reasons
	t.All = all.row("", t.Seconds)
	slices.SortFunc(t.APIs, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.API, b.API)) })
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if reasons[reason] > 0 {
			t.Reasons = append(t.Reasons, Reason{reason, reasons[reason] / t.Seconds})
		}
	}
	slices.SortStableFunc(t.Reasons, func(a, b Reason) int { return cmp.Compare(b.Rate, a.Rate) })
	return t
}

// since returns the difference to an earlier value.
func (c *counts) since(before *counts) *counts {
	if before == nil || before.requests > c.requests {
		before = &counts{}
	}
	d := &counts{requests: c.requests - before.requests, failed: c.failed - before.failed, refused: make(map[string]float64, len(c.refused))}
	for reason, n := range c.refused {
		d.refused[reason] = n - before.refused[reason]
	}
	d.whole, d.own, d.up = *c.whole.since(&before.whole), *c.own.since(&before.own), *c.up.since(&before.up)
	return d
}

func (c *counts) merge(d *counts) {
	c.requests += d.requests
	c.failed += d.failed
	c.whole.merge(&d.whole)
	c.own.merge(&d.own)
	c.up.merge(&d.up)
}

func (c *counts) row(api string, seconds float64) Row {
	refused := 0.0
	for _, n := range c.refused {
		refused += n
	}
	return Row{
		API: api, Requests: c.requests / seconds, Refused: refused / seconds, Failed: c.failed / seconds,
		P50: number(c.whole.quantile(0.5)), P99: number(c.whole.quantile(0.99)),
		Own: number(c.own.quantile(0.99)), Upstream: number(c.up.quantile(0.99)),
	}
}

// number returns nil for NaN, which JSON does not have.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Text formats a table, with at most lines APIs; 0: all.
func (t *Table) Text(lines int) string {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 4, 2, ' ', tabwriter.AlignRight)
	write := func(cells ...string) { _, _ = fmt.Fprintln(tab, strings.Join(cells, "\t")+"\t") } // into memory
	write("REQ/S", "REFUSED/S", "5XX/S", "P50 MS", "P99 MS", "GATEWAY P99", "UPSTREAM P99", "API")
	for i, r := range append([]Row{t.All}, t.APIs...) {
		if lines > 0 && i > lines {
			write("", "", "", "", "", "", "", fmt.Sprintf("and %d more", len(t.APIs)-lines))
			break
		}
		name := r.API
		switch {
		case i == 0:
			name = "(all)"
		case name == "":
			name = "(none)"
		}
		write(fmt.Sprintf("%.1f", r.Requests), fmt.Sprintf("%.1f", r.Refused), fmt.Sprintf("%.1f", r.Failed), ms(r.P50), ms(r.P99), ms(r.Own), ms(r.Upstream), name)
	}
	_ = tab.Flush() // into memory
	if len(t.Reasons) > 0 {
		b.WriteString("\nrefused, per second:\n")
	}
	for _, r := range t.Reasons {
		fmt.Fprintf(&b, "  %8.1f  %s\n", r.Rate, r.Reason)
	}
	return b.String()
}

func ms(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}
