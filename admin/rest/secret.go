package rest

import (
	"crypto/rand"
	"crypto/sha256"
)

// Alphanumeric is what credentials consist of that are made here, behind their
// prefix.
const Alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// KeyDigits is how many of them hold 256 random bits.
const KeyDigits = 43

// RandomText returns n random characters of an alphabet of at most 256.
func RandomText(alphabet string, n int) string {
	text := make([]byte, 0, n)
	var random [64]byte
	// Beyond the last multiple some characters would come more often.
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

// HashOf is how a credential of 256 random bits is stored: neither salt nor cost
// would add anything.
func HashOf(credential []byte) []byte {
	sum := sha256.Sum256(credential)
	return sum[:]
}
