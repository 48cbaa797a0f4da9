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

// turns is how often both programs run twice within a round, and readings how
// often each case is read in a run. The least that a case took in them counts: a
// reading takes milliseconds, and of a dozen some are not disturbed by whoever
// else uses the machine.
const turns, readings = 3, 4

// A round is what cases took at least in the first and in the second runs of its
// turns, close to each other in time.
type round struct{ base, now [2]samples }

// measure runs the programs in rounds.
func measure(ctx context.Context, p programs, o options, progress io.Writer) ([]round, error) {
	rounds := make([]round, o.rounds)
	began := time.Now()
	for i := range rounds {
		for turn := range turns {
			if err := rounds[i].turn(ctx, p, o, (i*turns+turn)%2 == 1); err != nil {
				return nil, err
			}
		}
		left := time.Since(began) / time.Duration(i+1) * time.Duration(o.rounds-i-1)
		fmt.Fprintf(progress, "round %d of %d, about %s left\n", i+1, o.rounds, left.Round(time.Second))
	}
	return rounds, nil
}

// turn runs base, now, now, base, or the other way round, so that a machine that
// becomes slower meanwhile is slower for both.
func (r *round) turn(ctx context.Context, p programs, o options, reverse bool) error {
	order := []struct {
		program
		into *samples
	}{{p.base, &r.base[0]}, {p.now, &r.now[0]}, {p.now, &r.now[1]}, {p.base, &r.base[1]}}
	if reverse {
		order[0], order[1], order[2], order[3] = order[1], order[0], order[3], order[2]
	}
	for _, next := range order {
		s, err := next.sample(ctx, o)
		if err != nil {
			return err
		}
		for _, one := range s {
			*next.into = next.into.add(one)
		}
	}
	return nil
}

// sample runs the benchmarks once.
func (p program) sample(ctx context.Context, o options) (samples, error) {
	limited, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, p.path,
		"-test.run", "^$", "-test.bench", o.bench, "-test.benchmem",
		"-test.benchtime", strconv.Itoa(o.times)+"x",
		"-test.count", strconv.Itoa(readings))
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
