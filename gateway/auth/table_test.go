package auth

import (
	"math/rand/v2"
	"testing"
	"time"
)

func checkTable(t *testing.T, tab *table) {
	t.Helper()
	n := 0
	for i, p := range tab.places {
		if p.entry == nil {
			continue
		}
		n++
		if tab.find(p.hash) != p.entry {
			t.Fatalf("the entry at %d of %d is not found", i, len(tab.places))
		}
	}
	if n != tab.n || 4*n > 3*len(tab.places) {
		t.Fatalf("%d places of %d are taken, %d are counted", n, len(tab.places), tab.n)
	}
}

// Whatever is done to it, a table holds what a map holds.
func TestATableHoldsWhatAMapHolds(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		var tab table
		held := make(map[uint64]*entry)
		for range 1000 {
			hash := r.Uint64N(40) << (seed % 4) // many begin at the same place, also at the last ones
			switch r.IntN(6) {
			case 0, 1, 2:
				held[hash] = &entry{loaded: time.Duration(r.IntN(100))}
				tab.set(hash, held[hash])
			case 3:
				delete(held, hash)
				tab.remove(hash)
			case 4:
				oldest := time.Duration(r.IntN(20))
				tab.sweep(oldest)
				for hash, e := range held {
					if e.loaded < oldest {
						delete(held, hash)
					}
				}
			default:
				if tab.n > 0 {
					tab.evict()
					for hash := range held {
						if tab.find(hash) == nil {
							delete(held, hash)
						}
					}
				}
			}
			if tab.n != len(held) {
				t.Fatalf("seed %d: %d held, want %d", seed, tab.n, len(held))
			}
			for hash := range uint64(40) {
				hash <<= seed % 4
				if tab.find(hash) != held[hash] {
					t.Fatalf("seed %d: hash %d: another entry", seed, hash)
				}
			}
			checkTable(t, &tab)
		}
	}
}

func TestTheHandSparesWhatWasUsed(t *testing.T) {
	var tab table
	for hash := range uint64(20) {
		e := &entry{}
		if hash%2 == 0 {
			e.flags.Store(isUsed)
		}
		tab.set(hash, e)
	}
	for range 10 {
		tab.evict()
	}
	for hash := range uint64(20) {
		if (tab.find(hash) != nil) != (hash%2 == 0) {
			t.Errorf("entry %d: used and gone, or unused and kept", hash)
		}
	}
	for range 10 {
		tab.evict()
	}
	if tab.n != 0 {
		t.Errorf("%d are spared for ever", tab.n)
	}
}
