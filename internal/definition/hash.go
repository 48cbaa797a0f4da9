package definition

import (
	"crypto/sha256"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// ContentHash returns a hash of what the definition says. Equal definitions have
// equal hashes, whatever the order and layout of the JSON they were read from.
func (a *API) ContentHash() [16]byte { return contentHash(a) }

// ContentHash returns a hash of what the policy says.
func (p *Policy) ContentHash() [16]byte { return contentHash(p) }

// contentHash hashes the canonical form. An object that cannot be written, such as
// one with a raw member that is not JSON, hashes by the error of writing it.
func contentHash[T any](one *T) [16]byte {
	canonical, err := object.Marshal(one)
	if err != nil {
		canonical = []byte(err.Error())
	}
	sum := sha256.Sum256(canonical)
	return [16]byte(sum[:])
}
