package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A sample is what a request of one case cost in one run.
type sample struct {
	name   string
	budget bool    // a whole request, which may not allocate
	wall   float64 // µs
	cpu    float64 // µs of processor time; 0: the benchmark does not report it
	allocs float64
}

// requestPrefix begins the names of whole requests, which bench/budget_test.go
// holds to no allocation.
const requestPrefix = "BenchmarkRequest/"

// samples are those of one run, in its order.
type samples []sample

// of returns the sample of a case.
func (s samples) of(name string) (sample, bool) {
	for _, one := range s {
		if one.name == name {
			return one, true
		}
	}
	return sample{}, false
}

// add puts a reading beside those of the same case: the least disturbed counts,
// since nothing makes a run faster than it is.
func (s samples) add(one sample) samples {
	for i := range s {
		if known := &s[i]; known.name == one.name {
			known.wall, known.cpu = min(known.wall, one.wall), min(known.cpu, one.cpu)
			known.allocs = min(known.allocs, one.allocs)
			return s
		}
	}
	return append(s, one)
}

// readSamples reads what a benchmark prints, each case once or several times.
func readSamples(text string) (samples, error) {
	var all samples
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		s := sample{name: caseName(fields[0]), budget: strings.HasPrefix(fields[0], requestPrefix)}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("%q is no number in %q", fields[i], strings.TrimSpace(line))
			}
			switch fields[i+1] {
			case "ns/op":
				s.wall = v / 1000
			case "cpu-µs/op":
				s.cpu = v
			case "allocs/op":
				s.allocs = v
			}
		}
		if s.wall <= 0 {
			return nil, fmt.Errorf("no ns/op in %q", strings.TrimSpace(line))
		}
		all = all.add(s)
	}
	return all, nil
}

// caseName is what a reader calls a benchmark: without the word that all have
// in common. With GOMAXPROCS=1 there is no number of processors at its end.
func caseName(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, requestPrefix), "Benchmark")
	return strings.ReplaceAll(name, "_", " ")
}
