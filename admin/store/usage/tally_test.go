package usage

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

func TestATallyIsReadAsItWasWritten(t *testing.T) {
	var in tally
	want := map[int]int64{0: 1, 1: 127, 2: 128, 500: 1 << 40, 90_000: math.MaxInt64}
	for number, calls := range want {
		in.add(number, calls)
	}
	var out tally
	for range 2 {
		if err := out.unpack(in.pack()); err != nil {
			t.Fatal(err)
		}
	}
	for number, calls := range out {
		twice := 2 * want[number]
		if want[number] == math.MaxInt64 {
			twice = math.MaxInt64
		}
		if calls != twice {
			t.Errorf("%d called %d times, want %d", number, calls, twice)
		}
	}
	if n := len(tally{}.pack()); n != 0 {
		t.Errorf("nobody takes %d bytes", n)
	}
}

func TestABrokenTallyIsAnError(t *testing.T) {
	for _, packed := range [][]byte{
		{1},
		{0, 5},
		{0x80},
		{1, 0x80},
		bytes.Repeat([]byte{0xff}, 11),
		{0xff, 0xff, 0xff, 0xff, 0x7f, 1},
		append([]byte{1}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
	} {
		if err := new(tally).unpack(packed); err == nil {
			t.Errorf("%x is read", packed)
		}
	}
}

// FuzzTally reads any bytes: what can be read comes to what it is written as.
func FuzzTally(f *testing.F) {
	f.Add([]byte{1, 5, 1, 7})
	f.Add([]byte{0x80, 0x80, 1, 7})
	f.Fuzz(func(t *testing.T, packed []byte) {
		var in, out tally
		if len(packed) > 64 || in.unpack(packed) != nil {
			return
		}
		if err := out.unpack(in.pack()); err != nil {
			t.Fatal(err)
		}
		in, out = slices.DeleteFunc(in, func(n int64) bool { return n == 0 }), slices.DeleteFunc(out, func(n int64) bool { return n == 0 })
		if !slices.Equal(in, out) {
			t.Errorf("%v, then %v", in, out)
		}
	})
}

// BenchmarkTally adds up a month of a large organisation.
func BenchmarkTally(b *testing.B) {
	var one tally
	for n := range largeKeys {
		one.add(n, int64(1+n*11%2000))
	}
	packed := one.pack()
	for b.Loop() {
		var all tally
		for range 53 {
			if err := all.unpack(packed); err != nil {
				b.Fatal(err)
			}
		}
	}
}
