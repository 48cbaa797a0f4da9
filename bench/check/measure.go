package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// runLimit is how long one run may take: it takes seconds.
const runLimit = 5 * time.Minute

// readings is how often each case is read within a run. A reading takes milliseconds,
// and of several one is seldom disturbed by a neighbour.
const readings = 6

// A round is two runs of each program, close to each other in time.
type round struct{ base, now [2]samples }

// measure runs the programs in rounds: base, now, now, base, and the next time
// the other way round, so that a machine that becomes slower meanwhile is slower
// for both.
func measure(ctx context.Context, p programs, o options, progress io.Writer) ([]round, error) {
	rounds := make([]round, o.rounds)
	began := time.Now()
	for i := range rounds {
		r := &rounds[i]
		turns := []struct {
			program
			into *samples
		}{{p.base, &r.base[0]}, {p.now, &r.now[0]}, {p.now, &r.now[1]}, {p.base, &r.base[1]}}
		if i%2 == 1 {
			turns[0], turns[1], turns[2], turns[3] = turns[1], turns[0], turns[3], turns[2]
		}
		for _, turn := range turns {
			var err error
			if *turn.into, err = turn.sample(ctx, o); err != nil {
				return nil, err
			}
		}
		took := time.Since(began)
		left := took / time.Duration(i+1) * time.Duration(o.rounds-i-1)
		fmt.Fprintf(progress, "round %d of %d, about %s left\n", i+1, o.rounds, left.Round(time.Second))
	}
	return rounds, nil
}

// sample runs the benchmarks once.
func (p program) sample(ctx context.Context, o options) (samples, error) {
	limited, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, p.path,
		"-test.run", "^$", "-test.bench", o.bench, "-test.benchmem", "-test.benchtime", strconv.Itoa(o.times)+"x", "-test.count", strconv.Itoa(readings))
	cmd.Dir = p.dir
	// One processor: what a request costs is then not mixed with which of two
	// threads happened to be awake.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	// An interrupt in the terminal reaches the whole group; this process ends its
	// run, and cleans up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("measuring: %w", ctx.Err())
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("running %s: it did not end within %s", p.path, runLimit)
	case err != nil:
		return nil, fmt.Errorf("running %s: %w\n%s%s", p.path, err, out.Bytes(), said.Bytes())
	}
	s, err := readSamples(out.String())
	if err == nil && len(s) == 0 {
		err = fmt.Errorf("no benchmark matches %s", o.bench)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what %s printed: %w", p.path, err)
	}
	return s, nil
}
