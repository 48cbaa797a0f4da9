package main

import (
	"math"
	"slices"
)

const (
	// tolerated is how much slower a case may be before it counts: code that has
	// moved in memory alone differs by a percent or two.
	tolerated = 0.03
	// confidence is that of every interval.
	confidence = 0.99
	// fewestRounds is how many it takes for an interval of that confidence.
	fewestRounds = 8
)

// An interval holds the median that would be found with endless rounds.
type interval struct{ low, median, high float64 }

// medianInterval is that of a sign test: how often each of n values lies above
// the true median is the toss of a coin, whatever their distribution, so that a
// few rounds which a neighbour disturbed do not move it. It takes at least
// fewestRounds values, which it sorts.
func medianInterval(values []float64) interval {
	slices.Sort(values)
	n := len(values)
	// skipped is how many of each end may be left out.
	skipped, tail, term := 0, 0.0, math.Pow(0.5, float64(n))
	for k := 0; k < n/2; k++ {
		tail += term
		if 2*tail > 1-confidence {
			break
		}
		skipped = k
		term *= float64(n-k) / float64(k+1)
	}
	middle := values[n/2]
	if n%2 == 0 {
		middle = (values[n/2-1] + values[n/2]) / 2
	}
	return interval{low: values[skipped], median: middle, high: values[n-1-skipped]}
}

// A verdict says what became of a case.
type verdict string

// The verdicts. The first two fail the check.
const (
	slower    verdict = "**slower**"
	allocates verdict = "**allocates**"
	both      verdict = "**slower, allocates**"
	faster    verdict = "faster"
	same      verdict = "same"
	unclear   verdict = "unclear" // it may be slower than is tolerated; noise hides it
)

// A comparison is one case then and now.
type comparison struct {
	name      string
	base, now sample // medians; allocations are the least
	byTime    bool   // wall time was compared, not processor time
	ratio     interval
	noise     float64 // by how much the base differs from itself, in the median
	verdict   verdict
	missing   string // where there is no such case; "": it is in both
}

// compare holds each case against itself. All runs of one program have the same
// cases.
func compare(rounds []round) []comparison {
	base, now := rounds[0].base[0], rounds[0].now[0]
	var all []comparison
	for _, s := range now {
		if _, ok := base.of(s.name); !ok {
			all = append(all, comparison{name: s.name, missing: "the release"})
			continue
		}
		all = append(all, compareCase(rounds, s.name))
	}
	for _, s := range base {
		if _, ok := now.of(s.name); !ok {
			all = append(all, comparison{name: s.name, missing: "the working tree"})
		}
	}
	return all
}

func compareCase(rounds []round, name string) comparison {
	c := comparison{name: name}
	var bases, nows [][2]sample
	for _, r := range rounds {
		bases = append(bases, pair(r.base, name))
		nows = append(nows, pair(r.now, name))
	}
	// Processor time tells more than time does where both have it.
	c.byTime = slices.ContainsFunc(append(bases, nows...), func(p [2]sample) bool { return p[0].cpu <= 0 || p[1].cpu <= 0 })
	c.base, c.now = summary(bases), summary(nows)
	var ratios, selves []float64
	for i := range rounds {
		ratios = append(ratios, least(nows[i], c.byTime)/least(bases[i], c.byTime))
		self := bases[i][1].cost(c.byTime) / bases[i][0].cost(c.byTime)
		selves = append(selves, self)
	}
	c.ratio = medianInterval(ratios)
	c.noise = math.Abs(medianInterval(selves).median - 1)
	c.verdict = c.judge()
	return c
}

// judge says what the numbers mean. Slower is what is slower even at the lower
// end of its interval, by more than is tolerated and what the base differs from
// itself together.
func (c comparison) judge() verdict {
	margin := tolerated + c.noise
	isSlower := c.ratio.low > 1+margin
	isAllocating := c.now.allocs > c.base.allocs || c.now.budget && c.now.allocs > 0
	switch {
	case isSlower && isAllocating:
		return both
	case isSlower:
		return slower
	case isAllocating:
		return allocates
	case c.ratio.high < 1-margin:
		return faster
	case c.ratio.high > 1+tolerated:
		return unclear
	}
	return same
}

func pair(runs [2]samples, name string) [2]sample {
	first, _ := runs[0].of(name)
	second, _ := runs[1].of(name)
	return [2]sample{first, second}
}

// cost is what is compared.
func (s sample) cost(byTime bool) float64 {
	if byTime {
		return s.wall
	}
	return s.cpu
}

// least is the less disturbed of two.
func least(p [2]sample, byTime bool) float64 {
	return min(p[0].cost(byTime), p[1].cost(byTime))
}

// summary is the median time of what is least of two, and the least allocations,
// which leaves out what background work had to allocate.
func summary(pairs [][2]sample) sample {
	var wall, cpu []float64
	allocs := math.Inf(1)
	for _, p := range pairs {
		wall = append(wall, min(p[0].wall, p[1].wall))
		cpu = append(cpu, min(p[0].cpu, p[1].cpu))
		allocs = min(allocs, p[0].allocs, p[1].allocs)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	return sample{budget: pairs[0][0].budget, wall: wall[len(wall)/2], cpu: cpu[len(cpu)/2], allocs: allocs}
}
