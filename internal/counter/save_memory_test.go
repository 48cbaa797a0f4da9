package counter

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// Each second anew, the memory of what is saved was most of a gateway's garbage.
func TestSavingUsesItsMemoryAgain(t *testing.T) {
	m := NewMemory(time.Now)
	s, err := OpenSaver(m, SaverOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	limits := make([][]Limit, 10_000)
	for i := range limits {
		limits[i] = []Limit{{Key: fmt.Sprintf("quota-%064d", i), Kind: Quota, Max: 1000, Period: time.Hour}}
	}
	count := func() {
		for _, l := range limits {
			if _, err := m.Take(t.Context(), l, 1, make([]Count, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var before, after runtime.MemStats
	for _, save := range []func() error{func() error { return s.save(t.Context()) }, func() error { return s.saveFull(t.Context()) }} {
		for range 2 { // the first time makes room
			count()
			written := s.journalSize
			runtime.ReadMemStats(&before)
			if err := save(); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if max(s.fullSize, s.journalSize-written) < 5e5 {
				t.Fatal("little was saved")
			}
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<10 {
			t.Errorf("%d KiB allocated for what was saved before", allocated>>10)
		}
	}
}
