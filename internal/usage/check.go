package usage

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Receipt reports what of a batch does not count. The zero Receipt: all of it counts.
type Receipt struct {
	// Rows, latencies, refusals and samples that cannot be counted; the others count.
	Refused int `json:"refused"`
	// Calls of the refused rows.
	Calls int64 `json:"refused_calls"`
	// What is wrong with them, each with its place; at most 20.
	Faults []string `json:"faults,omitempty"`
}

// maxFaults bounds the faults that a receipt names.
const maxFaults = 20

// refuse adds an element of a batch.
func (r *Receipt) refuse(place string, at int, fault error) {
	if r.Refused++; len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, fmt.Sprintf("%s[%d].%v", place, at, fault))
	}
}

// Sift returns the batch without the rows, latencies, refusals and samples that cannot be
// counted, which the receipt names with the member that is wrong. b stays as it is. The error is a fault
// of the batch as a whole: nothing of it can be counted.
func (b *Batch) Sift() (good *Batch, refused Receipt, err error) {
	switch {
	case b.Gateway == "" || b.Boot == "":
		return nil, refused, fmt.Errorf("gateway and boot must not be empty")
	case b.Sequence < 1:
		return nil, refused, fmt.Errorf("sequence must be 1 or more, not %d", b.Sequence)
	case len(b.Rows) > MaxRows:
		return nil, refused, fmt.Errorf("rows has %d elements; at most %d are taken at a time", len(b.Rows), MaxRows)
	case len(b.Latencies) > MaxLatencies:
		return nil, refused, fmt.Errorf("latencies has %d elements; at most %d are taken at a time", len(b.Latencies), MaxLatencies)
	case len(b.Refusals) > MaxRefusals:
		return nil, refused, fmt.Errorf("refusals has %d elements; at most %d are taken at a time", len(b.Refusals), MaxRefusals)
	case len(b.Samples) > MaxSamples:
		return nil, refused, fmt.Errorf("samples has %d elements; at most %d are taken at a time", len(b.Samples), MaxSamples)
	}
	if err := checkTexts([]string{"gateway", "boot"}, b.Gateway, b.Boot); err != nil {
		return nil, refused, err
	}
	sifted := *b
	sifted.Rows = make([]Row, 0, len(b.Rows))
	for i := range b.Rows {
		r := &b.Rows[i]
		if err := r.check(); err != nil {
			refused.refuse("rows", i, err)
			refused.Calls += min(max(r.Hits, 0), maxSum)
			continue
		}
		sifted.Rows = append(sifted.Rows, *r)
	}
	sifted.Latencies = make([]Latency, 0, len(b.Latencies))
	for i := range b.Latencies {
		if err := b.Latencies[i].check(); err != nil {
			refused.refuse("latencies", i, err)
			continue
		}
		sifted.Latencies = append(sifted.Latencies, b.Latencies[i])
	}
	sifted.Refusals = make([]Refusal, 0, len(b.Refusals))
	for i := range b.Refusals {
		if err := b.Refusals[i].check(); err != nil {
			refused.refuse("refusals", i, err)
			continue
		}
		sifted.Refusals = append(sifted.Refusals, b.Refusals[i])
	}
	sifted.Samples = make([]Sample, 0, len(b.Samples))
	for i := range b.Samples {
		if err := b.Samples[i].check(); err != nil {
			refused.refuse("samples", i, err)
			continue
		}
		sifted.Samples = append(sifted.Samples, b.Samples[i])
	}
	return &sifted, refused, sifted.checkSums()
}

// checkSums refuses a batch whose rows, if all count for the same calls, add up to more
// than a number can hold.
func (b *Batch) checkSums() error {
	var calls, took, answered int64
	for i := range b.Rows {
		r := &b.Rows[i]
		calls, took, answered = calls+r.Hits, took+r.Total, answered+r.Upstream
		if calls > maxCalls || took > maxSums || answered > maxSums {
			return fmt.Errorf("rows[%d]: up to here the batch comes to %d hits, %d total_us and %d upstream_us; at most %d, %[5]d and %[5]d are taken", i, calls, took, answered, int64(maxCalls), int64(maxSums))
		}
	}
	calls = 0
	for i := range b.Latencies {
		for _, n := range b.Latencies[i].Counts {
			if calls += n; calls > maxCalls {
				return fmt.Errorf("latencies[%d]: up to here the batch comes to %d calls; at most %d are taken", i, calls, int64(maxCalls))
			}
		}
	}
	return nil
}

// Limits of numbers, so that very many of them can be added up. No gateway reaches them
// between two batches.
const (
	maxSum   = 1 << 53 // of one row
	maxSums  = 1 << 57 // of all rows
	maxCalls = 1 << 40
)

func (r *Row) check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"hits", r.Hits}, {"total_us", r.Total}, {"upstream_us", r.Upstream}} {
		if n.value < 0 || n.value > maxSum {
			return fmt.Errorf("%s is %d; it must be between 0 and %d", n.name, n.value, int64(maxSum))
		}
	}
	switch {
	case r.Hits == 0:
		return fmt.Errorf("hits must be 1 or more")
	case r.Status < 0 || r.Status > 999:
		return fmt.Errorf("status is %d; it must be between 0 and 999", r.Status)
	}
	if err := checkMinute(r.Minute, r.API); err != nil {
		return err
	}
	return checkTexts([]string{"org", "api", "key", "reason"}, r.Org, r.API, r.Key, r.Reason)
}

func (l *Latency) check() error {
	for i, n := range l.Counts {
		if n < 0 || n > maxCalls {
			return fmt.Errorf("counts[%d] is %d; it must be between 0 and %d", i, n, int64(maxCalls))
		}
	}
	if err := checkMinute(l.Minute, l.API); err != nil {
		return err
	}
	return checkTexts([]string{"org", "api"}, l.Org, l.API)
}

// maxMinute is the end of the year 9999.
const maxMinute = 253402300800

func checkMinute(minute int64, api string) error {
	switch {
	case minute < 0 || minute > maxMinute || minute%60 != 0:
		return fmt.Errorf("minute is %d; it must be the unix time of a full minute", minute)
	case api == "":
		return fmt.Errorf("api must not be empty")
	}
	return nil
}

// checkTexts checks texts for the database.
func checkTexts(names []string, texts ...string) error {
	for i, text := range texts {
		if len(text) > MaxText {
			return fmt.Errorf("%s has %d bytes; at most %d are taken", names[i], len(text), MaxText)
		}
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s must be UTF-8 without the character 0", names[i])
		}
	}
	return nil
}
