package stream

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// NewID returns a new id for a message: a UUID of version 7 (RFC 9562), which begins with
// the time.
func NewID() string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(raw[6:]) // never fails
	raw[6] = raw[6]&0x0f | 0x70
	raw[8] = raw[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:8], raw[:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:], raw[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
