package counter

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Files of counters, little endian:
//
//	file   = magic, u64 generation, u32 its CRC-32C, frame…
//	frame  = u32 length of records, u32 CRC-32C of records, record…
//	record = u8 kind, u16 length of key, key, i64 used, i64 end, i64 period,
//	         and for a rate u16 groups, per group i64 last, i64 calls
//
// Times are microseconds; end and last count from 1970. A kind of kindRemoved says
// that the key has no counter any more. A frame without records ends a full file; a
// journal, which grows, has none. Records replace earlier ones of the same key.
const (
	magic     = "sluice counters 1\n"
	headSize  = len(magic) + 12
	frameHead = 8
	frameMost = 64 << 20 // bytes; a longer frame is damage, not data

	kindRemoved = 255
	keyMost     = 1<<16 - 1 // bytes of a key that fit a record
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errTorn    = errors.New("ends in the middle of a frame") // as a crash may leave it
	errDamaged = errors.New("does not match its checksum")
	errMagic   = errors.New("is not a file of counters of this version")
	errRecord  = errors.New("a record cannot be read")
)

// appendHead begins a file of a generation.
func appendHead(b []byte, generation uint64) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, magic...), generation)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[len(b)-8:], castagnoli))
}

// appendFrame frames records, which may be empty.
func appendFrame(b, records []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(records)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(records, castagnoli))
	return append(b, records...)
}

// readHead returns a file's generation.
func readHead(r io.Reader) (uint64, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, errTorn
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

// readFrame returns the records of the next frame, in buffer if they fit; io.EOF
// after the last whole one.
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

// appendRecord packs a cell; nil for a key that has none any more.
func appendRecord(b []byte, key string, c *cell) []byte {
	if c == nil {
		c = &cell{kind: kindRemoved}
	}
	b = append(b, byte(c.kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	end := c.edge
	if c.kind == Rate {
		end = c.newest.last + c.period
	}
	for _, n := range [...]int64{c.used, end, c.period} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	if c.kind == Rate {
		b = appendGroups(b, c)
	}
	return b
}

func appendGroups(b []byte, c *cell) []byte {
	older := c.older.len()
	n := older
	if c.newest.calls > 0 {
		n++
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(n))
	for i := range n {
		g := c.newest
		if i < older {
			g = *c.older.at(i)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(g.last))
		b = binary.LittleEndian.AppendUint64(b, uint64(g.calls))
	}
	return b
}

// readRecord reads the first record of b.
func readRecord(b []byte) (key string, c *cell, rest []byte, err error) {
	const fixed = 3 * 8
	if len(b) < 3 {
		return "", nil, nil, errRecord
	}
	c = &cell{kind: Kind(b[0])}
	length := int(binary.LittleEndian.Uint16(b[1:]))
	if b = b[3:]; len(b) < length+fixed || c.kind > Rate && c.kind != kindRemoved {
		return "", nil, nil, errRecord
	}
	key, b = string(b[:length]), b[length:]
	c.used = int64(binary.LittleEndian.Uint64(b))
	c.edge = int64(binary.LittleEndian.Uint64(b[8:]))
	c.period = int64(binary.LittleEndian.Uint64(b[16:]))
	if b = b[fixed:]; c.kind != Rate {
		return key, c, b, nil
	}
	b, err = c.readGroups(b)
	return key, c, b, err
}

// readGroups reads the groups of a rate from b. They, and not used and edge, determine
// what is counted and until when.
func (c *cell) readGroups(b []byte) (rest []byte, err error) {
	if len(b) < 2 {
		return nil, errRecord
	}
	groups := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; len(b) < 16*groups {
		return nil, errRecord
	}
	c.reset()
	for range groups {
		g := group{last: int64(binary.LittleEndian.Uint64(b)), calls: int64(binary.LittleEndian.Uint64(b[8:]))}
		if g.calls < 1 || g.calls > MaxRate || g.last < c.newest.last {
			return nil, errRecord
		}
		c.push(g)
		c.used += g.calls
		b = b[16:]
	}
	return b, nil
}
