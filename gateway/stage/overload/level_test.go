package overload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// levelBySorting finds the level by giving to the smallest first.
func levelBySorting(wants []float64, total float64) float64 {
	wants = slices.DeleteFunc(slices.Clone(wants), func(w float64) bool { return w <= 0 })
	slices.Sort(wants)
	for i, want := range wants {
		if left := float64(len(wants) - i); want*left > total {
			return total / left
		}
		total -= want
	}
	return math.Inf(1)
}

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants []float64
		total float64
		level float64
	}{
		{"nobody", nil, 10, math.Inf(1)},
		{"nobody and nothing", nil, 0, math.Inf(1)},
		{"enough", []float64{1, 2, 3}, 6, math.Inf(1)},
		{"one", []float64{20}, 10, 10},
		{"equal wants", []float64{5, 5, 5, 5}, 10, 2.5},
		{"one that floods", []float64{1, 1, 100}, 10, 8},
		{"two that flood", []float64{1, 50, 100}, 10, 4.5},
		{"those who want nothing are not counted", []float64{0, 0, 20, 20}, 10, 5},
		{"nothing to give", []float64{1, 2}, 0, 0},
		{"less than nothing", []float64{1, 2}, -1, 0},
		{"below one", []float64{0.5, 0.25, 3}, 1, 0.375},
	} {
		if got := level(c.wants, c.total); math.Abs(got-c.level) > 1e-9 && got != c.level {
			t.Errorf("%s: %v of %v: level %v, want %v", c.name, c.total, c.wants, got, c.level)
		}
	}
}

func TestLevelIsTheOneThatSortingFinds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		wants := make([]float64, random.IntN(40))
		spread := random.Float64() * 12 // from all alike to twelve orders of magnitude
		for i := range wants {
			if random.IntN(5) > 0 {
				wants[i] = math.Pow(10, random.Float64()*spread-3)
			}
		}
		sum := 0.0
		for _, want := range wants {
			sum += want
		}
		total := sum * random.Float64() * 1.2
		got, want := level(wants, total), levelBySorting(wants, total)
		if got != want && math.Abs(got-want) > 1e-6*want {
			t.Fatalf("%v of %v: level %v, want %v", total, wants, got, want)
		}
	}
}

// Wants of which each pass can satisfy but one take more passes than there are.
func TestLevelThatIsCutShortGivesTooLittle(t *testing.T) {
	var wants []float64
	sum := 0.0
	for i := range 900 {
		wants = append(wants, math.Pow(2, float64(i)))
		sum += wants[i]
	}
	total := sum * 0.9
	got, want := level(wants, total), levelBySorting(wants, total)
	if !(got > 0 && got <= want*(1+1e-9)) {
		t.Errorf("level %v, want at most %v", got, want)
	}
}
