package counter

import (
	"encoding/binary"
	"errors"

	"github.com/sluicegate/sluice/internal/counter/rings"
)

// What is saved, in frames, little endian.
//
//	record  = u8 kind, u16 length of key, key, i64 used, i64 end, i64 period,
//	          and for a rate u16 groups, per group i64 last, i64 calls
//
// Times are microseconds, end and last since 1970. A kind of savedGone says that
// the key has no counter any more. A frame of no records ends a full file; a
// journal has none, it grows. Records replace earlier ones of the same key.
const savedGone = 255

var errRecord = errors.New("a record cannot be read")

// appendRecord packs a cell; nil for a key that has none any more.
func appendRecord[K string | []byte](b []byte, r *rings.Rings, key K, c *cell) []byte {
	if c == nil {
		c = &cell{kind: savedGone}
	}
	b = append(b, byte(c.kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	end := c.edge
	if c.kind == Rate {
		end = c.newest.Last + c.period
	}
	for _, n := range [...]int64{c.used, end, c.period} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	if c.kind == Rate {
		b = appendGroups(b, r, c)
	}
	return b
}

func appendGroups(b []byte, r *rings.Rings, c *cell) []byte {
	ring := r.Of(c.older)
	older := ring.Len()
	n := older
	if c.newest.Calls > 0 {
		n++
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(n))
	for i := range n {
		g := c.newest
		if i < older {
			g = *ring.At(i)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(g.Last))
		b = binary.LittleEndian.AppendUint64(b, uint64(g.Calls))
	}
	return b
}

// readRecord takes the first record off b. Groups of the cell stand in r.
func readRecord(b []byte, r *rings.Rings) (key string, c *cell, rest []byte, err error) {
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
	c.edge = int64(binary.LittleEndian.Uint64(b[8:]))
	c.period = int64(binary.LittleEndian.Uint64(b[16:]))
	if b = b[fixed:]; c.kind != Rate {
		return key, c, b, nil
	}
	b, err = c.readGroups(b, r)
	return key, c, b, err
}

// readGroups takes the groups of a rate off b, which say what is counted, and
// until when.
func (c *cell) readGroups(b []byte, r *rings.Rings) (rest []byte, err error) {
	if len(b) < 2 {
		return nil, errRecord
	}
	groups := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; len(b) < 16*groups {
		return nil, errRecord
	}
	c.clear(r)
	for range groups {
		g := rings.Group{Last: int64(binary.LittleEndian.Uint64(b)), Calls: int64(binary.LittleEndian.Uint64(b[8:]))}
		if g.Calls < 1 || g.Calls > MaxRate || g.Last < c.newest.Last {
			return nil, errRecord
		}
		c.begin(r, g)
		c.used += g.Calls
		b = b[16:]
	}
	return b, nil
}
