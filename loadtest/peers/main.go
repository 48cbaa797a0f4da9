// Command peers measures what a request costs the gateway and other proxies, with the
// same upstream, client and response, and prints tables.
//
// CPU time depends on the machine and its other users. So contenders take turns in short
// rounds, in rotating order, and are compared with the bare proxy of the same round. The
// bare proxy takes part twice: the difference between the two is noise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
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
	many   int
	procs  int

	sockets  int    // of -what live and fanout
	profiles string // folder for the gateway's profiles; "": they are not read

	reloads int // of -what reloads

	pinned     bool
	rates      []int // of the open loop, per second
	shares     []int // of the open loop, percent of capacity
	openRounds int
	openRound  time.Duration
	long       time.Duration // of -what memory
}

func main() {
	var o options
	what, rates, shares, others := "", "", "", ""
	flag.StringVar(&o.bin, "bin", "", "`folder` of sluice, origin, bare and vegeta, built")
	flag.StringVar(&others, "others", "", "other builds of sluice, `paths` with commas between, that take part as well")
	flag.StringVar(&o.files, "files", "loadtest", "`folder` that holds vegeta and k6")
	flag.StringVar(&what, "what", "cpu,idle,openloop,scenarios", "`measurements`, of those in loadtest/README.md")
	flag.StringVar(&o.only, "only", "", "`text` that a contender's name must contain; the bare proxy always takes part")
	flag.IntVar(&o.conns, "conns", 64, "keep-alive connections of the client")
	flag.IntVar(&o.rounds, "rounds", 11, "rounds of each contender")
	flag.DurationVar(&o.round, "round", 700*time.Millisecond, "length of one round")
	flag.StringVar(&o.body, "body", "1k", "size of the answer: 1k, 16k or 64k")
	flag.IntVar(&o.idle, "idle", 5000, "idle connections whose memory is measured")
	flag.IntVar(&o.sockets, "sockets", 10_000, "GraphQL connections of -what live and fanout")
	flag.StringVar(&o.profiles, "profiles", "", "`folder` that -what live, fanout and streams write the gateway's profiles to")
	flag.StringVar(&rates, "rates", "8000", "requests per second of the open loop, the same for all")
	flag.StringVar(&shares, "shares", "30,50,70,90", "percent of each contender's own capacity that the open loop asks for")
	flag.IntVar(&o.openRounds, "open-rounds", 5, "rounds of each contender at each rate of the open loop")
	flag.DurationVar(&o.openRound, "open-round", 1500*time.Millisecond, "length of one round of the open loop")
	flag.IntVar(&o.reloads, "reloads", 1000, "reloads under load, at least 1")
	flag.DurationVar(&o.long, "long", 2*time.Minute, "how long memory is watched under load")
	flag.BoolVar(&o.pinned, "pin", true, "in open loops, contenders have cores of their own, as many as -procs says")
	flag.IntVar(&o.many, "apis", 1000, "API definitions that the gateway has loaded")
	flag.IntVar(&o.procs, "procs", 1, "GOMAXPROCS of the Go programs, and threads of the others")
	flag.Parse()
	o.what = strings.Split(what, ",")
	if others != "" {
		o.others = strings.Split(others, ",")
	}
	var err error
	if o.rates, err = numbers("-rates", rates); err == nil {
		o.shares, err = numbers("-shares", shares)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if o.reloads < 1 || o.rounds < 1 {
		fmt.Fprintln(os.Stderr, "-reloads and -rounds: want whole numbers above 0")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1) // the client: it has a core's worth, like everybody else
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// numbers reads a flag's list; an empty one is in order.
func numbers(flag, list string) (all []int, err error) {
	for one := range strings.SplitSeq(list, ",") {
		if one == "" {
			continue
		}
		n, err := strconv.Atoi(one)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("%s %s: want whole numbers above 0 with commas between", flag, list)
		}
		all = append(all, n)
	}
	return all, nil
}

// measurements are what -what names.
var measurements = map[string]func(context.Context, *bench) error{
	"cpu":        measureCPU,
	"idle":       measureIdle,
	"live":       measureLive,
	"fanout":     measureFanout,
	"federation": measureFederation,
	"loaded":     measureLoaded,
	"memory":     measureMemory,
	"openloop":   measureOpenLoop,
	"overload":   measureOverload,
	"scenarios":  measureScenarios,
	"scale":      measureScale,
	"graphql":    measureGraphQL,
	"reloads":    measureReloads,
	"streams":    measureStreams,
}

// bench is one run of this command.
type bench struct {
	options
	rig      *rig.Rig
	origin   string // address of the upstream
	upstream *rig.Process
	out      io.Writer
	cores    []int    // that contenders are pinned to; none: they are not
	notes    []string // to stand below the table under way
}

func run(ctx context.Context, o options, out io.Writer) error {
	for _, what := range o.what {
		if measurements[what] == nil {
			return fmt.Errorf("-what %s: want some of %s", what, strings.Join(slices.Sorted(maps.Keys(measurements)), ", "))
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
	var failed []error
	for _, what := range o.what {
		err := measurements[what](ctx, b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the next one may do better
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
			b.note("%v", failed[len(failed)-1])
		}
		b.endTable()
	}
	return errors.Join(failed...)
}

func (b *bench) startOrigin(ctx context.Context) error {
	addr, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	b.origin = addr
	b.upstream, err = b.rig.Start(ctx, rig.Command{
		Name: "origin", Path: b.bin + "/origin", Args: []string{"-addr", addr}, Env: []string{"GOMAXPROCS=1"}, Ready: addr,
	})
	return err
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }

// progress says on stderr what is done now: a measurement is silent for minutes.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// note keeps a line that endTable prints, since in a table there is no room.
func (b *bench) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// leaveOut reports that a contender does not take part, and why.
func (b *bench) leaveOut(name string, err error) {
	b.progress("%s is left out: %v", name, err)
	b.note("%s is left out: %v", name, err)
}

// endTable ends a table and prints the notes to it, each once.
func (b *bench) endTable() {
	b.printf("\n")
	for _, note := range slices.Compact(b.notes) {
		b.printf("%s\n\n", note)
	}
	b.notes = nil
}
