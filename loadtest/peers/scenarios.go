package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/loadtest/load"
)

// measureScenarios runs what production brings, against gateways that share a
// store: steady traffic, a burst, a flood of unknown keys, and a race for a
// quota.
func measureScenarios(ctx context.Context, b *bench) error {
	started, err := b.startAll(ctx, []contender{{"gateway", startSluice(setup{keys: 1000, shared: true})}})
	if err != nil || len(started) == 0 {
		return err
	}
	g := started[0]
	defer g.stop()
	capacity := b.capacity(ctx, g)
	b.printf("### Scenarios, shared store, open loop; in a closed loop the gateway answers %d requests/s here\n\n", capacity)
	if err := b.vegetaScenarios(ctx, g, capacity); err != nil {
		return err
	}
	return b.k6Scenarios(ctx, g, capacity)
}

// capacity is how many requests a second a closed loop gets answered.
func (b *bench) capacity(ctx context.Context, r *running) int {
	client := load.New(b.plan(r, b.conns))
	defer client.Close()
	client.Run(ctx, time.Second)
	before, began := client.Stats().Good, time.Now()
	client.Run(ctx, 2*time.Second)
	return int(float64(client.Stats().Good-before) / time.Since(began).Seconds())
}

// scenario is one of vegeta's.
type scenario struct {
	name  string
	file  string
	words map[string]string // stand in the file with a $ before them
	rate  int
	long  time.Duration
	want  map[string]int // answers by status; -1: any number
}

func (b *bench) vegetaScenarios(ctx context.Context, g *running, capacity int) error {
	if _, err := os.Stat(b.bin + "/vegeta"); err != nil {
		b.printf("vegeta's are left out: %v\n\n", err)
		return nil
	}
	keyed := map[string]string{"ADDR": g.addr}
	all := []scenario{
		{"steady, 30 % of that", "keyed.txt", keyed, capacity * 3 / 10, 4 * time.Second, map[string]int{"200": -1}},
		{"steady, 50 %", "keyed.txt", keyed, capacity * 5 / 10, 4 * time.Second, map[string]int{"200": -1}},
		{"steady, 70 %", "keyed.txt", keyed, capacity * 7 / 10, 4 * time.Second, map[string]int{"200": -1}},
		{"burst, 150 % for a second", "keyed.txt", keyed, capacity * 15 / 10, time.Second, map[string]int{"200": -1}},
		{"after it, 30 %", "keyed.txt", keyed, capacity * 3 / 10, 2 * time.Second, map[string]int{"200": -1}},
		{"flood of random tokens", "flood.txt", map[string]string{"ADDR": g.addr, "PREFIX": ""}, capacity / 2, 3 * time.Second, map[string]int{"403": -1}},
		{"flood of forged keys", "flood.txt", map[string]string{"ADDR": g.addr, "PREFIX": credential.DefaultPrefix}, capacity / 2, 3 * time.Second, map[string]int{"403": -1}},
	}
	b.printf("| scenario | requests/s | answers | p50 ms | p99 ms | gateway CPU µs | store CPU µs | |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range all {
		if err := b.play(ctx, g, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return b.raceForQuota(ctx)
}

// raceForQuota has two gateways admit calls of one key from one quota.
func (b *bench) raceForQuota(ctx context.Context) error {
	one, err := startSluice(setup{keys: 1, shared: true, policy: race})(ctx, b)
	if err != nil {
		return err
	}
	defer one.stop()
	other, err := startSluice(setup{keys: 1, shared: true, beside: one})(ctx, b)
	if err != nil {
		return err
	}
	defer other.stop()
	err = b.play(ctx, one, scenario{
		"two gateways, one quota of 1000", "race.txt",
		map[string]string{"ADDR": one.addr, "OTHER": other.addr},
		2000, 2 * time.Second,
		map[string]int{"200": raceQuota, "403": -1},
	})
	b.printf("\n")
	return err
}

// play runs one scenario and says whether it came out as it should.
func (b *bench) play(ctx context.Context, r *running, s scenario) error {
	text, err := os.ReadFile(filepath.Join(b.files, "vegeta", s.file))
	if err != nil {
		return err
	}
	targets := expand(string(text), r.keys, s)
	before, err := costs(r)
	if err != nil {
		return err
	}
	got, err := b.attack(ctx, onslaught{targets, s.rate, s.long})
	if err != nil {
		return err
	}
	after, err := costs(r)
	if err != nil {
		return err
	}
	verdict := "as it should be"
	for status, n := range got.Codes {
		if want, ok := s.want[status]; !ok || want >= 0 && want != n {
			verdict = "**wrong**"
		}
	}
	n := float64(got.asked())
	b.printf("| %s | %.0f | %s | %.2f | %.2f | %.1f | %.1f | %s |\n", s.name, got.Rate, spell(got.Codes),
		float64(got.Latencies.P50)/1e6, float64(got.Latencies.P99)/1e6,
		micros(after[0]-before[0])/n, micros(after[1]-before[1])/n, verdict)
	return nil
}

func costs(r *running) (c [2]time.Duration, err error) {
	if c[0], err = r.process.CPU(); err == nil && r.store != nil {
		c[1], err = r.store.CPU()
	}
	return c, err
}

func spell(codes map[string]int) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(codes)) {
		parts = append(parts, fmt.Sprintf("%d × %s", codes[status], status))
	}
	return strings.Join(parts, ", ")
}

// expand writes a file's targets as often as there are requests to make, each
// time with another key or token.
func expand(text string, keys []string, s scenario) []byte {
	var out bytes.Buffer
	n := s.rate * int(s.long/time.Millisecond) / 1000
	for i := range n {
		out.WriteString(os.Expand(text, func(name string) string {
			switch name {
			case "KEY":
				return keys[i%len(keys)]
			case "TOKEN":
				return fmt.Sprintf("%s%016x%016x%016x", s.words["PREFIX"], rand.Uint64(), rand.Uint64(), rand.Uint64())
			}
			return s.words[name]
		}))
	}
	return out.Bytes()
}

// k6Scenarios runs those of k6, which say themselves what they want.
func (b *bench) k6Scenarios(ctx context.Context, g *running, capacity int) error {
	if _, err := os.Stat(b.bin + "/k6"); err != nil {
		b.printf("k6's are left out: it builds for minutes; make loadtest K6=1 includes them\n\n")
		return nil
	}
	one, err := startSluice(setup{keys: 1, shared: true, policy: race})(ctx, b)
	if err != nil {
		return err
	}
	defer one.stop()
	other, err := startSluice(setup{keys: 1, shared: true, beside: one})(ctx, b)
	if err != nil {
		return err
	}
	defer other.stop()
	for _, s := range []struct {
		name string
		at   *running
		rate int
	}{
		{"steady", g, capacity / 10}, {"burst", g, capacity / 20}, {"flood", g, capacity / 40}, {"race", one, capacity / 20},
	} {
		k6 := exec.CommandContext(ctx, b.bin+"/k6", "run", "--quiet", "--no-usage-report",
			"-e", "ADDR="+s.at.addr, "-e", "OTHER="+other.addr, "-e", "KEY="+s.at.keys[0],
			"-e", fmt.Sprintf("RATE=%d", s.rate), "-e", fmt.Sprintf("QUOTA=%d", raceQuota), filepath.Join(b.files, "k6", s.name+".js"))
		out, err := k6.CombinedOutput()
		b.printf("#### k6 %s\n\n```\n%s\n```\n\n", s.name, strings.TrimSpace(string(out)))
		if err != nil {
			return fmt.Errorf("k6 %s: %w", s.name, err)
		}
	}
	return nil
}

// latencies is what vegeta reports, in nanoseconds.
type latencies struct {
	Latencies struct {
		P50 int64 `json:"50th"`
		P99 int64 `json:"99th"`
	} `json:"latencies"`
	Rate  float64        `json:"rate"`
	Codes map[string]int `json:"status_codes"`
}

// An onslaught is one attack of vegeta.
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

// asked returns the number of requests.
func (l *latencies) asked() int {
	n := 0
	for _, times := range l.Codes {
		n += times
	}
	return n
}
