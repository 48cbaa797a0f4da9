package cache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func key(owner uint64, name, text string) TextKey {
	return TextKey{Owner: owner, Name: []byte(name), Text: []byte(text)}
}

func TestTextKeysAreComparedInFull(t *testing.T) {
	c := NewTexts[string](1 << 20)
	keys := []TextKey{
		key(1, "", "a"), key(2, "", "a"), key(1, "a", "a"), key(1, "a", ""), key(1, "", ""), key(1, "b", "a"), key(1<<63|1, "", "a"),
		key(1, "ab", "c"), key(1, "a", "bc"), key(1, "", "abc"),
	}
	for i, k := range keys {
		value := fmt.Sprint(i)
		c.Add(k, &value, len(value))
	}
	for i, k := range keys {
		if got := c.Get(k); got == nil || *got != fmt.Sprint(i) {
			t.Errorf("key %d has another value: %v", i, got)
		}
	}
}

func TestAddKeepsTheFirstValue(t *testing.T) {
	c := NewTexts[int](1 << 20)
	one, two := 1, 2
	c.Add(key(1, "", "a"), &one, 0)
	c.Add(key(1, "", "a"), &two, 0)
	if got := c.Get(key(1, "", "a")); got != &one {
		t.Errorf("got %v", got)
	}
	if entries, bytes := c.Size(); entries != 1 || bytes != overhead+1 {
		t.Errorf("%d entries of %d bytes", entries, bytes)
	}
}

func TestSetReplacesAValue(t *testing.T) {
	c := NewTexts[int](1 << 20)
	values := []int{0, 1, 2, 3}
	for i := range values {
		c.Set(key(1, "", "a"), &values[i], 10*i)
		c.Set(key(1, "", "b"), &values[i], 0)
		if got := c.Get(key(1, "", "a")); got != &values[i] {
			t.Fatalf("got %v after %d", got, i)
		}
	}
	if entries, bytes := c.Size(); entries != 2 || bytes != 2*(overhead+1)+30 {
		t.Errorf("%d entries of %d bytes", entries, bytes)
	}
	if c.Set(key(1, "", "a"), &values[0], c.Largest(1)); c.Get(key(1, "", "a")) != &values[0] {
		t.Error("the largest value is not kept")
	}
	if c.Set(key(1, "", "c"), &values[0], c.Largest(1)+1); c.Get(key(1, "", "c")) != nil {
		t.Error("a larger one is")
	}
}

func TestTextsStayWithinTheirBytes(t *testing.T) {
	const size = 1 << 20
	c := NewTexts[int](size)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		text := fmt.Sprint(i, strings.Repeat("x", rng.IntN(1000)))
		c.Add(key(1, "", text), &i, rng.IntN(500))
		if _, bytes := c.Size(); i%1000 == 0 && bytes > size {
			t.Fatalf("%d bytes after %d entries", bytes, i)
		}
	}
	if entries, bytes := c.Size(); bytes > size || bytes < size/2 || entries == 0 {
		t.Errorf("%d entries of %d bytes", entries, bytes)
	}
	long := strings.Repeat("y", MaxText+1)
	c.Add(key(1, "", long), new(int), 0)
	if c.Get(key(1, "", long)) != nil {
		t.Error("a text that is too long is kept")
	}
	none := NewTexts[int](0)
	none.Add(key(1, "", "a"), new(int), 0)
	if n, _ := none.Size(); n != 0 {
		t.Error("a cache of no size keeps something")
	}
}

func TestTextsInUseSurviveAFloodOfOthers(t *testing.T) {
	c := NewTexts[int](1 << 20)
	const popular = 1000
	for i := range popular {
		c.Add(key(1, "", fmt.Sprintf("popular %d", i)), &i, 200)
	}
	for i := range 20_000 {
		c.Add(key(1, "", fmt.Sprintf("once %d", i)), &i, 200)
		c.Get(key(1, "", fmt.Sprintf("popular %d", i%popular)))
	}
	left := 0
	for i := range popular {
		if c.Get(key(1, "", fmt.Sprintf("popular %d", i))) != nil {
			left++
		}
	}
	if left < popular*95/100 {
		t.Errorf("%d of %d are left", left, popular)
	}
}

func TestDropRemovesTheTextsOfAnOwner(t *testing.T) {
	c := NewTexts[int](4 << 20)
	for i := range 2000 {
		c.Add(key(uint64(i%2), "", fmt.Sprint(i)), &i, 10)
		if i%3 == 0 {
			c.Get(key(uint64(i%2), "", fmt.Sprint(i)))
		}
	}
	c.Drop(1)
	for i := range 2000 {
		if got := c.Get(key(uint64(i%2), "", fmt.Sprint(i))); (got == nil) != (i%2 == 1) {
			t.Fatalf("%d: %v", i, got)
		}
	}
	if n, _ := c.Size(); n != 1000 {
		t.Errorf("%d entries are left", n)
	}
	c.Drop(0)
	if n, bytes := c.Size(); n != 0 || bytes != 0 {
		t.Errorf("%d entries of %d bytes are left", n, bytes)
	}
}

func TestTextsAreSafeForConcurrentUse(t *testing.T) {
	c := NewTexts[string](1 << 20)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 4_000 {
				text := fmt.Sprint(rng.IntN(3000))
				k := key(uint64(rng.IntN(3)), "", text)
				want := fmt.Sprint(k.Owner, text)
				switch got := c.Get(k); {
				case got == nil:
					c.Add(k, &want, 300)
				case *got != want:
					t.Errorf("%s is taken for %s", *got, want)
					return
				}
				if rng.IntN(5000) == 0 {
					c.Drop(2)
				}
			}
		})
	}
	all.Wait()
	if _, bytes := c.Size(); bytes > 1<<20 {
		t.Errorf("%d bytes", bytes)
	}
}

func TestTextHitsDoNotAllocate(t *testing.T) {
	c := NewTexts[int](1 << 20)
	k := key(1, "name", strings.Repeat("x", 500))
	c.Add(k, new(int), 0)
	if n := testing.AllocsPerRun(100, func() {
		if c.Get(k) == nil {
			t.Fatal("gone")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The cost of a hit must not depend on how much is known, but for what comes
// from memory rather than from the processor's caches. The text that is looked
// up is at hand, as that of a request is.
func BenchmarkTextHit(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n, " operations"), func(b *testing.B) {
			c := NewTexts[int](128 << 20)
			text := []byte("query Q0000000 { " + strings.Repeat("field ", 45) + "}")
			k := TextKey{Owner: 1, Name: []byte("Q"), Text: text}
			number := func(i int) {
				for at := 13; at > 6; at-- {
					text[at] = byte('0' + i%10)
					i /= 10
				}
			}
			for i := range n {
				number(i)
				c.Add(k, &i, 400)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				number(rng.IntN(n))
				if c.Get(k) == nil {
					b.Fatal("gone")
				}
			}
		})
	}
}
