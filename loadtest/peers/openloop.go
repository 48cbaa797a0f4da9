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

// A rate is kept up for a while, several times in turn with the others: what a
// neighbour of the machine does to one of the times, the median leaves out.
const (
	openLoopFor   = 1500 * time.Millisecond
	openLoopTimes = 5
)

// latencies is what vegeta reports, in nanoseconds.
type latencies struct {
	Latencies struct {
		P50 int64 `json:"50th"`
		P99 int64 `json:"99th"`
	} `json:"latencies"`
	BytesIn struct {
		Mean float64 `json:"mean"`
	} `json:"bytes_in"`
	Rate  float64        `json:"rate"`
	Codes map[string]int `json:"status_codes"`
}

// measureOpenLoop asks at fixed rates, whatever the answers take.
func measureOpenLoop(ctx context.Context, b *bench) error {
	if _, err := os.Stat(b.bin + "/vegeta"); err != nil {
		b.printf("The open loop is left out: %v\n\n", err)
		return nil
	}
	b.printf("### Open loop, medians of %d times %v at each rate\n\n| | requests/s | p50 ms | p99 ms | CPU µs | as wanted |\n|---|---|---|---|---|---|\n", openLoopTimes, openLoopFor)
	started, err := b.startAll(ctx, b.chosen(b.contenders()))
	if err != nil {
		return err
	}
	for _, r := range started {
		defer r.stop()
	}
	for _, rate := range b.rates {
		if err := b.openLoop(ctx, started, rate); err != nil {
			return err
		}
	}
	b.printf("\n")
	return nil
}

// opened is what one contender's times came to.
type opened struct {
	*running
	targets       []byte
	rate          []float64
	p50, p99, cpu []float64
	wrong         int
}

// openLoop has all contenders take turns at one rate.
func (b *bench) openLoop(ctx context.Context, started []*running, rate int) error {
	all := make([]*opened, len(started))
	for i, r := range started {
		targets, err := b.targets(r)
		if err != nil {
			return err
		}
		all[i] = &opened{running: r, targets: targets}
		if _, err := b.attack(ctx, onslaught{targets, "json", rate, time.Second}); err != nil { // connections and caches
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	for round := range openLoopTimes {
		for i := range all {
			o := all[(round+i)%len(all)]
			if err := b.openOnce(ctx, o, rate); err != nil {
				return fmt.Errorf("%s at %d/s: %w", o.name, rate, err)
			}
		}
	}
	for _, o := range all {
		wanted := "all"
		if o.wrong > 0 {
			wanted = fmt.Sprintf("all but %d", o.wrong)
		}
		b.printf("| %s | %.0f | %.2f | %.2f | %.1f | %s |\n", o.name, median(o.rate), median(o.p50), median(o.p99), median(o.cpu), wanted)
	}
	return nil
}

func (b *bench) openOnce(ctx context.Context, o *opened, rate int) error {
	before, err := o.process.CPU()
	if err != nil {
		return err
	}
	got, err := b.attack(ctx, onslaught{o.targets, "json", rate, openLoopFor})
	if err != nil {
		return err
	}
	after, err := o.process.CPU()
	if err != nil {
		return err
	}
	asked := got.asked()
	if asked == 0 {
		return errors.New("no answers")
	}
	body, _ := load.Body([]byte(b.path()))
	if int(got.BytesIn.Mean) != len(body) && got.Codes["200"] == asked {
		return fmt.Errorf("bodies of %.0f bytes, want %d", got.BytesIn.Mean, len(body))
	}
	o.wrong += asked - got.Codes["200"]
	o.rate, o.cpu = append(o.rate, got.Rate), append(o.cpu, micros(after-before)/float64(asked))
	o.p50, o.p99 = append(o.p50, float64(got.Latencies.P50)/1e6), append(o.p99, float64(got.Latencies.P99)/1e6)
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
