package rest

import (
	"crypto/rand"
	"crypto/sha256"
)

// Alphanumeric is the alphabet of generated credentials, after their prefix.
const Alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// KeyDigits is the number of alphanumeric characters that hold 256 random bits.
const KeyDigits = 43

// RandomText returns n random characters of an alphabet of at most 256.
func RandomText(alphabet string, n int) string {
	text := make([]byte, 0, n)
	var random [64]byte
	// Values from the last multiple on would make some characters more likely.
	fair := 256 / len(alphabet) * len(alphabet)
	for len(text) < n {
		_, _ = rand.Read(random[:]) // documented never to fail
		for _, b := range random {
			if int(b) < fair && len(text) < n {
				text = append(text, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(text)
}

// HashOf returns the SHA-256 under which a credential of 256 random bits is stored.
// Salt and cost would add nothing.
func HashOf(credential []byte) []byte {
	sum := sha256.Sum256(credential)
	return sum[:]
}
