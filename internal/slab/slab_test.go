package slab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
)

// check holds a table against what it should hold, by hash, and against itself.
func check(t *testing.T, tab *Table, want map[uint64][]string) {
	t.Helper()
	n, bytes := 0, 0
	for hash, records := range want {
		var found []string
		for i := tab.Find(hash); i >= 0; i = tab.Another(i) {
			found = append(found, string(tab.Record(i)))
			bytes += headSize + len(tab.Record(i))
		}
		slices.Sort(found)
		if slices.Sort(records); !slices.Equal(found, records) {
			t.Fatalf("hash %d: found %q, want %q", hash, found, records)
		}
		n += len(records)
	}
	if tab.Len() != n || tab.chunks.live != bytes || 4*n > 3*len(tab.places) {
		t.Fatalf("%d records of %d bytes in %d places, want %d of %d", tab.Len(), tab.chunks.live, len(tab.places), n, bytes)
	}
	all := 0
	for hash, record := range tab.All() {
		if !slices.Contains(want[hash], string(record)) {
			t.Fatalf("%q is still there", record)
		}
		all++
	}
	if all != n {
		t.Fatalf("%d of %d were listed", all, n)
	}
	size := 0
	for i, c := range tab.chunks.all {
		size += cap(c.bytes)
		if c.bytes != nil && slices.Contains(tab.chunks.spare, uint32(i+1)) {
			t.Fatalf("chunk %d is spare and holds something", i+1)
		}
	}
	if size != tab.chunks.size {
		t.Fatalf("chunks of %d bytes are counted, there are %d", tab.chunks.size, size)
	}
}

// A step changes a table and its model alike.
func step(tab *Table, held map[uint64][]string, op byte, hash uint64, record string) {
	i := tab.Find(hash)
	switch {
	case op%4 < 2:
		tab.Add(hash, []byte(record))
		held[hash] = append(held[hash], record)
	case i < 0:
	case op%4 == 2:
		old := string(tab.Record(i))
		tab.Replace(i, []byte(record))
		held[hash][slices.Index(held[hash], old)] = record
	default:
		old := string(tab.Record(i))
		tab.Remove(i)
		at := slices.Index(held[hash], old)
		if held[hash] = slices.Delete(held[hash], at, at+1); len(held[hash]) == 0 {
			delete(held, hash)
		}
	}
}

func TestATableHoldsWhatAMapHolds(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		var tab Table
		held := make(map[uint64][]string)
		for n := range 1500 {
			hash := r.Uint64N(60) << (seed % 4) // many begin at the same place
			record := fmt.Sprintf("%d:%0*d", n, r.IntN(200), 7)
			step(&tab, held, byte(r.IntN(4)), hash, record)
			if tab.Len() > 0 && n%50 == 0 {
				tab.Use(tab.Unused())
			}
			if n%400 == 399 {
				keep := byte(r.IntN(10)) + '0'
				stale := func(record []byte) bool { return record[0] < keep }
				tab.Sweep(stale)
				for hash, records := range held {
					held[hash] = slices.DeleteFunc(records, func(s string) bool { return stale([]byte(s)) })
				}
				maps.DeleteFunc(held, func(_ uint64, records []string) bool { return len(records) == 0 })
			}
			if n%10 == 0 || n > 1400 {
				check(t, &tab, held)
			}
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 1, 200, 2, 1, 3, 3, 1, 0, 0, 9, 255, 1, 9, 255})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var tab Table
		held := make(map[uint64][]string)
		for ; len(ops) >= 3; ops = ops[3:] {
			step(&tab, held, ops[0], uint64(ops[1]%16)<<(ops[1]%3), string(bytes.Repeat(ops[1:2], int(ops[2]))))
		}
		check(t, &tab, held)
	})
}

// What a reader holds stays as it was, though the record is replaced, removed
// and moved.
func TestRecordsStayAsTheyWere(t *testing.T) {
	var tab Table
	record := func(hash uint64, round int) []byte {
		return bytes.Repeat([]byte{byte(hash), byte(round)}, 20+int(hash)%7)
	}
	for hash := range uint64(500) {
		tab.Add(hash, record(hash, 0))
	}
	held := make(map[uint64][]byte)
	for hash := range uint64(500) {
		held[hash] = tab.Record(tab.Find(hash))
	}
	for round := 1; round < 10; round++ {
		for hash := range uint64(500) {
			if i := tab.Find(hash); hash%3 == 0 {
				tab.Remove(i)
				tab.Add(hash, record(hash, round))
			} else {
				tab.Replace(i, record(hash, round))
			}
		}
	}
	for hash, old := range held {
		if !bytes.Equal(old, record(hash, 0)) || !bytes.Equal(tab.Record(tab.Find(hash)), record(hash, 9)) {
			t.Fatalf("record %d: held %v, now %v", hash, old, tab.Record(tab.Find(hash)))
		}
	}
}

// An appended byte must not reach what lies behind a record.
func TestARecordCannotBeAppendedToInPlace(t *testing.T) {
	var tab Table
	tab.Add(1, []byte("one"))
	tab.Add(2, []byte("two"))
	_ = append(tab.Record(tab.Find(1)), bytes.Repeat([]byte("x"), headSize+3)...)
	if got := string(tab.Record(tab.Find(2))); got != "two" {
		t.Errorf("the record behind it is %q", got)
	}
}

// mix spreads numbers as a hash does.
func mix(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 >> 8 }

func TestMemoryOfRecordsThatAreGoneIsReturned(t *testing.T) {
	var tab Table
	const n, length = 20_000, 200
	for i := range n {
		tab.Add(mix(i), make([]byte, length))
	}
	full := tab.Size()
	if most := n * (headSize + length + 2*16) * 5 / 4; full > most {
		t.Errorf("%d records take %d bytes, at most %d should be needed", n, full, most)
	}
	for range 20 { // each is replaced again and again
		for i := range n {
			tab.Replace(tab.Find(mix(i)), make([]byte, length))
		}
	}
	if got := tab.Size(); got > 2*full+2*mostChunk {
		t.Errorf("%d bytes after replacing, %d before", got, full)
	}
	for i := range n {
		if i%100 != 0 {
			tab.Remove(tab.Find(mix(i)))
		}
	}
	if got := tab.Size(); got > full/20 {
		t.Errorf("%d bytes are held for a hundredth of what took %d", got, full)
	}
	for i := range n {
		if at := tab.Find(mix(i)); (at >= 0) != (i%100 == 0) {
			t.Fatalf("record %d: at %d", i, at)
		}
	}
}

func TestTheHandSparesWhatWasUsed(t *testing.T) {
	var tab Table
	for hash := range uint64(20) {
		tab.Add(hash, []byte{byte(hash)})
		if hash%2 == 0 {
			tab.Use(tab.Find(hash))
		}
	}
	for range 10 {
		tab.Remove(tab.Unused())
	}
	for hash := range uint64(20) {
		if (tab.Find(hash) >= 0) != (hash%2 == 0) {
			t.Errorf("record %d: used and gone, or unused and kept", hash)
		}
	}
	for range 10 {
		tab.Remove(tab.Unused())
	}
	if tab.Len() != 0 {
		t.Errorf("%d are spared for ever", tab.Len())
	}
}

// A record that is replaced, or moves, is as spared as it was.
func TestReplacingSparesNobodyAndForgetsNobody(t *testing.T) {
	var tab Table
	for hash := range uint64(8) {
		tab.Add(hash, []byte("first"))
	}
	for hash := range uint64(8) {
		if hash != 5 {
			tab.Use(tab.Find(hash))
		}
		for range 100 {
			tab.Replace(tab.Find(hash), make([]byte, 100))
		}
	}
	if got := tab.Hash(tab.Unused()); got != 5 {
		t.Errorf("the hand stops at %d, want 5", got)
	}
}

// Readers under a shared lock read what was there, and go on reading it when
// they have let go, while one writer changes everything.
func TestReadersNeedNoLockForWhatTheyHold(t *testing.T) {
	var (
		tab   Table
		mu    sync.RWMutex
		all   sync.WaitGroup
		ended = make(chan struct{})
	)
	record := func(n uint64) []byte {
		return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, n), 1+int(n%9))
	}
	for n := range uint64(100) {
		tab.Add(n, record(n))
	}
	for range 4 {
		all.Go(func() {
			for n := uint64(0); ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				mu.RLock()
				var got []byte
				if i := tab.Find(n % 100); i >= 0 {
					tab.Use(i)
					got = tab.Record(i)
				}
				mu.RUnlock()
				if got != nil && !bytes.Equal(got, record(binary.LittleEndian.Uint64(got))) {
					t.Errorf("a torn record: %v", got)
					return
				}
			}
		})
	}
	for n := range uint64(20_000) {
		mu.Lock()
		switch i := tab.Find(n % 100); {
		case i < 0:
			tab.Add(n%100, record(n))
		case n%7 == 0:
			tab.Remove(tab.Unused())
		default:
			tab.Replace(i, record(n))
		}
		mu.Unlock()
	}
	close(ended)
	all.Wait()
}

func TestReadingDoesNotAllocate(t *testing.T) {
	var tab Table
	for hash := range uint64(100) {
		tab.Add(hash, []byte("some record"))
	}
	hash, read := uint64(0), 0
	if n := testing.AllocsPerRun(1000, func() {
		hash = (hash + 1) % 100
		i := tab.Find(hash)
		tab.Use(i)
		read += len(tab.Record(i))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// scannable returns how much of the heap a collection looks through, in bytes.
func scannable() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/scan/heap:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestTheCollectorHasNextToNothingToLookThrough(t *testing.T) {
	const n = 100_000
	before := scannable()
	var tab Table
	for i := range n {
		tab.Add(mix(i), make([]byte, 100))
	}
	if grown := int64(scannable() - before); grown > n {
		t.Errorf("%d bytes more to look through for %d records", grown, n)
	}
	runtime.KeepAlive(&tab)
}

func BenchmarkTable(b *testing.B) {
	const n = 100_000
	var tab Table
	record := make([]byte, 200)
	for i := range n {
		tab.Add(mix(i), record)
	}
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i = (i + 7919) % n {
			if len(tab.Record(tab.Find(mix(i)))) == 0 {
				b.Fatal("a record is gone")
			}
		}
	})
	b.Run("replace", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i = (i + 7919) % n {
			tab.Replace(tab.Find(mix(i)), record)
		}
	})
}
