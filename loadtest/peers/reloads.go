package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/sluicegate/sluice/loadtest/load"
)

// Each response carries the state of its definition in two headers, which must agree.
const (
	stateOne = "\r\nX-State-One: "
	stateTwo = "\r\nX-State-Two: "
)

// reloading is a gateway under load whose definitions change one after the other:
// in turn the API under load, and another one.
type reloading struct {
	*running
	bench  *bench
	client *load.Client
	states [2]int // last written: of the API under load, and of the other

	// Of the API under load: the state that every response has reached, and the
	// newest that a response may have.
	inForce, written atomic.Uint64
}

// reloadResult is what callers of one gateway saw, in parts without reloads and with.
type reloadResult struct {
	quiet, loading load.Histogram
	ratios         []float64     // of the 99th percentiles, by part
	took           time.Duration // all reloads
	stats          load.Stats
	first          error
}

// measureReloads reloads definitions under full load, for both values of
// upstream.raw_io.
func measureReloads(ctx context.Context, b *bench) error {
	release, err := b.pin()
	if err != nil {
		return err
	}
	defer release()
	b.printf("### %d reloads at full load, half of them of the API under load, %d APIs; each part beside as long a time without\n\n", b.reloads, b.many)
	b.printf("| | reloads took s | per second | p50 ms, without | with | p99 ms, without | with | ratio of p99 | median of parts | of parts, least – most | longest ms, without | with | answered | failed |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	var failed []error
	for _, raw := range []bool{true, false} {
		name := fmt.Sprintf("upstream.raw_io %v", raw)
		got, err := b.reloadsOf(ctx, name, setup{keys: 1, apis: max(b.many, 2), settings: fmt.Sprintf("upstream:\n  raw_io: %v\n", raw)})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			b.printReloads(name, got)
			err = got.first
		}
		if err != nil { // the other may succeed
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// reloadsOf measures one gateway.
func (b *bench) reloadsOf(ctx context.Context, name string, s setup) (*reloadResult, error) {
	b.progress("%s: starting a gateway", name)
	r, err := startSluice(s)(ctx, b)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	g := &reloading{running: r, bench: b}
	if err := errors.Join(b.place(r), g.reload(ctx, 0), g.reload(ctx, 1)); err != nil {
		return nil, err
	}
	plan := b.plan(r, b.conns)
	plan.Timed, plan.Mark, plan.Check = true, g.inForce.Load, g.check
	g.client = load.New(plan)
	defer g.client.Close()
	g.client.Run(ctx, time.Second) // connections, caches, buffers
	g.client.Latency()
	got, parts := new(reloadResult), min(b.rounds, b.reloads)
	for part := range parts {
		b.progress("%s: part %d of %d", name, part+1, parts)
		if err := g.part(ctx, got, b.reloads*part/parts, b.reloads*(part+1)/parts); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, r.process.Log())
		}
	}
	got.stats, got.first = g.client.Stats(), g.client.FirstError()
	return got, nil
}

// part does some of the reloads under load, and then runs for as long without any.
func (g *reloading) part(ctx context.Context, got *reloadResult, from, to int) error {
	during, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		g.client.Run(during, time.Hour)
		close(ended)
	}()
	began := time.Now()
	var err error
	for i := from; i < to && err == nil; i++ {
		err = g.reload(ctx, i%2)
	}
	took := time.Since(began)
	end()
	<-ended
	if err != nil {
		return err
	}
	loading := g.client.Latency()
	g.client.Run(ctx, took)
	quiet := g.client.Latency()
	if quiet.Count() == 0 || loading.Count() == 0 {
		return fmt.Errorf("no responses: %w", g.client.FirstError())
	}
	got.took += took
	got.ratios = append(got.ratios, p99Ratio(loading, quiet))
	got.loading.Add(loading)
	got.quiet.Add(quiet)
	return ctx.Err()
}

func p99Ratio(loading, quiet *load.Histogram) float64 {
	return float64(loading.Quantile(0.99)) / float64(quiet.Quantile(0.99))
}

// reload changes one of the two APIs, makes the gateway read its files, and returns
// once the change is in force.
func (g *reloading) reload(ctx context.Context, which int) error {
	g.states[which]++
	state := g.states[which]
	if which == 0 {
		g.written.Store(uint64(state))
	}
	if err := g.save(apiID(which), state); err != nil {
		return err
	}
	if err := syscall.Kill(g.process.Pid(), syscall.SIGHUP); err != nil {
		return fmt.Errorf("sending SIGHUP: %w", err)
	}
	if err := g.awaitState(ctx, "http://"+g.addr+"/"+apiID(which)+"/"+g.bench.body, strconv.Itoa(state)); err != nil {
		return fmt.Errorf("reload of %s: %w", apiID(which), err)
	}
	if which == 0 {
		g.inForce.Store(uint64(state))
	}
	return nil
}

// save writes an API whose responses carry a state.
func (g *reloading) save(id string, state int) error {
	text := strconv.Itoa(state)
	api := g.bench.api(id, false)
	api["version_data"] = map[string]any{"not_versioned": true, "versions": map[string]any{"Default": map[string]any{
		"name": "Default", "global_headers": map[string]any{"X-State": text},
		"global_response_headers": map[string]any{"X-State-One": text, "X-State-Two": text},
	}}}
	api["use_keyless"] = id != apiID(0)
	return writeAPI(filepath.Join(g.dir, "apps"), id, api)
}

// check compares the state of a response with those that it may have: from the one
// in force when its request was sent to the newest one written.
func (g *reloading) check(mark uint64, head []byte) error {
	one, two := stateIn(head, stateOne), stateIn(head, stateTwo)
	switch newest := g.written.Load(); {
	case one != two:
		return fmt.Errorf("a response of state %q and of state %q", one, two)
	case one == "":
		return errors.New("a response without a state")
	default:
		state, err := strconv.ParseUint(one, 10, 64)
		if err != nil || state < mark || state > newest {
			return fmt.Errorf("a response of state %s, want %d to %d", one, mark, newest)
		}
	}
	return nil
}

func stateIn(head []byte, line string) string {
	_, rest, found := bytes.Cut(head, []byte(line))
	value, _, ended := bytes.Cut(rest, []byte("\r\n"))
	if !found || !ended {
		return ""
	}
	return string(value)
}

// pollStateEvery is how often a URL is requested until a reload is in force.
const pollStateEvery = time.Millisecond

// awaitState returns once an API is served in a state.
func (g *reloading) awaitState(ctx context.Context, url, state string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", g.keys[0])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d: %w", resp.StatusCode, err)
		}
		if resp.Header.Get("X-State-One") == state {
			return nil
		}
		if err := sleep.For(ctx, pollStateEvery); err != nil {
			return fmt.Errorf("state %s is not in force: %w", state, err)
		}
	}
}

func (b *bench) printReloads(name string, got *reloadResult) {
	quiet, loading := &got.quiet, &got.loading
	b.printf("| %s | %.1f | %.0f | %.2f | %.2f | %.2f | %.2f | **%.2f** | %.2f | %.2f – %.2f | %.1f | %.1f | %d | %d |\n",
		name, got.took.Seconds(), float64(b.reloads)/got.took.Seconds(),
		millis(quiet.Quantile(0.5)), millis(loading.Quantile(0.5)), millis(quiet.Quantile(0.99)), millis(loading.Quantile(0.99)), p99Ratio(loading, quiet),
		median(got.ratios), slices.Min(got.ratios), slices.Max(got.ratios),
		millis(quiet.Max()), millis(loading.Max()), got.stats.Good, got.stats.Bad)
}
