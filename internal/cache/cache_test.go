package cache

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
)

func Example() {
	schemas := New[string, int](Options{Entries: 1000, Bytes: 1 << 20})
	schemas.PutSized("accounts", 7, 300)
	version, ok := schemas.Get("accounts")
	fmt.Println(version, ok, schemas.Len(), schemas.Bytes())
	// Output: 7 true 1 300
}

func TestACacheStaysWithinItsBounds(t *testing.T) {
	for _, o := range []Options{{Entries: 1}, {Entries: 100}, {Entries: 10_000}, {Entries: 10_000, Bytes: 50_000}} {
		c := New[int, int](o)
		for i := range 30_000 {
			c.PutSized(i, i, 10)
			if v, ok := c.Get(i); !ok || v != i {
				t.Fatalf("%+v: key %d has %d, %v", o, i, v, ok)
			}
		}
		most := o.Entries + len(c.shards)
		if n := c.Len(); n > most || n < most/3 && o.Bytes == 0 {
			t.Errorf("%+v: %d entries", o, n)
		}
		if n := c.Bytes(); o.Bytes > 0 && n > o.Bytes+10*len(c.shards) || n != 10*c.Len() {
			t.Errorf("%+v: %d bytes of %d entries", o, n, c.Len())
		}
	}
}

func TestEntriesThatAreReadOutliveThoseThatAreNot(t *testing.T) {
	c := New[int, string](Options{Entries: 100})
	for i := range 50 {
		c.Put(i, "often")
	}
	for i := range 10_000 {
		c.Put(1000+i, "once")
		c.Get(i % 50)
	}
	for i := range 50 {
		if _, ok := c.Get(i); !ok {
			t.Errorf("key %d was evicted", i)
		}
	}
}

func TestValuesLargerThanTheCacheAreNotKept(t *testing.T) {
	c := New[string, int](Options{Entries: 10, Bytes: 100})
	c.PutSized("a", 1, 60)
	c.PutSized("b", 2, 40)
	c.PutSized("a", 3, 101)
	if _, ok := c.Get("a"); ok || c.Bytes() != 40 {
		t.Errorf("the value is kept: %v, %d bytes", ok, c.Bytes())
	}
	c.PutSized("b", 4, 100)
	if v, _ := c.Get("b"); v != 4 || c.Bytes() != 100 {
		t.Errorf("value %d, %d bytes", v, c.Bytes())
	}
}

func TestUpdateSeesWhatIsThere(t *testing.T) {
	c := New[string, int](Options{Entries: 1000})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 1000 {
				c.Update(strconv.Itoa(i%10), func(v int, _ bool) int { return v + 1 })
			}
		})
	}
	group.Wait()
	for key, v := range c.All {
		if v != 800 {
			t.Errorf("%s: %d updates, want 800", key, v)
		}
	}
	c.Clear()
	if c.Len() != 0 {
		t.Errorf("%d entries after Clear", c.Len())
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	c := New[string, int](Options{Entries: 1000})
	c.Put("some key", 1)
	hashes := New[uint64, int](Options{Entries: 1000})
	hashes.Put(7, 1)
	if n := testing.AllocsPerRun(100, func() {
		c.Get("some key")
		hashes.Get(7)
		c.Update("some key", func(v int, _ bool) int { return v + 1 })
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCache compares a cache that never evicts with a map, and checks that one
// that does returns nothing wrong.
func FuzzCache(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 1, 3, 1, 0, 7, 4, 0})
	f.Add([]byte{0, 1, 0, 2, 0, 3, 4, 9, 0, 1, 1, 1, 5, 0, 0, 2})
	f.Fuzz(func(t *testing.T, steps []byte) {
		model := make(map[byte]int)
		whole, small := New[byte, int](Options{Entries: 1000}), New[byte, int](Options{Entries: 3, Bytes: 64})
		for i := 0; i+1 < len(steps); i += 2 {
			step, key := steps[i]%6, steps[i+1]
			both := []*Cache[byte, int]{whole, small}
			for _, c := range both {
				apply(c, step, key, i)
			}
			applyToModel(model, step, key, i)
			for key, want := range model {
				if v, ok := whole.Get(key); !ok || v != want {
					t.Fatalf("step %d: key %d has %d, %v, want %d", i, key, v, ok, want)
				}
				if v, ok := small.Get(key); ok && v != want {
					t.Fatalf("step %d: key %d has %d in the small cache, want %d", i, key, v, want)
				}
			}
			if whole.Len() != len(model) || small.Len() > 3 || small.Bytes() > 64 {
				t.Fatalf("step %d: %d and %d entries, %d bytes, want %d", i, whole.Len(), small.Len(), small.Bytes(), len(model))
			}
		}
	})
}

func apply(c *Cache[byte, int], step, key byte, value int) {
	switch step {
	case 0, 1:
		c.PutSized(key, value, int(key)%40)
	case 2:
		c.Get(key)
	case 3:
		c.Delete(key)
	case 4:
		c.DeleteFunc(func(k byte, _ int) bool { return k%3 == key%3 }, nil)
	case 5:
		c.Put(key, value)
	}
}

func applyToModel(model map[byte]int, step, key byte, value int) {
	switch step {
	case 0, 1, 5:
		model[key] = value
	case 3:
		delete(model, key)
	case 4:
		for k := range model {
			if k%3 == key%3 {
				delete(model, k)
			}
		}
	}
}

func BenchmarkGet(b *testing.B) {
	c := New[uint64, *int](Options{Entries: 200_000})
	for i := range uint64(100_000) {
		c.Put(i, new(int))
	}
	b.RunParallel(func(pb *testing.PB) {
		for i := uint64(0); pb.Next(); i += 7919 {
			c.Get(i % 100_000)
		}
	})
}

func TestAReplacedValueThatGrewIsNotTheOneToBeEvicted(t *testing.T) {
	c := New[string, int](Options{Entries: 100, Bytes: 1000})
	c.PutSized("a", 1, 10)
	c.PutSized("b", 1, 10)
	c.Get("b")
	c.PutSized("a", 2, 1000)
	if v, ok := c.Get("a"); !ok || v != 2 {
		t.Errorf("got %d, %v", v, ok)
	}
	if _, ok := c.Get("b"); ok || c.Bytes() != 1000 {
		t.Errorf("b is still there, with %d bytes in all", c.Bytes())
	}
}
