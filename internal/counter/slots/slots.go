// Package slots knows where a cluster keeps a key.
package slots

import "strings"

// Count is how many slots a cluster spreads its keys over.
const Count = 16384

// Tag is the part of a key that decides its slot: what stands in the first
// pair of braces, or all of it when there is none or it is empty.
func Tag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key[open+1 : open+1+end]
		}
	}
	return key
}

// Of returns the slot, below Count, where a cluster keeps a key: CRC-16/XMODEM of its hash tag.
func Of(key string) int {
	var crc uint16
	tag := Tag(key)
	for i := range len(tag) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^tag[i]]
	}
	return int(crc) % Count
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
