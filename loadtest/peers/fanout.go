package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/sluicegate/sluice/loadtest/load"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// A fan is a server that passes on one message to many subscribers.
type fan struct {
	name  string
	start func(ctx context.Context, b *bench) (*running, *running, error) // and what messages are published with, which may be the same
}

// fanned is what a fan did.
type fanned struct {
	cpu       []float64 // ms for each message published
	took      []float64 // ms until the last subscriber had it
	perSecond float64   // messages to subscribers per second of CPU time
}

// measureFanout publishes messages to subscribers of one subscription that is shared, and
// compares the CPU time with that of a server on Node.js that executes it for each.
func measureFanout(ctx context.Context, b *bench) error {
	if err := b.enoughFiles(b.sockets); err != nil {
		return err
	}
	b.printf("### One message to %d subscribers, median of %d\n\n| | CPU ms per message | of messages, least – most | until the last has it ms | messages per CPU second | ratio |\n|---|---|---|---|---|---|\n", b.sockets, b.rounds)
	var first float64
	for _, f := range []fan{
		{"graphql-ws server, Node.js", startNodeEvents},
		{"Sluice, shared subscription", startSharing},
		{"graphql-ws server, again", startNodeEvents},
		{"Sluice, again", startSharing},
	} {
		out, err := b.fanOut(ctx, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.leaveOut(f.name, err)
			continue
		}
		if first == 0 {
			first = out.perSecond
		}
		b.printf("| %s | **%.1f** | %.1f – %.1f | %.0f | %.0f | **%.2f** |\n", f.name,
			median(out.cpu), slices.Min(out.cpu), slices.Max(out.cpu), median(out.took), out.perSecond, out.perSecond/first)
	}
	return nil
}

// fanOut starts a fan, opens its subscriptions and publishes messages, one after the other.
func (b *bench) fanOut(ctx context.Context, f fan) (*fanned, error) {
	b.progress("fan-out of %s", f.name)
	r, source, err := f.start(ctx, b)
	if source != nil && source != r {
		defer source.stop()
	}
	if err != nil {
		return nil, err
	}
	defer r.stop()
	all, err := b.openSockets(ctx, r, b.sockets)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := all.Each(subscribe); err != nil {
		return nil, err
	}
	// The first message shows that all are subscribed: a shared subscription is one.
	if err := b.allHear(ctx, all, source.addr); err != nil {
		return nil, err
	}
	if r.profiles != "" {
		profiled := make(chan struct{})
		go func() { defer close(profiled); b.saveProfile(r, "fan-out.cpu", "profile?seconds=5") }()
		defer func() { <-profiled }()
	}
	out := &fanned{}
	for range b.rounds {
		cpu, took, err := b.publish(ctx, r, all, source.addr)
		if err != nil {
			return nil, err
		}
		out.cpu, out.took = append(out.cpu, cpu), append(out.took, took)
	}
	out.perSecond = float64(b.sockets) / median(out.cpu) * 1000
	return out, nil
}

// allHear publishes messages until one has reached every subscriber.
func (b *bench) allHear(ctx context.Context, all *load.Sockets, source string) error {
	for range 60 {
		before, err := all.Heard()
		if err != nil {
			return err
		}
		if err := post(ctx, "http://"+source+"/publish"); err != nil {
			return err
		}
		if err := sleep.For(ctx, 2*time.Second); err != nil {
			return err
		}
		if after, err := all.Heard(); err != nil || after-before == b.sockets {
			return err
		}
	}
	return fmt.Errorf("no message has reached all %d subscribers within two minutes", b.sockets)
}

// publish publishes a message and returns the server's CPU time and how long it took until
// every subscriber had it, both in milliseconds.
func (b *bench) publish(ctx context.Context, r *running, all *load.Sockets, source string) (cpu, took float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	from, err := all.Heard()
	if err != nil {
		return 0, 0, err
	}
	before, err := r.process.CPU()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := post(ctx, "http://"+source+"/publish"); err != nil {
		return 0, 0, err
	}
	for to := from; to-from < b.sockets; to, err = all.Heard() {
		if err != nil {
			return 0, 0, err
		}
		if sleep.For(ctx, time.Millisecond) != nil {
			return 0, 0, fmt.Errorf("%d of %d subscribers have a message after a minute", to-from, b.sockets)
		}
	}
	took = millis(time.Since(began))
	if err := sleep.For(ctx, 100*time.Millisecond); err != nil { // what it does after the last one counts as well
		return 0, 0, err
	}
	after, err := r.process.CPU()
	return millis(after - before), took, err
}

// startSharing starts a gateway whose subscribers share one subscription, and its upstream.
func startSharing(ctx context.Context, b *bench) (r, source *running, err error) {
	if source, err = b.startEvents(ctx); err != nil {
		return nil, source, err
	}
	r, err = startSluice(setup{keys: someKeys, apis: 1, live: true, share: true, profiled: b.profiles != "", patient: true, settings: manyUpstreams})(ctx, b.withOrigin(source.addr))
	return r, source, err
}

// startNodeEvents starts the graphql-ws server, which publishes by itself.
func startNodeEvents(ctx context.Context, b *bench) (r, source *running, err error) {
	node, err := installed("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(b.nodeFiles(), "node_modules", "graphql-ws"))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w (make loadtest NPM=1 installs it)", err)
	}
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, nil, err
	}
	p, err := b.rig.Start(ctx, rig.Command{
		Name: "events.mjs", Path: node, Args: []string{"events.mjs", strconv.Itoa(rig.Port(addr)), "200"}, Dir: b.nodeFiles(), Env: []string{"NODE_ENV=production"}, Ready: addr,
	})
	r = &running{process: p, addr: addr}
	return r, r, err
}

// post sends a request without a body.
func post(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
