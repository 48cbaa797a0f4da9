// Package slab holds many small records in memory that the garbage collector
// does not look through: a million of them cost a collection what a few hundred
// large blocks cost.
package slab

import (
	"encoding/binary"
	"iter"
	"sync/atomic"
)

// A Table finds records by a hash of the caller's, which several may have, and
// whose lowest bits should differ. A record is shorter than 2 GiB. The zero value
// is empty. Readers may read at the same time; a change needs the
// table for itself, which is the caller's to see to.
//
// Records are bytes that never change where they lie: what Record returned stays
// as it was, whatever becomes of the table, and may be read without any lock.
type Table struct {
	places []place // as many as a power of two, at most three quarters taken
	n      int     // taken
	hand   int     // of a clock that goes round the places
	chunks chunks
}

// A place is where a record is noted. It has no pointer: the collector passes by.
type place struct {
	hash  uint64
	chunk uint32 // from 1; 0: free
	at    uint32 // where the record begins in its chunk; the highest bit: used since the hand last passed
}

const (
	usedBit     = 1 << 31
	leastPlaces = 8
)

// Len returns the number of records.
func (t *Table) Len() int { return t.n }

func (t *Table) next(i int) int { return (i + 1) & (len(t.places) - 1) }

func (t *Table) home(hash uint64) int { return int(hash & uint64(len(t.places)-1)) }

// Find returns the place of a record with that hash, or -1. A place is good
// until the table changes.
func (t *Table) Find(hash uint64) int {
	if t.n == 0 {
		return -1
	}
	return t.from(t.home(hash), hash)
}

// Another returns the place of the next record with the hash of the one at place,
// or -1.
func (t *Table) Another(place int) int { return t.from(t.next(place), t.places[place].hash) }

func (t *Table) from(i int, hash uint64) int {
	for ; t.places[i].chunk != 0; i = t.next(i) {
		if t.places[i].hash == hash {
			return i
		}
	}
	return -1
}

// Hash returns the hash of the record at a place.
func (t *Table) Hash(place int) uint64 { return t.places[place].hash }

// Record returns the record at a place. The caller must not change it.
func (t *Table) Record(place int) []byte {
	p := &t.places[place]
	return t.chunks.record(p.chunk, atomic.LoadUint32(&p.at)&^usedBit)
}

// Use spares the record at a place when the hand passes next. It may be called
// beside other readers.
func (t *Table) Use(place int) {
	if at := &t.places[place].at; atomic.LoadUint32(at)&usedBit == 0 { // most often it is set: a write would cost every core its copy
		atomic.OrUint32(at, usedBit)
	}
}

// Add puts a copy of a record in, beside those that have the same hash.
func (t *Table) Add(hash uint64, record []byte) {
	if (t.n+1)*4 > len(t.places)*3 {
		t.resize(max(2*len(t.places), leastPlaces))
	}
	p := place{hash: hash}
	p.chunk, p.at = t.write(hash, record)
	t.put(p)
	t.n++
}

// write puts a copy of a record into a chunk, and returns where.
func (t *Table) write(hash uint64, record []byte) (chunk, at uint32) {
	for !t.chunks.fits(record) {
		if full := t.chunks.begin(record); full != 0 && t.chunks.isWasteful(full) {
			t.move(full)
		}
	}
	return t.chunks.add(hash, record)
}

func (t *Table) put(p place) {
	i := t.home(p.hash)
	for t.places[i].chunk != 0 {
		i = t.next(i)
	}
	t.places[i] = p
}

// Replace puts a copy of a record in the place of another one.
func (t *Table) Replace(place int, record []byte) {
	p := &t.places[place]
	number, at := t.write(p.hash, record)
	old := *p // not before: writing may have moved it
	p.chunk, p.at = number, at|old.at&usedBit
	t.drop(old.chunk, old.at&^usedBit)
}

// Remove takes the record at a place out.
func (t *Table) Remove(place int) {
	gone := t.places[place]
	t.free(place)
	t.drop(gone.chunk, gone.at&^usedBit)
	if t.n*8 < len(t.places) && len(t.places) > leastPlaces {
		t.resize(len(t.places) / 2)
	}
}

// free frees a taken place. Those behind it that would no longer be found move
// up, one of them perhaps to that very place.
func (t *Table) free(i int) {
	last := len(t.places) - 1
	for j := t.next(i); t.places[j].chunk != 0; j = t.next(j) {
		if (j-t.home(t.places[j].hash))&last >= (j-i)&last {
			t.places[i] = t.places[j]
			i = j
		}
	}
	t.places[i] = place{}
	t.n--
}

func (t *Table) resize(n int) {
	old := t.places
	t.places, t.hand = make([]place, n), 0
	for _, p := range old {
		if p.chunk != 0 {
			t.put(p)
		}
	}
}

// drop takes note that a record is no longer wanted.
func (t *Table) drop(chunk, at uint32) {
	t.chunks.drop(chunk, at)
	if t.chunks.isWasteful(chunk) {
		t.move(chunk)
	}
}

// move moves the records of a chunk that are wanted to another one, and gives its
// memory back.
func (t *Table) move(chunk uint32) {
	for hash, from := range t.chunks.each(chunk) {
		i := t.Find(hash)
		for i >= 0 && (t.places[i].chunk != chunk || t.places[i].at&^usedBit != from) {
			i = t.Another(i)
		}
		if i < 0 {
			continue // it is no longer wanted
		}
		number, at := t.write(hash, t.chunks.record(chunk, from))
		p := &t.places[i]
		p.chunk, p.at = number, at|p.at&usedBit
	}
	t.chunks.release(chunk)
}

// Unused returns the place that the hand of the clock comes to next whose record
// was not used since it came by last; after one round all have been spared once.
// There must be a record.
func (t *Table) Unused() int {
	for ; ; t.hand = t.next(t.hand) {
		p := &t.places[t.hand]
		if p.chunk == 0 {
			continue
		}
		if p.at&usedBit == 0 {
			return t.hand
		}
		p.at &^= usedBit
	}
}

// All yields every record with its hash. The table must not change meanwhile.
func (t *Table) All() iter.Seq2[uint64, []byte] {
	return func(yield func(hash uint64, record []byte) bool) {
		for i := range t.places {
			if t.places[i].chunk != 0 && !yield(t.places[i].hash, t.Record(i)) {
				return
			}
		}
	}
}

// Sweep takes out the records that stale says it of.
func (t *Table) Sweep(stale func(record []byte) bool) {
	for i, size := 0, len(t.places); i < len(t.places); {
		if t.places[i].chunk == 0 || !stale(t.Record(i)) {
			i++
			continue
		}
		t.Remove(i) // what moves up to it is looked at next
		if size != len(t.places) {
			i, size = 0, len(t.places) // all have moved
		}
	}
}

// Size returns the bytes of memory that the table holds.
func (t *Table) Size() int { return len(t.places)*16 + t.chunks.size }

// headSize is what stands before each record in a chunk: its hash and length.
const headSize = 8 + 4

func putHead(b []byte, hash uint64, length int) []byte {
	b = binary.LittleEndian.AppendUint64(b, hash)
	return binary.LittleEndian.AppendUint32(b, uint32(length))
}

func head(b []byte) (hash uint64, length int) {
	return binary.LittleEndian.Uint64(b), int(binary.LittleEndian.Uint32(b[8:]))
}
