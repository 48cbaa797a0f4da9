package kafka

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"github.com/sluicegate/sluice/gateway/stream"
)

// markOf returns the mark of positions in a topic, by the id that the broker has given it.
// Brokers that give no ids have the same mark for all topics.
func markOf(topic [16]byte) uint32 { return crc32.ChecksumIEEE(topic[:]) }

// ID implements stream.Log: in base64url, the mark, the lowest of the offsets, and for each
// partition how much higher its offset is, as variable-length integers.
func (*Log) ID(p *stream.Position) string {
	if len(p.Next) == 0 {
		return ""
	}
	lowest := slices.Min(p.Next)
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 64), p.Mark)
	b = binary.AppendUvarint(b, uint64(lowest))
	for _, next := range p.Next {
		b = binary.AppendUvarint(b, uint64(next-lowest))
	}
	if base64.RawURLEncoding.EncodedLen(len(b)) > stream.MaxPositionID {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Position implements stream.Log.
func (l *Log) Position(id string) (*stream.Position, bool) {
	if len(id) > stream.MaxPositionID {
		return nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(b) < 4 {
		return nil, false
	}
	p := &stream.Position{Mark: binary.BigEndian.Uint32(b)}
	lowest, n := binary.Uvarint(b[4:])
	if n <= 0 || lowest > math.MaxInt64 {
		return nil, false
	}
	for rest := b[4+n:]; len(rest) > 0; {
		more, n := binary.Uvarint(rest)
		if n <= 0 || more > math.MaxInt64-lowest {
			return nil, false
		}
		rest = rest[n:]
		p.Next = append(p.Next, int64(lowest+more))
	}
	return p, len(p.Next) > 0 && l.ID(p) == id // one position has one id
}
