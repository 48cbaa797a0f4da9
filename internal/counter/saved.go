package counter

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// What is saved, little endian.
//
//	file    = "sluice counters 1\n", u64 generation, u32 its CRC-32C, frame…
//	frame   = u32 length of records, u32 CRC-32C of records, records
//	record  = u8 kind, u16 length of key, key, i64 used, i64 end, i64 period,
//	          and for a rate u16 groups, per group i64 last, i64 calls
//
// Times are microseconds, end and last since 1970. A kind of savedGone says that
// the key has no counter any more. A frame of no records ends a full file; a
// journal has none, it grows. Records replace earlier ones of the same key.
const (
	savedMagic = "sluice counters 1\n"
	savedHead  = len(savedMagic) + 12
	savedGone  = 255
	frameHead  = 8
	frameMost  = 64 << 20 // a longer one is damage, not data
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errTorn    = errors.New("ends in the middle of a frame")
	errDamaged = errors.New("does not match its checksum")
	errMagic   = errors.New("is not a file of counters of this version")
	errRecord  = errors.New("a record cannot be read")
)

func appendHead(b []byte, generation uint64) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, savedMagic...), generation)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[len(b)-8:], castagnoli))
}

// appendFrame frames records, which may be empty.
func appendFrame(b, records []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(records)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(records, castagnoli))
	return append(b, records...)
}

// appendRecord packs a cell; nil for a key that has none any more.
func appendRecord(b []byte, key string, c *cell) []byte {
	if c == nil {
		c = &cell{kind: savedGone}
	}
	b = append(b, byte(c.kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	for _, n := range [...]int64{c.used, c.end, c.period} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	if c.kind != Rate {
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.window.groups)))
	for _, g := range c.window.groups {
		b = binary.LittleEndian.AppendUint64(b, uint64(g.last))
		b = binary.LittleEndian.AppendUint64(b, uint64(g.calls))
	}
	return b
}

// readHead returns a file's generation.
func readHead(r io.Reader) (uint64, error) {
	var head [savedHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, errTorn
	}
	if string(head[:len(savedMagic)]) != savedMagic {
		return 0, errMagic
	}
	generation := head[len(savedMagic):]
	if crc32.Checksum(generation[:8], castagnoli) != binary.LittleEndian.Uint32(generation[8:]) {
		return 0, errDamaged
	}
	return binary.LittleEndian.Uint64(generation), nil
}

// readFrame returns the records of the next frame, using buffer; io.EOF after
// the last whole one.
func readFrame(r io.Reader, buffer []byte) ([]byte, error) {
	var head [frameHead]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n == 0 && err == io.EOF {
			return nil, io.EOF
		}
		return nil, errTorn
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
		return nil, errTorn
	}
	if crc32.Checksum(buffer, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errDamaged
	}
	return buffer, nil
}

// readRecord takes the first record off b.
func readRecord(b []byte) (key string, c *cell, rest []byte, err error) {
	const fixed = 3 * 8
	if len(b) < 3 {
		return "", nil, nil, errRecord
	}
	c = &cell{kind: Kind(b[0])}
	length := int(binary.LittleEndian.Uint16(b[1:]))
	if b = b[3:]; len(b) < length+fixed || c.kind > Rate && c.kind != savedGone {
		return "", nil, nil, errRecord
	}
	key, b = string(b[:length]), b[length:]
	c.used = int64(binary.LittleEndian.Uint64(b))
	c.end = int64(binary.LittleEndian.Uint64(b[8:]))
	c.period = int64(binary.LittleEndian.Uint64(b[16:]))
	if b = b[fixed:]; c.kind != Rate {
		return key, c, b, nil
	}
	if len(b) < 2 {
		return "", nil, nil, errRecord
	}
	groups := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; len(b) < 16*groups {
		return "", nil, nil, errRecord
	}
	for range groups {
		g := group{last: int64(binary.LittleEndian.Uint64(b)), calls: int64(binary.LittleEndian.Uint64(b[8:]))}
		c.window.groups = append(c.window.groups, g)
		c.window.total += g.calls
		b = b[16:]
	}
	return key, c, b, nil
}
