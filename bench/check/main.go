// Command check compares what requests cost now with what they cost at the last
// release, on this machine, in interleaved rounds. It prints a table and fails
// when the hot path is slower beyond noise, or allocates.
//
// The last release is the newest tag v* that is reachable from HEAD; without
// one, the commit named in bench/release. What is measured as "now" is the
// working tree as it is, changes that are not committed included.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// hotPath are the benchmarks that are compared: every case of a whole request,
// and a thousand keys in turn.
const hotPath = `^BenchmarkRequest$|^BenchmarkScale$/^keys=1000$`

// errWorse is the verdict that a request has become dearer.
var errWorse = errors.New("the hot path has become dearer than it was")

// options are the flags.
type options struct {
	base   string // revision to compare with; "": the last release
	bench  string // which benchmarks, as go test -bench
	keep   string // file that keeps the table; "": none does
	rounds int    // each is some turns of four runs: base, now, now, base, or the reverse
	times  int    // requests in each reading of a case
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errWorse):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "bench-check:", err)
		os.Exit(2)
	}
}

// parse reads the flags.
func parse(args []string, errs io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&o.base, "base", "", "revision to compare with (default: the newest tag v*, else the commit in bench/release)")
	flags.StringVar(&o.bench, "bench", hotPath, "which benchmarks, as go test -bench")
	flags.StringVar(&o.keep, "keep", "", "write the table into this file, between its bench-check marks")
	flags.IntVar(&o.rounds, "rounds", 12, "how many rounds, each of three turns of four runs")
	flags.IntVar(&o.times, "times", 150, "requests in each of the four readings of a case in a run")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is no flag: all settings are flags, see -h", flags.Arg(0))
	case o.rounds < fewestRounds:
		return o, fmt.Errorf("-rounds is %d: with fewer than %d no difference can be told from noise", o.rounds, fewestRounds)
	case o.times < 1:
		return o, fmt.Errorf("-times is %d: must be at least 1", o.times)
	}
	return o, nil
}

// run does the whole check. The table goes to out, progress to errs.
func run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	root, err := git{}.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("finding the repository: %w", err)
	}
	repo := git{dir: root}
	base, err := lastRelease(ctx, repo, o.base)
	if err != nil {
		return err
	}
	fmt.Fprintf(errs, "comparing the working tree with %s\n", base)
	programs, remove, err := build(ctx, repo, base, errs)
	defer remove()
	if err != nil {
		return err
	}
	rounds, err := measure(ctx, programs, o, errs)
	if err != nil {
		return err
	}
	return report(ctx, repo, o, verdicts{base: base, of: compare(rounds)}, out)
}

// report prints the table, keeps it where that is wanted, and returns errWorse
// when a case failed.
func report(ctx context.Context, repo git, o options, v verdicts, out io.Writer) error {
	now, err := repo.run(ctx, "describe", "--always", "--dirty", "--tags")
	if err != nil {
		return fmt.Errorf("naming the working tree: %w", err)
	}
	table := v.table(now, o)
	if _, err := io.WriteString(out, table); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	if o.keep != "" {
		if err := keep(o.keep, table); err != nil {
			return err
		}
	}
	return v.worse()
}
