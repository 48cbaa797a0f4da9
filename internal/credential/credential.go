// Package credential creates API keys, and maps a credential to the identities under
// which its session may be stored. A mistyped key that was created here is recognised
// without a look-up in the store.
package credential

import (
	"crypto/rand"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// DefaultPrefix is what keys begin with unless configured otherwise.
const DefaultPrefix = "slk_"

const (
	secretBytes = 32
	secretChars = 43 // base62 digits that hold secretBytes
	sumChars    = 6  // base62 digits that hold a CRC-32
)

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Generate returns a new key: prefix, 32 random bytes and a checksum, both in base62.
// It is the only copy: a store has its hash.
func Generate(prefix string) string {
	var secret [secretBytes]byte
	rand.Read(secret[:]) // never fails: the runtime ends the process first
	key := make([]byte, 0, len(prefix)+secretChars+sumChars)
	key = append(key, prefix...)
	key = appendBase62(key, secret)
	return string(appendSum(key, crc32.ChecksumIEEE(key)))
}

// Check reports whether token may be a key. It is false for a token with the prefix
// and a wrong checksum, so that typing errors and guesses cost no look-up. A token
// without the prefix may be a key that was imported or has a custom id, unless it is
// the identity of an organisation. With an empty prefix nothing else can be checked.
// Check does not allocate.
func Check(prefix string, token []byte) bool {
	if HasPrefix(orgPrefix, token) {
		return false
	}
	if !HasPrefix(prefix, token) {
		return true
	}
	body := len(token) - sumChars
	if body != len(prefix)+secretChars {
		return false
	}
	var sum [sumChars]byte
	return string(appendSum(sum[:0], crc32.ChecksumIEEE(token[:body]))) == string(token[body:])
}

// HasPrefix reports whether token begins like a key made by Generate; it is false if
// the prefix is empty. It does not allocate.
func HasPrefix(prefix string, token []byte) bool {
	return prefix != "" && len(token) >= len(prefix) && string(token[:len(prefix)]) == prefix
}

// appendBase62 appends secret as a number of secretChars digits.
func appendBase62(dst []byte, secret [secretBytes]byte) []byte {
	var words [secretBytes / 8]uint64 // most significant first
	for i := range words {
		words[i] = binary.BigEndian.Uint64(secret[8*i:])
	}
	var out [secretChars]byte
	for i := len(out) - 1; i >= 0; i-- {
		var rest uint64
		for w := range words {
			words[w], rest = bits.Div64(rest, words[w], uint64(len(digits)))
		}
		out[i] = digits[rest]
	}
	return append(dst, out[:]...)
}

func appendSum(dst []byte, sum uint32) []byte {
	var out [sumChars]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = digits[sum%uint32(len(digits))]
		sum /= uint32(len(digits))
	}
	return append(dst, out[:]...)
}
