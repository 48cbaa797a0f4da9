package gateway

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// setID fills a request id. It identifies a request; it protects nothing, so
// that a cheap source will do.
func setID(id *[32]byte) {
	high, low := rand.Uint64(), rand.Uint64()
	binary.LittleEndian.PutUint64(id[0:], hex(uint32(high)))
	binary.LittleEndian.PutUint64(id[8:], hex(uint32(high>>32)))
	binary.LittleEndian.PutUint64(id[16:], hex(uint32(low)))
	binary.LittleEndian.PutUint64(id[24:], hex(uint32(low>>32)))
}

// hex returns the eight digits of bits, one in each byte, the lowest first.
func hex(bits uint32) uint64 {
	const ones = 0x0101010101010101
	w := uint64(bits)
	w = (w | w<<16) & 0x0000ffff0000ffff
	w = (w | w<<8) & 0x00ff00ff00ff00ff
	w = (w | w<<4) & (ones * 0xf)
	letters := (w + ones*6) >> 4 & ones // 1 where the digit is above 9
	return w + ones*'0' + letters*('a'-'0'-10)
}

var (
	controlPrefix = []byte("/svc/")
	healthPaths   = [...]string{"/hello", "/ready", "/live"}
)

// isControl tells whether a path belongs to the gateway itself.
func isControl(path []byte) bool {
	if bytes.HasPrefix(path, controlPrefix) || string(path) == "/svc" {
		return true
	}
	for _, health := range healthPaths {
		if string(path) == health {
			return true
		}
	}
	return false
}
