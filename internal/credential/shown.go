package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Shown returns the form of an identity that users may see: a hash of it if it is the
// key itself, otherwise the identity, from which the key cannot be derived.
func (h *Hasher) Shown(identity string) string {
	if h.Algorithm != None || identity == "" || strings.HasPrefix(identity, orgPrefix) {
		return identity
	}
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])
}

// KeepsKeys reports whether keys are stored in clear.
func (h *Hasher) KeepsKeys() bool { return h.Algorithm == None }
