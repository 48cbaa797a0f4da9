package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// A machine makes up rounds as a shared one would run them: each reading is a few
// percent off, many are held up for long, and it becomes slower meanwhile.
type machine struct {
	random *rand.Rand
	spread float64 // of one reading, as a share
	held   float64 // how many readings of a hundred are held up
	drift  float64 // by how much it becomes slower in all
}

func (m machine) reading(cost, allocs, progress float64) sample {
	cost *= 1 + m.spread*math.Abs(m.random.NormFloat64()) + m.drift*progress
	if m.random.Float64()*100 < m.held {
		cost *= 1 + 2*m.random.Float64()
	}
	return sample{name: "keyless", budget: true, wall: cost, allocs: allocs}
}

// rounds are as measure would make them.
func (m machine) rounds(n int, base, now sample) []round {
	all := make([]round, n)
	for i := range 4 * turns * n {
		r, turn, place := &all[i/(4*turns)], i/4, i%4
		isNow := (place == 1 || place == 2) != (turn%2 == 1)
		cost, into := base, &r.base
		if isNow {
			cost, into = now, &r.now
		}
		which := place / 2
		for range readings {
			one := m.reading(cost.wall, cost.allocs, float64(i)/float64(4*turns*n))
			into[which] = into[which].add(one)
		}
	}
	return all
}

func shared(seed uint64) machine {
	return machine{random: rand.New(rand.NewPCG(seed, 1)), spread: 0.05, held: 40, drift: 0.2}
}

// often counts verdicts over many seeds.
func often(times int, base, now sample) map[verdict]int {
	counts := map[verdict]int{}
	for seed := range times {
		counts[compare(shared(uint64(seed)).rounds(12, base, now))[0].verdict]++
	}
	return counts
}

func TestWhatIsFivePercentSlowerIsFound(t *testing.T) {
	// At 5 % with a bound of 3 % little is left for noise: of one run on a busy
	// machine that is often all that can be said. What it never is: the same.
	base := sample{wall: 20}
	for percent, least := range map[float64]int{5: 60, 7: 180, 10: 190} {
		counts := often(200, base, sample{wall: 20 * (1 + percent/100)})
		if counts[slower] < least {
			t.Errorf("%v %% slower: %v of 200, want at least %d slower", percent, counts, least)
		}
		if counts[same] > 0 {
			t.Errorf("%v %% slower: %v, want none to be the same", percent, counts)
		}
	}
	quiet := machine{random: rand.New(rand.NewPCG(7, 7)), spread: 0.01}
	if v := compare(quiet.rounds(12, base, sample{wall: 21}))[0].verdict; v != slower {
		t.Errorf("5 %% slower on a quiet machine is %q", v)
	}
}

func TestNoiseIsNotReported(t *testing.T) {
	counts := often(1000, sample{wall: 20}, sample{wall: 20})
	if bad := counts[slower] + counts[faster]; bad > 0 {
		t.Errorf("without a difference: %v", counts)
	}
	t.Log(counts)
	if counts[same] < 600 {
		t.Errorf("without a difference: %v, want most to be the same", counts)
	}
}

func TestNoiseOfABusyMachineIsNotReported(t *testing.T) {
	counts := map[verdict]int{}
	for seed := range uint64(1000) {
		m := machine{random: rand.New(rand.NewPCG(seed, 3)), spread: 0.5, held: 60, drift: 0.5}
		counts[compare(m.rounds(fewestRounds, sample{wall: 20}, sample{wall: 20}))[0].verdict]++
	}
	t.Log(counts)
	if bad := counts[slower] + counts[faster]; bad > 10 {
		t.Errorf("without a difference: %v of 1,000", counts)
	}
}

func TestWhatTheReleaseDiffersByFromItselfWidensTheBound(t *testing.T) {
	for self, want := range map[float64]verdict{1: slower, 1.05: unclear} {
		rounds := make([]round, fewestRounds)
		for i := range rounds {
			of := func(wall float64) samples { return samples{{name: "x", wall: wall}} }
			rounds[i] = round{base: [2]samples{of(20), of(20 * self)}, now: [2]samples{of(21), of(21)}}
		}
		if c := compare(rounds)[0]; c.verdict != want {
			t.Errorf("5 %% slower, beside a release that differs by %v from itself: %q, want %q", self, c.verdict, want)
		}
	}
}

func TestWhatIsFasterIsSaid(t *testing.T) {
	if c := compare(shared(1).rounds(12, sample{wall: 20}, sample{wall: 16}))[0]; c.verdict != faster {
		t.Errorf("20 %% faster is %q: %+v", c.verdict, c)
	}
}

func TestAllocationsFail(t *testing.T) {
	for _, c := range []struct {
		name      string
		base, now sample
		want      verdict
	}{
		{"one more", sample{wall: 20}, sample{wall: 20, allocs: 1}, allocates},
		{"no more than before, but over the budget", sample{wall: 20, allocs: 1}, sample{wall: 20, allocs: 1}, allocates},
		{"one more, and slower", sample{wall: 20}, sample{wall: 30, allocs: 1}, both},
		{"one less", sample{wall: 20, allocs: 1}, sample{wall: 20}, same},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machine{random: rand.New(rand.NewPCG(5, 5)), spread: 0.005}
			if got := compare(m.rounds(12, c.base, c.now))[0].verdict; got != c.want {
				t.Errorf("verdict %q, want %q", got, c.want)
			}
		})
	}
}

func TestBackgroundWorkIsNoAllocationOfARequest(t *testing.T) {
	rounds := shared(2).rounds(12, sample{wall: 20}, sample{wall: 20})
	rounds[4].now[1][0].allocs = 1
	if c := compare(rounds)[0]; c.verdict == allocates || c.verdict == both {
		t.Errorf("one run of forty allocated: %q", c.verdict)
	}
}

func TestProcessorTimeIsComparedWhereBothReportIt(t *testing.T) {
	run := func(wall, cpu float64) samples { return samples{{name: "x", wall: wall, cpu: cpu}} }
	rounds := make([]round, 20)
	for i := range rounds {
		rounds[i] = round{base: [2]samples{run(20, 10), run(20, 10)}, now: [2]samples{run(20, 11), run(20, 11)}}
	}
	if c := compare(rounds)[0]; c.verdict != slower || c.base.cost(c.byTime) != 10 {
		t.Errorf("a tenth more processor time: %+v", c)
	}
	rounds[3].base[0][0].cpu = 0
	if c := compare(rounds)[0]; c.verdict != same || c.base.cost(c.byTime) != 20 {
		t.Errorf("the release does not report it, and time is the same: %+v", c)
	}
}

func TestCasesOfOneProgramAreNamedNotCompared(t *testing.T) {
	rounds := make([]round, fewestRounds)
	for i := range rounds {
		base, now := samples{{name: "both", wall: 1}, {name: "gone", wall: 1}}, samples{{name: "new", wall: 1}, {name: "both", wall: 1}}
		rounds[i] = round{base: [2]samples{base, base}, now: [2]samples{now, now}}
	}
	var got strings.Builder
	for _, c := range compare(rounds) {
		got.WriteString(fmt.Sprintf("%s %s|", c.name, c.missing))
	}
	if want := "new the release|both |gone the working tree|"; got.String() != want {
		t.Errorf("%s, want %s", got.String(), want)
	}
}

func TestIntervalIsThatOfASignTest(t *testing.T) {
	// Of a table of the binomial distribution: how many of each end may be left
	// out at 99 %.
	for n, skipped := range map[int]int{8: 0, 11: 0, 12: 1, 15: 2, 20: 3, 30: 7} {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(n - i)
		}
		got := medianInterval(values)
		want := interval{low: float64(1 + skipped), median: float64(n+1) / 2, high: float64(n - skipped)}
		if got != want {
			t.Errorf("%d values: %+v, want %+v", n, got, want)
		}
	}
}

func TestIntervalHoldsTheMedianAsOftenAsItSays(t *testing.T) {
	random, missed := rand.New(rand.NewPCG(11, 11)), 0
	for range 2000 {
		values := make([]float64, 20)
		for i := range values {
			values[i] = math.Exp(2 * random.NormFloat64()) // skewed, median 1
		}
		if in := medianInterval(values); in.low > 1 || in.high < 1 {
			missed++
		}
	}
	if missed > 30 {
		t.Errorf("%d of 2,000 intervals of 99 %% miss the median", missed)
	}
}
