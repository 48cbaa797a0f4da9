package gateway

import (
	"encoding/binary"
	"fmt"
	"testing"
)

func TestHexIsThatOfTheLibrary(t *testing.T) {
	bits := uint32(1)
	for range 100_000 {
		bits = bits*1664525 + 1013904223
		var got [8]byte
		binary.BigEndian.PutUint64(got[:], hex(bits))
		if want := fmt.Sprintf("%08x", bits); string(got[:]) != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestEachRequestHasAnIDOfItsOwn(t *testing.T) {
	seen := make(map[[32]byte]bool)
	for range 1000 {
		var id [32]byte
		setID(&id)
		if seen[id] {
			t.Fatalf("%s twice", id)
		}
		seen[id] = true
	}
}

func BenchmarkSetID(b *testing.B) {
	var id [32]byte
	for b.Loop() {
		setID(&id)
	}
}
