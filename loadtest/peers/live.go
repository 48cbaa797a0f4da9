package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/sluicegate/sluice/loadtest/load"
	"github.com/sluicegate/sluice/loadtest/rig"
)

const (
	liveSchema = "type Query { a: Int } type Subscription { event: Event } type Event { n: Int text: String }"
	subscribe  = `{"id":"1","type":"subscribe","payload":{"query":"subscription { event { n text } }"}}`
)

// manyUpstreams lets each subscription have a connection to the upstream.
const manyUpstreams = "upstream:\n  max_conns_per_host: 100000\n"

// streaming is the definition's part by which the API serves GraphQL connections.
func streaming(share bool) map[string]any {
	proxy := map[string]any{"subscription_type": "graphql-transport-ws"}
	if share {
		proxy["subscriptions"] = map[string]any{"share": true}
	}
	return map[string]any{"enabled": true, "execution_mode": "proxyOnly", "schema": liveSchema, "proxy": proxy}
}

// measureLive reads the memory of a gateway with many GraphQL connections, idle and with a
// subscription each.
func measureLive(ctx context.Context, b *bench) error {
	if err := b.enoughFiles(b.sockets); err != nil {
		return err
	}
	upstream, err := b.startEvents(ctx)
	if err != nil {
		return err
	}
	b = b.withOrigin(upstream.addr)
	r, err := startSluice(setup{keys: someKeys, apis: 1, live: true, profiled: true, patient: true, settings: manyUpstreams})(ctx, b)
	if err != nil {
		return err
	}
	defer r.stop()
	b.printf("### Memory of a gateway with %d authenticated GraphQL connections, of 1,000 keys\n\n", b.sockets)
	b.printf("| | PSS MiB | … after a collection | heap in use MiB | stacks MiB | goroutines | KiB per connection: PSS | … after a collection | heap | stacks |\n|---|---|---|---|---|---|---|---|---|---|\n")
	warm, err := b.openSockets(ctx, r, 500)
	if err != nil {
		return err
	}
	err = warm.Each(subscribe) // what it needs at work does not count as the connections'
	if err == nil {
		err = awaitCount(ctx, upstream.addr, 500)
	}
	warm.Close()
	if err == nil {
		err = awaitCount(ctx, upstream.addr, 0)
	}
	if err != nil {
		return err
	}
	rest, err := b.memoryRow(ctx, r, "at rest", nil)
	if err != nil {
		return err
	}
	all, err := b.openSockets(ctx, r, b.sockets)
	if err != nil {
		return err
	}
	defer all.Close()
	if _, err = b.memoryRow(ctx, r, "idle", rest); err != nil {
		return err
	}
	if err = all.Each(subscribe); err == nil {
		err = awaitCount(ctx, upstream.addr, b.sockets)
	}
	if err == nil {
		_, err = b.memoryRow(ctx, r, "with a subscription each", rest)
	}
	if _, ended := all.Heard(); ended != nil {
		err = ended
	}
	return err
}

// footprint is the memory of a gateway.
type footprint struct {
	pss, lean, heap, stacks float64 // bytes; lean is the PSS after a collection
}

// memoryRow reads the memory of a gateway and prints a row, per connection compared with
// rest unless that is nil.
func (b *bench) memoryRow(ctx context.Context, r *running, name string, rest *footprint) (*footprint, error) {
	b.progress("memory %s", name)
	pss, err := pssOf(ctx, r)
	if err != nil {
		return nil, err
	}
	b.saveProfiles(r, name)
	var m runtime.MemStats
	text, err := fetch(ctx, "http://"+r.profiles+"/memory")
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the memory of %s: %w", r.name, err)
	}
	lean, err := r.process.PSS()
	if err != nil {
		return nil, err
	}
	goroutines, err := fetch(ctx, "http://"+r.profiles+"/debug/pprof/goroutine?debug=1")
	if err != nil {
		return nil, err
	}
	head, _, _ := strings.Cut(string(goroutines), "\n")
	f := &footprint{pss: float64(pss), lean: float64(lean), heap: float64(m.HeapInuse), stacks: float64(m.StackInuse)}
	b.printf("| %s | %.1f | %.1f | %.1f | %.1f | %s", name, f.pss/mib, f.lean/mib, f.heap/mib, f.stacks/mib, strings.TrimPrefix(head, "goroutine profile: total "))
	if rest == nil {
		b.printf(" | | | | |\n")
		return f, nil
	}
	each := func(now, then float64) float64 { return (now - then) / 1024 / float64(b.sockets) }
	b.printf(" | **%.2f** | %.2f | %.2f | %.2f |\n", each(f.pss, rest.pss), each(f.lean, rest.lean), each(f.heap, rest.heap), each(f.stacks, rest.stacks))
	return f, nil
}

// saveProfiles writes a gateway's profiles of memory to the folder of -profiles.
func (b *bench) saveProfiles(r *running, name string) {
	for _, kind := range []string{"heap", "goroutine", "allocs"} {
		b.saveProfile(r, strings.ReplaceAll(name, " ", "-")+"."+kind, kind)
	}
}

// saveProfile writes one of a gateway's profiles to the folder of -profiles, if there is one.
func (b *bench) saveProfile(r *running, file, kind string) {
	if b.profiles == "" {
		return
	}
	text, err := fetch(context.Background(), "http://"+r.profiles+"/debug/pprof/"+kind)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.profiles, file), text, 0o644)
	}
	if err != nil {
		b.note("profile %s: %v", file, err)
	}
}

// profileAll records CPU and allocations of the gateways that have profiles, while they are
// measured. The function that it returns waits for that.
func (b *bench) profileAll(what string, all []*running) (wait func()) {
	var profiling sync.WaitGroup
	for i, r := range all {
		if r.profiles != "" {
			profiling.Go(func() {
				b.saveProfile(r, fmt.Sprintf("%s-%d.cpu", what, i), "profile?seconds=10")
				b.saveProfile(r, fmt.Sprintf("%s-%d.allocs", what, i), "allocs")
			})
		}
	}
	return profiling.Wait
}

// openSockets opens connections to the API that is measured, with its keys in turn.
func (b *bench) openSockets(ctx context.Context, r *running, n int) (*load.Sockets, error) {
	return load.OpenSockets(ctx, r.addr, "/bench/", n, func(i int) http.Header {
		if len(r.keys) == 0 {
			return nil
		}
		return http.Header{"Authorization": {r.keys[i%len(r.keys)]}}
	})
}

// startEvents starts the upstream of subscriptions.
func (b *bench) startEvents(ctx context.Context) (*running, error) {
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	p, err := b.rig.Start(ctx, rig.Command{
		Name: "events", Path: filepath.Join(b.bin, "events"), Args: []string{"-addr", addr}, Env: []string{"GOMAXPROCS=1"}, Ready: addr,
	})
	return &running{name: "events", process: p, addr: addr}, err
}

// withOrigin returns a bench whose gateways have another upstream.
func (b *bench) withOrigin(addr string) *bench {
	twin := *b
	twin.origin = addr
	return &twin
}

// awaitCount returns once an upstream has n subscriptions.
func awaitCount(ctx context.Context, upstream string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		text, err := fetch(ctx, "http://"+upstream+"/count")
		if err == nil && string(text) == strconv.Itoa(n) {
			return nil
		}
		if sleep.For(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("the upstream has %s subscriptions after a minute, want %d", text, n)
		}
	}
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // read, or given up
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return text, err
}
