package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"
)

// latencies is what vegeta reports, in nanoseconds.
type latencies struct {
	Latencies struct {
		P50 int64 `json:"50th"`
		P99 int64 `json:"99th"`
	} `json:"latencies"`
	Rate  float64        `json:"rate"`
	Codes map[string]int `json:"status_codes"`
}

// An onslaught is what vegeta is told.
type onslaught struct {
	targets []byte // in vegeta's form named http
	rate    int    // requests per second
	long    time.Duration
}

// attack runs vegeta and its report.
func (b *bench) attack(ctx context.Context, o onslaught) (*latencies, error) {
	attack := exec.CommandContext(ctx, b.bin+"/vegeta", "attack", "-format=http", "-rate", fmt.Sprint(o.rate), "-duration", o.long.String(),
		"-timeout", "5s", "-workers", "32", "-max-workers", "512", "-connections", "512", "-http2=false")
	attack.Stdin = bytes.NewReader(o.targets)
	results, err := attack.Output()
	if err != nil {
		return nil, fmt.Errorf("vegeta attack: %w", err)
	}
	report := exec.CommandContext(ctx, b.bin+"/vegeta", "report", "-type=json")
	report.Stdin = bytes.NewReader(results)
	out, err := report.Output()
	if err != nil {
		return nil, fmt.Errorf("vegeta report: %w", err)
	}
	var l latencies
	if err := json.Unmarshal(out, &l); err != nil {
		return nil, fmt.Errorf("vegeta report: %w", err)
	}
	return &l, nil
}

// asked is how many requests were made.
func (l *latencies) asked() int {
	n := 0
	for _, times := range l.Codes {
		n += times
	}
	return n
}
