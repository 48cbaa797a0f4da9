package frozen

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func same(t *testing.T, m *Map[int], want map[string]int) {
	t.Helper()
	if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
		t.Fatalf("%d keys (Len %d), want %d", len(got), m.Len(), len(want))
	}
	for key, value := range want {
		got, ok := m.Get(key)
		found, there := m.Find([]byte(key))
		if !ok || !there || got != value || found != value {
			t.Fatalf("%q: %d %v, %d %v; want %d", key, got, ok, found, there, value)
		}
	}
	if _, ok := m.Get("absent"); ok {
		t.Fatal("found what is absent")
	}
	if _, ok := m.Find([]byte("absent")); ok {
		t.Fatal("found what is absent")
	}
	if got, wanted := m.Sorted(), slices.Sorted(maps.Keys(want)); !slices.Equal(got, wanted) {
		t.Fatalf("sorted %v, want %v", got, wanted)
	}
}

func TestEditsAgreeWithOrdinaryMapsAndLeaveTheirOriginalAlone(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m *Map[int]
	model := map[string]int{}
	same(t, m, model)
	for round := range 300 {
		before, was := m, maps.Clone(model)
		e := m.Edit()
		for range random.IntN(100) {
			key := fmt.Sprint("key", random.IntN(2000))
			if value, ok := e.Get(key); ok != has(model, key) || value != model[key] {
				t.Fatalf("round %d: %q is %d, want %d", round, key, value, model[key])
			}
			if random.IntN(3) == 0 {
				e.Delete(key)
				delete(model, key)
			} else {
				e.Set(key, round)
				model[key] = round
			}
			if e.Len() != len(model) {
				t.Fatalf("round %d: %d keys, want %d", round, e.Len(), len(model))
			}
		}
		if got := maps.Collect(e.All()); !maps.Equal(got, model) {
			t.Fatalf("round %d: %d keys, want %d", round, len(got), len(model))
		}
		m = e.Done()
		same(t, m, model)
		same(t, before, was)
	}
}

func has(m map[string]int, key string) bool {
	_, ok := m[key]
	return ok
}

func TestAnEditThatChangesNothingReturnsItsOriginal(t *testing.T) {
	var none *Map[int]
	e := none.Edit()
	e.Set("a", 1)
	m := e.Done()
	e = m.Edit()
	e.Delete("b")
	if e.Done() != m {
		t.Error("another map")
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	for _, size := range []int{1, 5, 10_000} {
		var none *Map[int]
		e := none.Edit()
		for i := range size {
			e.Set(fmt.Sprint(i), i)
		}
		m, key := e.Done(), []byte("0")
		if n := testing.AllocsPerRun(100, func() { m.Find(key); m.Get("0") }); n > 0 {
			t.Errorf("size %d: %v allocations", size, n)
		}
	}
}

func large(size int) (*Map[int], []string) {
	var none *Map[int]
	e, keys := none.Edit(), make([]string, size)
	for i := range size {
		keys[i] = fmt.Sprintf("api-%06d", i)
		e.Set(keys[i], i)
	}
	return e.Done(), keys
}

func BenchmarkFind(b *testing.B) {
	for _, size := range []int{1, 100_000} {
		m, keys := large(size)
		b.Run(fmt.Sprint("keys=", size), func(b *testing.B) {
			i := 0
			for b.Loop() {
				i = (i + 7919) % size
				m.Find([]byte(keys[i]))
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	for b.Loop() {
		large(100_000)
	}
}

func BenchmarkEdit(b *testing.B) {
	m, keys := large(100_000)
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(keys)
		e := m.Edit()
		e.Set(keys[i], i+1)
		m = e.Done()
	}
}

func TestDifferencesOfLists(t *testing.T) {
	for _, c := range []struct{ before, after, gone, come string }{
		{"", "", "", ""},
		{"abc", "abc", "", ""},
		{"", "ab", "", "01"},
		{"ab", "", "01", ""},
		{"abcdef", "abXdef", "2", "2"},
		{"abcdef", "abdef", "2", ""},
		{"abdef", "abcdef", "", "2"},
		{"abcdef", "afXcdbY", "4", "26"},
		{"aaa", "aa", "2", ""},
	} {
		gone, come, err := Diff([]byte(c.before), []byte(c.after), func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if got, also := fmt.Sprint(gone), fmt.Sprint(come); got != spaced(c.gone) || also != spaced(c.come) {
			t.Errorf("%s to %s: gone %s, come %s; want %s, %s", c.before, c.after, got, also, spaced(c.gone), spaced(c.come))
		}
	}
}

func spaced(digits string) string { return fmt.Sprint(slices.Collect(numbers(digits))) }

func numbers(digits string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, d := range digits {
			if !yield(int(d - '0')) {
				return
			}
		}
	}
}

func TestLargeChangesAreMadeInSteps(t *testing.T) {
	const n = 20_000
	before, after := make([]int, n), make([]int, n)
	var none *Map[int]
	edit := none.Edit()
	for i := range n {
		before[i], after[i] = i, -1-i
		edit.Set(fmt.Sprint(i), i)
	}
	steps, most := 0, math.MaxInt
	wrong := errors.New("enough")
	step := func() error {
		if steps++; steps > most {
			return wrong
		}
		return nil
	}
	if gone, come, err := Diff(before, after, step); err != nil || len(gone) != n || len(come) != n || steps < 4*n/atOnce {
		t.Errorf("%d gone, %d came, %d steps, %v", len(gone), len(come), steps, err)
	}
	steps = 0
	if m, err := edit.DoneBySteps(step); err != nil || m.Len() != n || steps < n/fullAt {
		t.Errorf("%d in the map, %d steps, %v", m.Len(), steps, err)
	}
	for most = range 5 * n / atOnce {
		steps = 0
		if _, _, err := Diff(before, after, step); (err != nil) != (steps > most) || err != nil && err != wrong {
			t.Fatalf("after %d steps: %v", most, err)
		}
	}
	most, steps = 3, 0
	again := none.Edit()
	for i := range n {
		again.Set(fmt.Sprint(i), i)
	}
	if _, err := again.DoneBySteps(step); err != wrong {
		t.Errorf("after 3 steps: %v", err)
	}
}
