package definition

import (
	"crypto/sha256"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// ContentHash tells definitions apart by what they say: equal ones have equal
// hashes, whatever the order and layout of the JSON they were read from.
func (a *API) ContentHash() [16]byte { return contentHash(a) }

// ContentHash tells policies apart by what they say.
func (p *Policy) ContentHash() [16]byte { return contentHash(p) }

// contentHash is over the canonical form. What cannot be written, such as a raw
// member that someone set to something else than JSON, hashes by its error:
// Validate and MarshalJSON tell of it.
func contentHash[T any](one *T) [16]byte {
	canonical, err := object.Marshal(one)
	if err != nil {
		canonical = []byte(err.Error())
	}
	sum := sha256.Sum256(canonical)
	return [16]byte(sum[:])
}
