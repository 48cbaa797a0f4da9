// Package frames is how counters lie in a file: in frames with checksums, behind
// a head that says which file it is.
//
// Little endian:
//
//	file  = magic, u64 generation, u32 its CRC-32C, frame…
//	frame = u32 length of records, u32 CRC-32C of records, records
package frames

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

const (
	magic     = "sluice counters 1\n"
	headSize  = len(magic) + 12
	frameHead = 8
	frameMost = 64 << 20 // a longer one is damage, not data
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	// ErrTorn says that a file ends where a crash may have ended it.
	ErrTorn = errors.New("ends in the middle of a frame")

	errDamaged = errors.New("does not match its checksum")
	errMagic   = errors.New("is not a file of counters of this version")
)

// AppendHead begins a file of a generation.
func AppendHead(b []byte, generation uint64) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, magic...), generation)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[len(b)-8:], castagnoli))
}

// AppendFrame frames records, which may be empty.
func AppendFrame(b, records []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(records)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(records, castagnoli))
	return append(b, records...)
}

// ReadHead returns a file's generation.
func ReadHead(r io.Reader) (uint64, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, ErrTorn
	}
	if string(head[:len(magic)]) != magic {
		return 0, errMagic
	}
	generation := head[len(magic):]
	if crc32.Checksum(generation[:8], castagnoli) != binary.LittleEndian.Uint32(generation[8:]) {
		return 0, errDamaged
	}
	return binary.LittleEndian.Uint64(generation), nil
}

// ReadFrame returns the records of the next frame, using buffer; io.EOF after
// the last whole one.
func ReadFrame(r io.Reader, buffer []byte) ([]byte, error) {
	var head [frameHead]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n == 0 && err == io.EOF {
			return nil, io.EOF
		}
		return nil, ErrTorn
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > frameMost {
		return nil, errDamaged
	}
	if uint32(cap(buffer)) < length {
		buffer = make([]byte, length)
	}
	buffer = buffer[:length]
	if _, err := io.ReadFull(r, buffer); err != nil {
		return nil, ErrTorn
	}
	if crc32.Checksum(buffer, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errDamaged
	}
	return buffer, nil
}
