package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

// openLoopFor is how long a rate is kept up.
const openLoopFor = 4 * time.Second

// latencies is what vegeta reports, in nanoseconds.
type latencies struct {
	Latencies struct {
		P50 int64 `json:"50th"`
		P99 int64 `json:"99th"`
	} `json:"latencies"`
	BytesIn struct {
		Mean float64 `json:"mean"`
	} `json:"bytes_in"`
	Rate    float64        `json:"rate"`
	Success float64        `json:"success"`
	Codes   map[string]int `json:"status_codes"`
}

// measureOpenLoop asks at fixed rates, whatever the answers take.
func measureOpenLoop(ctx context.Context, b *bench) error {
	if _, err := os.Stat(b.bin + "/vegeta"); err != nil {
		b.printf("The open loop is left out: %v\n\n", err)
		return nil
	}
	b.printf("### Open loop, %v at each rate\n\n| | requests/s | p50 ms | p99 ms | CPU µs | as wanted |\n|---|---|---|---|---|---|\n", openLoopFor)
	started, err := b.startAll(ctx, b.chosen(b.contenders()))
	if err != nil {
		return err
	}
	for _, r := range started {
		defer r.stop()
	}
	for _, rate := range b.rates {
		for _, r := range started {
			if err := b.openLoop(ctx, r, rate); err != nil {
				return fmt.Errorf("%s at %d/s: %w", r.name, rate, err)
			}
		}
	}
	b.printf("\n")
	return nil
}

func (b *bench) openLoop(ctx context.Context, r *running, rate int) error {
	targets, err := b.targets(r)
	if err != nil {
		return err
	}
	if _, err := b.attack(ctx, onslaught{targets, "json", rate, time.Second}); err != nil { // connections and caches
		return err
	}
	before, err := r.process.CPU()
	if err != nil {
		return err
	}
	got, err := b.attack(ctx, onslaught{targets, "json", rate, openLoopFor})
	if err != nil {
		return err
	}
	after, err := r.process.CPU()
	if err != nil {
		return err
	}
	if got.asked() == 0 {
		return errors.New("no answers")
	}
	body, _ := load.Body([]byte(b.path()))
	wanted := fmt.Sprintf("%.2f %%", 100*got.Success)
	if got.Success == 1 && int(got.BytesIn.Mean) == len(body) {
		wanted = "all"
	}
	b.printf("| %s | %.0f | %.2f | %.2f | %.1f | %s |\n", r.name, got.Rate,
		float64(got.Latencies.P50)/1e6, float64(got.Latencies.P99)/1e6, micros(after-before)/float64(got.asked()), wanted)
	return nil
}

// An onslaught is what vegeta is told.
type onslaught struct {
	targets []byte // in the form that format names
	format  string // json or http
	rate    int    // requests per second
	long    time.Duration
}

// attack runs vegeta and its report.
func (b *bench) attack(ctx context.Context, o onslaught) (*latencies, error) {
	attack := exec.CommandContext(ctx, b.bin+"/vegeta", "attack", "-format="+o.format, "-rate", fmt.Sprint(o.rate), "-duration", o.long.String(),
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

// targets writes requests like the closed loop's in vegeta's form.
func (b *bench) targets(r *running) ([]byte, error) {
	type target struct {
		Method string      `json:"method"`
		URL    string      `json:"url"`
		Header http.Header `json:"header,omitempty"`
	}
	count := 1
	if r.request != nil {
		count = 1000
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for i := range count {
		t := target{Method: http.MethodGet, URL: "http://" + r.addr + b.path(), Header: http.Header{"Accept-Encoding": {"gzip"}}}
		if r.request != nil {
			_, key, _ := strings.Cut(string(r.request(nil, uint64(i))), "Authorization: ")
			t.Header.Set("Authorization", strings.TrimSpace(key))
		}
		if err := enc.Encode(t); err != nil {
			return nil, fmt.Errorf("writing targets: %w", err)
		}
	}
	return out.Bytes(), nil
}
