package gateway

import (
	"bytes"
	"math/rand/v2"
)

// setID fills a request id. It identifies a request; it protects nothing, so
// that a cheap source will do.
func setID(id *[32]byte) {
	const digits = "0123456789abcdef"
	for half := 0; half < 32; half += 16 {
		bits := rand.Uint64()
		for i := half; i < half+16; i++ {
			id[i] = digits[bits&15]
			bits >>= 4
		}
	}
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
