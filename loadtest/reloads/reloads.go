// Package reloads measures what reloads do to calls: a gateway is asked as fast as
// it answers, and meanwhile loads changed definitions one after the other.
package reloads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/loadtest/gate"
	"github.com/sluicegate/sluice/loadtest/load"
	"github.com/sluicegate/sluice/loadtest/ways"
)

// A Bench says what is measured, and where results go.
type Bench struct {
	Site     gate.Site
	Conns    int    // kept connections of the client, each with a request at a time
	APIs     int    // definitions that the gateway has
	Reloads  int    // in all
	Parts    int    // that they are done in, each beside as long a time without any
	Body     string // size of the answer: 1k, 16k or 64k
	Place    func(*gate.Gate) error
	Out      io.Writer
	Progress func(format string, args ...any)
}

// The API that is asked, and one that nobody asks but to see what state it is in.
// Both tell their state in two lines of every answer, which must agree.
const (
	busy  = "busy"
	other = "other"

	lineOne = "\r\nX-State-One: "
	lineTwo = "\r\nX-State-Two: "
)

// world is a gateway under load, and the state of what it serves.
type world struct {
	*gate.Gate
	key    string
	client *load.Client
	states [2]int // of busy and other, as last written

	inForce, written atomic.Uint64 // of busy: the state that every answer has reached, and the newest that one may have
}

// result is what callers saw of one gateway, by parts without reloads and with.
type result struct {
	quiet, loading load.Histogram
	ratios         []float64     // of the 99th percentiles, by part
	took           time.Duration // of all reloads
	stats          load.Stats
	first          error
}

// Measure prints a table: reloads under load, for both ways to upstreams.
func Measure(ctx context.Context, b Bench) error {
	fmt.Fprintf(b.Out, "### %d reloads at full load, half of them of the API under test, %d APIs; each part beside as long a time without\n\n", b.Reloads, b.APIs)
	fmt.Fprint(b.Out, "| | reloads took s | per second | p50 ms, without | with | p99 ms, without | with | ratio of p99 | median of parts | of parts, least – most | bound | | longest ms, without | with | answered | failed |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	var failed []error
	for _, raw := range []bool{true, false} {
		name := fmt.Sprintf("upstream.raw_io %v", raw)
		got, err := b.one(ctx, name, raw)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the other may do better
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		b.print(name, got)
		if got.first != nil {
			failed = append(failed, fmt.Errorf("%s: first error: %w", name, got.first))
		}
	}
	fmt.Fprintln(b.Out)
	return errors.Join(failed...)
}

// one measures one gateway.
func (b Bench) one(ctx context.Context, name string, raw bool) (*result, error) {
	b.Progress("%s: starting a gateway", name)
	w, err := b.start(ctx, raw)
	if err != nil {
		return nil, err
	}
	defer w.Process.Stop()
	defer w.client.Close()
	w.client.Run(ctx, time.Second) // connections, caches, buffers
	w.client.Latency()
	got := new(result)
	for part := range b.Parts {
		b.Progress("%s: part %d of %d", name, part+1, b.Parts)
		if err := b.part(ctx, w, got, b.Reloads*part/b.Parts, b.Reloads*(part+1)/b.Parts); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, w.Process.Log())
		}
	}
	got.stats, got.first = w.client.Stats(), w.client.FirstError()
	return got, nil
}

// part does some of the reloads under load, and then asks for as long without any.
func (b Bench) part(ctx context.Context, w *world, got *result, from, to int) error {
	during, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		w.client.Run(during, time.Hour)
		close(ended)
	}()
	began := time.Now()
	err := w.reloads(ctx, b.Body, from, to)
	took := time.Since(began)
	end()
	<-ended
	if err != nil {
		return err
	}
	loading := w.client.Latency()
	w.client.Run(ctx, took)
	quiet := w.client.Latency()
	if quiet.Count() == 0 || loading.Count() == 0 {
		return fmt.Errorf("no answers: %w", w.client.FirstError())
	}
	got.took += took
	got.ratios = append(got.ratios, ratio(loading, quiet))
	got.loading.Add(loading)
	got.quiet.Add(quiet)
	return ctx.Err()
}

func ratio(loading, quiet *load.Histogram) float64 {
	return float64(loading.Quantile(0.99)) / float64(quiet.Quantile(0.99))
}

// start runs a gateway with one way to upstreams.
func (b Bench) start(ctx context.Context, raw bool) (*world, error) {
	g, err := gate.New(b.Site)
	if err != nil {
		return nil, err
	}
	g.Upstream(fmt.Sprintf("raw_io: %v", raw))
	w := &world{Gate: g}
	if err := errors.Join(w.save(busy, 0), w.save(other, 0)); err != nil {
		return nil, err
	}
	for i := range b.APIs - 2 {
		if err := g.Save(g.Define(fmt.Sprintf("api-%06d", i), gate.Object{"use_keyless": true})); err != nil {
			return nil, err
		}
	}
	g.Policy("all", busy)
	if w.key, err = g.Key(ctx, &definition.Session{ApplyPolicies: []string{"all"}}); err != nil {
		return nil, err
	}
	if err := g.Start(ctx, busy); err != nil {
		return nil, err
	}
	w.client = load.New(b.plan(w))
	return w, b.Place(g)
}

func (b Bench) plan(w *world) load.Plan {
	whole := []byte("GET /" + busy + "/" + b.Body + " HTTP/1.1\r\nHost: " + w.Addr + "\r\nUser-Agent: loadtest/1.0\r\nAccept: */*\r\nAuthorization: " + w.key + "\r\n\r\n")
	body, _ := load.Body([]byte(b.Body))
	return load.Plan{
		Addr: w.Addr, Conns: b.Conns, Timed: true, Want: load.Want{Status: 200, Body: body},
		Request: func(dst []byte, _ uint64) []byte { return append(dst, whole...) },
		Mark:    w.inForce.Load, Check: w.check,
	}
}

// check holds an answer against the states that it may be of: what was in force
// when its request was sent, and what came later.
func (w *world) check(mark uint64, head []byte) error {
	one, two := stateIn(head, lineOne), stateIn(head, lineTwo)
	switch newest := w.written.Load(); {
	case one != two:
		return fmt.Errorf("an answer of state %q and of state %q", one, two)
	case one == "":
		return errors.New("an answer that tells no state")
	default:
		state, err := strconv.ParseUint(one, 10, 64)
		if err != nil || state < mark || state > newest {
			return fmt.Errorf("an answer of state %s, want %d to %d", one, mark, newest)
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

// save writes an API in a state.
func (w *world) save(id string, state int) error {
	text := strconv.Itoa(state)
	return w.Save(w.Define(id, gate.Object{
		"use_keyless": id == other,
		"version_data": gate.Object{"not_versioned": true, "versions": gate.Object{"Default": gate.Object{
			"name": "Default", "global_headers": gate.Object{"X-State": text},
			"global_response_headers": gate.Object{"X-State-One": text, "X-State-Two": text},
		}}},
	}))
}

// reloads changes an API and has the gateway load that, again and again, each as
// soon as the one before is in force.
func (w *world) reloads(ctx context.Context, body string, from, to int) error {
	for i := from; i < to; i++ {
		id := []string{busy, other}[i%2]
		w.states[i%2]++
		state := w.states[i%2]
		if id == busy {
			w.written.Store(uint64(state))
		}
		if err := errors.Join(w.save(id, state), w.Reload()); err != nil {
			return err
		}
		if err := w.awaits(ctx, "http://"+w.Addr+"/"+id+"/"+body, strconv.Itoa(state)); err != nil {
			return fmt.Errorf("reload %d, of the API %s: %w", i+1, id, err)
		}
		if id == busy {
			w.inForce.Store(uint64(state))
		}
	}
	return nil
}

// lookEvery is how often it is seen whether a reload is in force.
const lookEvery = time.Millisecond

// awaits returns once an API is served in a state.
func (w *world) awaits(ctx context.Context, url, state string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", w.key)
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
		select {
		case <-ctx.Done():
			return fmt.Errorf("state %s is not in force: %w", state, ctx.Err())
		case <-time.After(lookEvery):
		}
	}
}

// bound is what reloads may make of the 99th percentile, without them being 1.
const bound = 2.0

func (b Bench) print(name string, got *result) {
	verdict := "met"
	if ratio(&got.loading, &got.quiet) > bound {
		verdict = "**above**"
	}
	ms := func(h *load.Histogram, q float64) float64 { return float64(h.Quantile(q)) / float64(time.Millisecond) }
	longest := func(h *load.Histogram) float64 { return float64(h.Max()) / float64(time.Millisecond) }
	fmt.Fprintf(b.Out, "| %s | %.1f | %.0f | %.2f | %.2f | %.2f | %.2f | **%.2f** | %.2f | %.2f – %.2f | %.0f | %s | %.1f | %.1f | %d | %d |\n",
		name, got.took.Seconds(), float64(b.Reloads)/got.took.Seconds(),
		ms(&got.quiet, 0.5), ms(&got.loading, 0.5), ms(&got.quiet, 0.99), ms(&got.loading, 0.99), ratio(&got.loading, &got.quiet),
		ways.Median(got.ratios), slices.Min(got.ratios), slices.Max(got.ratios), bound, verdict,
		longest(&got.quiet), longest(&got.loading), got.stats.Good, got.stats.Bad)
}
