// Command peers measures what a request costs the gateway beside what it costs
// other proxies, on the same origin, client and answer, and prints tables.
//
// CPU time depends on the machine and on its neighbours. So contenders take
// turns in short rounds, in an order that rotates, and are compared with the
// bare proxy of the same round. The bare proxy takes part twice: what its second
// self differs by is noise.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/loadtest/rig"
)

// options are the command line.
type options struct {
	bin    string   // folder of the programs
	files  string   // folder of the scenarios
	others []string // programs
	what   []string
	only   string
	conns  int
	rounds int
	round  time.Duration
	body   string
	idle   int
	rates  []int
	many   int
	procs  int
}

func main() {
	var o options
	what, rates, others := "", "", ""
	flag.StringVar(&o.bin, "bin", "", "`folder` of sluice, origin, bare and vegeta, built")
	flag.StringVar(&others, "others", "", "other builds of sluice, `paths` with commas between, that take part as well")
	flag.StringVar(&o.files, "files", "loadtest", "`folder` that holds vegeta and k6")
	flag.StringVar(&what, "what", "cpu,idle,openloop,scenarios", "`measurements`: cpu, idle, openloop, scenarios, scale, graphql")
	flag.StringVar(&o.only, "only", "", "`text` that a contender's name must contain; the bare proxy always takes part")
	flag.IntVar(&o.conns, "conns", 64, "keep-alive connections of the client")
	flag.IntVar(&o.rounds, "rounds", 11, "rounds of each contender")
	flag.DurationVar(&o.round, "round", 700*time.Millisecond, "length of one round")
	flag.StringVar(&o.body, "body", "1k", "size of the answer: 1k, 16k or 64k")
	flag.IntVar(&o.idle, "idle", 5000, "idle connections whose memory is measured")
	flag.StringVar(&rates, "rates", "2000,4000,8000", "requests per second of the open loop")
	flag.IntVar(&o.many, "apis", 1000, "API definitions that the gateway has loaded")
	flag.IntVar(&o.procs, "procs", 1, "GOMAXPROCS of the Go programs, and threads of the others")
	flag.Parse()
	o.what = strings.Split(what, ",")
	if others != "" {
		o.others = strings.Split(others, ",")
	}
	for rate := range strings.SplitSeq(rates, ",") {
		n := 0
		if _, err := fmt.Sscanf(rate, "%d", &n); err != nil || n <= 0 {
			fmt.Fprintf(os.Stderr, "-rates %s: want whole numbers with commas between\n", rates)
			os.Exit(2)
		}
		o.rates = append(o.rates, n)
	}
	runtime.GOMAXPROCS(1) // the client: it has a core's worth, like everybody else
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// measurements are what -what names.
var measurements = map[string]func(context.Context, *bench) error{
	"cpu":       measureCPU,
	"idle":      measureIdle,
	"openloop":  measureOpenLoop,
	"scenarios": measureScenarios,
	"scale":     measureScale,
	"graphql":   measureGraphQL,
}

// bench is one run of this command.
type bench struct {
	options
	rig    *rig.Rig
	origin string // address
	out    io.Writer
}

func run(ctx context.Context, o options, out io.Writer) error {
	for _, what := range o.what {
		if measurements[what] == nil {
			return fmt.Errorf("-what %s: want some of cpu, idle, openloop, scenarios, scale, graphql", what)
		}
	}
	r, err := rig.New()
	if err != nil {
		return err
	}
	defer r.Close()
	b := &bench{options: o, rig: r, out: out}
	if err := b.startOrigin(ctx); err != nil {
		return err
	}
	b.printMachine()
	for _, what := range o.what {
		if err := measurements[what](ctx, b); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return ctx.Err()
}

func (b *bench) startOrigin(ctx context.Context) error {
	addr, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	b.origin = addr
	_, err = b.rig.Start(ctx, rig.Command{
		Name: "origin", Path: b.bin + "/origin", Args: []string{"-addr", addr}, Env: []string{"GOMAXPROCS=1"}, Ready: addr,
	})
	return err
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }
