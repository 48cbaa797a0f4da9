package credential

import (
	"encoding/binary"
	"math/bits"
)

// murmur32 is MurmurHash3_x86_32 with seed 0.
func murmur32(data []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h, n := uint32(0), uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		h ^= bits.RotateLeft32(binary.LittleEndian.Uint32(data)*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var tail [4]byte
	copy(tail[:], data)
	h ^= bits.RotateLeft32(binary.LittleEndian.Uint32(tail[:])*c1, 15) * c2
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

const (
	c1 = 0x87c37b91114253d5
	c2 = 0x4cf5ad432745937f
)

// murmur128 is MurmurHash3_x64_128 with seed 0.
func murmur128(data []byte) (h1, h2 uint64) {
	n := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= first(binary.LittleEndian.Uint64(data))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= second(binary.LittleEndian.Uint64(data[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], data)
	h2 ^= second(binary.LittleEndian.Uint64(tail[8:]))
	h1 ^= first(binary.LittleEndian.Uint64(tail[:]))
	h1 ^= n
	h2 ^= n
	h1 += h2
	h2 += h1
	h1, h2 = mix(h1), mix(h2)
	h1 += h2
	return h1, h2 + h1
}

func first(k uint64) uint64  { return bits.RotateLeft64(k*c1, 31) * c2 }
func second(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }

func mix(k uint64) uint64 {
	k = (k ^ k>>33) * 0xff51afd7ed558ccd
	k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
