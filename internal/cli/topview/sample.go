// Package topview computes the rates of a gateway's traffic from two scrapes of its
// /metrics.
package topview

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Sample is one scrape of a gateway's metrics.
type Sample struct {
	At      time.Time
	Gateway bool // whether the server has metrics of a gateway
	apis    map[string]*counts
}

// counts are those of one API.
type counts struct {
	requests, failed float64 // failed: responses with 5xx
	refused          map[string]float64
	whole, own, up   histogram
}

// A histogram has cumulative counts by upper bound in seconds.
type histogram struct{ below map[float64]float64 }

// maxLine bounds one line of metrics, in bytes.
const maxLine = 1 << 20

// Parse parses metrics in Prometheus' text format.
func Parse(text []byte, at time.Time) (*Sample, error) {
	s := &Sample{At: at, apis: make(map[string]*counts)}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(line, "sluice_") {
			continue
		}
		if err := s.line(line); err != nil {
			return nil, fmt.Errorf("metrics, line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return s, nil
}

func (s *Sample) line(line string) error {
	name, labels, rest, err := split(line)
	if err != nil {
		return err
	}
	s.Gateway = s.Gateway || name == "sluice_client_connections"
	value, err := strconv.ParseFloat(strings.Fields(rest + " ?")[0], 64)
	if err != nil {
		return fmt.Errorf("%s has no number", name)
	}
	id, ok := labels["api"]
	if !ok {
		return nil
	}
	c := s.apis[id]
	if c == nil {
		c = &counts{refused: make(map[string]float64)}
		s.apis[id] = c
	}
	switch name {
	case "sluice_requests_total":
		c.requests += value
		if strings.HasPrefix(labels["code"], "5") {
			c.failed += value
		}
	case "sluice_rejections_total":
		c.refused[labels["reason"]] += value
	case "sluice_request_seconds_bucket":
		c.whole.add(labels["le"], value)
	case "sluice_gateway_seconds_bucket":
		c.own.add(labels["le"], value)
	case "sluice_upstream_seconds_bucket":
		c.up.add(labels["le"], value)
	}
	return nil
}

// errLine is returned for a line that is not in the text format.
var errLine = errors.New("is no metric")

// split parses a line: name{label="value",...} and the rest.
func split(line string) (name string, labels map[string]string, rest string, err error) {
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return "", nil, "", errLine
	}
	name, rest = line[:end], line[end:]
	if rest[0] != '{' {
		return name, nil, rest, nil
	}
	labels = make(map[string]string)
	for rest = rest[1:]; ; {
		rest = strings.TrimLeft(rest, ", ")
		if after, ok := strings.CutPrefix(rest, "}"); ok {
			return name, labels, after, nil
		}
		label, after, ok := strings.Cut(rest, "=")
		if !ok {
			return "", nil, "", errLine
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			return "", nil, "", errLine
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return "", nil, "", errLine
		}
		labels[label], rest = value, after[len(quoted):]
	}
}

func (h *histogram) add(bound string, n float64) {
	le, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		return
	}
	if h.below == nil {
		h.below = make(map[float64]float64)
	}
	h.below[le] += n
}

// since returns the difference to an earlier sample. After a restart of the gateway it is
// the whole sample.
func (h *histogram) since(before *histogram) *histogram {
	d := new(histogram)
	for le, n := range h.below {
		if before != nil && before.below[le] <= n {
			n -= before.below[le]
		}
		if d.below == nil {
			d.below = make(map[float64]float64)
		}
		d.below[le] = n
	}
	return d
}

// merge adds another histogram.
func (h *histogram) merge(other *histogram) {
	for le, n := range other.below {
		if h.below == nil {
			h.below = make(map[float64]float64)
		}
		h.below[le] += n
	}
}

// quantile estimates a quantile from the buckets, in milliseconds; NaN if empty.
func (h *histogram) quantile(share float64) float64 {
	bounds := make([]float64, 0, len(h.below))
	for le := range h.below {
		bounds = append(bounds, le)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 || h.below[bounds[len(bounds)-1]] <= 0 {
		return math.NaN()
	}
	want := share * h.below[bounds[len(bounds)-1]]
	from, under := 0.0, 0.0
	for _, le := range bounds {
		n := h.below[le]
		if n >= want {
			if math.IsInf(le, 1) || n <= under {
				return from * 1000
			}
			return (from + (le-from)*(want-under)/(n-under)) * 1000
		}
		from, under = le, n
	}
	return from * 1000
}
