package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Shown returns the form of an identity that users may see: a hash of it if it is the
// key itself or a legacy hash, otherwise the identity, from which the key cannot be
// derived.
func (h *Hasher) Shown(identity string) string {
	if h.Algorithm != None && !IsLegacy(identity) || identity == "" || strings.HasPrefix(identity, orgPrefix) {
		return identity
	}
	return Masked(identity)
}

// Listed is Shown for operators, who may see keys in clear.
func (h *Hasher) Listed(identity string) string {
	if h.Algorithm == None {
		return identity
	}
	return h.Shown(identity)
}

// Masked returns what stands for an identity where the identity itself may not be seen:
// its SHA-256 in hexadecimal.
func Masked(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])
}

// KeepsKeys reports whether keys are stored in clear.
func (h *Hasher) KeepsKeys() bool { return h.Algorithm == None }

// IsLegacy reports whether an identity is a hash of a legacy algorithm. A token that has
// the same hash is easily found, so nobody may see it.
func IsLegacy(identity string) bool {
	_, legacy := LegacyOf(identity)
	return legacy
}

// LegacyOf returns the legacy algorithm of an identity, which its length shows, and
// whether there is one.
func LegacyOf(identity string) (Algorithm, bool) {
	if strings.Trim(identity, "0123456789abcdef") != "" {
		return 0, false
	}
	switch len(identity) {
	case 8:
		return Murmur32, true
	case 16:
		return Murmur64, true
	case 32:
		return Murmur128, true
	}
	return 0, false
}
