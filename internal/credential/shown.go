package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Shown returns what people read in place of an identity: a hash of it where it is
// the key itself, and otherwise the identity, from which nobody finds the key.
func (h *Hasher) Shown(identity string) string {
	if h.Algorithm != None || identity == "" || strings.HasPrefix(identity, orgPrefix) {
		return identity
	}
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])
}
