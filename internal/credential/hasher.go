package credential

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Algorithm is how the identity, under which a session is stored, is derived from a
// key.
type Algorithm uint8

const (
	SHA256    Algorithm = iota // SHA256 gives 64 hex digits.
	None                       // None keeps the key in clear: for a migration only.
	Murmur32                   // Murmur32 gives 8 hex digits; imported keys only.
	Murmur64                   // Murmur64 gives 16 hex digits; imported keys only.
	Murmur128                  // Murmur128 gives 32 hex digits; imported keys only.
)

var names = [...]string{"sha256", "none", "murmur32", "murmur64", "murmur128"}

// ParseAlgorithm returns the algorithm of that name.
func ParseAlgorithm(name string) (Algorithm, error) {
	for i, n := range names {
		if n == name {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("hash algorithm %q: use sha256 or none, or murmur32, murmur64 or murmur128 for imported keys", name)
}

// String returns the algorithm's name.
func (a Algorithm) String() string {
	if int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// A Hasher derives identities from keys. Its zero value uses SHA-256 and has no legacy
// algorithms. It must not change while it is in use and is safe for concurrent use.
//
// The murmur hashes can be inverted: a token with a wanted hash is found in no time. So
// they are used only where the operator lists them, whatever a token says of itself.
type Hasher struct {
	Algorithm Algorithm   // for new keys
	Prefix    string      // what generated keys begin with; "" if they have no prefix
	Legacy    []Algorithm // under which imported keys may be stored as well
}

// Hash returns the identity of a key in its full form: as returned by Generate or
// Custom, or as imported. What a key says of its hash does not matter.
func (h *Hasher) Hash(key string) string {
	return string(appendHash(nil, h.Algorithm, []byte(key)))
}

// Custom returns the full form of a key with a custom id: the organisation followed by
// the id. Clients may send either. An id that already is a full form is returned
// unchanged: one that begins with the organisation, a key made by Generate, and one in
// the base64 form.
func (h *Hasher) Custom(org, id string) string {
	_, based := Named([]byte(id))
	if based || strings.HasPrefix(id, org) || HasPrefix(h.Prefix, []byte(id)) {
		return id
	}
	return org + id
}

// Candidates returns every identity under which the session of token may be stored,
// the most likely first; at least one.
func (h *Hasher) Candidates(token []byte, org string) []string {
	var all []string
	for i := 0; ; i++ {
		identity, ok := h.Candidate(nil, token, org, i)
		if !ok {
			return all
		}
		all = append(all, string(identity))
	}
}

// Candidate writes the i-th of the Candidates over dst, and reports whether there is
// one. A caller counts i up from 0 until its store has the identity or Candidate
// returns false; few keys need more than the first. It does not allocate if dst has
// capacity for the token, org and 64 bytes.
//
// A token is tried alone and after the organisation, since a key with a custom id may
// be sent either way; then both, and the base64 form of the second, under each legacy
// algorithm. A key that names its own algorithm is tried under that, if it is a legacy
// one. A key that was generated here has one identity only.
func (h *Hasher) Candidate(dst, token []byte, org string, i int) ([]byte, bool) {
	if i == 0 {
		return appendHash(dst[:0], h.Algorithm, token), true
	}
	if HasPrefix(h.Prefix, token) {
		return dst, false
	}
	if own, based := Named(token); based {
		if i > 1 || !h.allows(own) {
			return dst, false
		}
		return appendHash(dst[:0], Algorithm(own), token), true
	}
	if org == "" {
		if i > len(h.Legacy) {
			return dst, false
		}
		return appendHash(dst[:0], h.Legacy[i-1], token), true
	}
	if i == 1 {
		return behind(dst, h.Algorithm, org, token), true
	}
	legacy, form := (i-2)/3, (i-2)%3
	if legacy >= len(h.Legacy) {
		return dst, false
	}
	a := h.Legacy[legacy]
	switch form {
	case 0:
		return appendHash(dst[:0], a, token), true
	case 1:
		return behind(dst, a, org, token), true
	}
	return based(dst, a, org, token), true
}

// allows reports whether a hash that a token names is one of the legacy algorithms.
func (h *Hasher) allows(n Name) bool {
	return n != unknownName && slices.Contains(h.Legacy, Algorithm(n))
}

// Strong returns the SHA-256 identities that are to take the place of the i-th Candidate
// of a token, a legacy hash: every form of the key finds one of them.
func (h *Hasher) Strong(token []byte, org string, i int) []string {
	strong := Hasher{Prefix: h.Prefix}
	if _, based := Named(token); based || org == "" {
		return []string{strong.Hash(string(token))}
	}
	full := org + string(token)
	switch legacy, form := (i-2)/3, (i-2)%3; form {
	case 0: // it holds the organisation already, or none was put before it
		return []string{strong.Hash(string(token))}
	case 2:
		based := appendBased(nil, h.Legacy[legacy], org, token)
		return []string{strong.Hash(full), strong.Hash(string(based))}
	}
	return []string{strong.Hash(full)}
}

// UserCandidate is Candidate for the name of a user: names are always stored after
// their organisation, so that a user is never taken for one of another organisation.
func (h *Hasher) UserCandidate(dst, name []byte, org string, i int) ([]byte, bool) {
	if i == 0 {
		full := append(append(dst[:0], org...), name...)
		return hashInPlace(full, h.Algorithm, 0), true
	}
	legacy, form := (i-1)/2, (i-1)%2
	if legacy >= len(h.Legacy) {
		return dst, false
	}
	if form == 0 {
		return behind(dst, h.Legacy[legacy], org, name), true
	}
	return based(dst, h.Legacy[legacy], org, name), true
}

// behind returns the identity of org followed by token.
func behind(dst []byte, a Algorithm, org string, token []byte) []byte {
	full := append(append(dst[:0], org...), token...)
	return hashInPlace(full, a, 0)
}

// based returns the identity of the base64 form of a key with a custom id.
func based(dst []byte, a Algorithm, org string, token []byte) []byte {
	form := appendBased(dst[:0], a, org, token)
	return hashInPlace(form, a, 0)
}

// appendBased appends the base64 form of a key with a custom id.
func appendBased(dst []byte, a Algorithm, org string, token []byte) []byte {
	start := len(dst)
	dst = append(dst, `{"org":"`...)
	dst = append(dst, org...)
	dst = append(dst, `","id":"`...)
	dst = append(dst, token...)
	dst = append(dst, `","h":"`...)
	dst = append(dst, a.String()...)
	dst = append(dst, `"}`...)
	plain := len(dst)
	dst = base64.StdEncoding.AppendEncode(dst, dst[start:])
	return append(dst[:start], dst[plain:]...)
}

// hashInPlace replaces full by the identity of full[from:].
func hashInPlace(full []byte, a Algorithm, from int) []byte {
	if a == None {
		return append(full[:0], full[from:]...)
	}
	var out [2 * sha256.Size]byte
	return append(full[:0], appendHash(out[:0], a, full[from:])...)
}

// appendHash appends the identity of a full key.
func appendHash(dst []byte, a Algorithm, key []byte) []byte {
	var sum [sha256.Size]byte
	n := 0
	switch a {
	case None:
		return append(dst, key...)
	case Murmur32:
		binary.BigEndian.PutUint32(sum[:], murmur32(key))
		n = 4
	case Murmur64:
		first, _ := murmur128(key)
		binary.BigEndian.PutUint64(sum[:], first)
		n = 8
	case Murmur128:
		first, second := murmur128(key)
		binary.BigEndian.PutUint64(sum[:], first)
		binary.BigEndian.PutUint64(sum[8:], second)
		n = 16
	default:
		sum = sha256.Sum256(key)
		n = len(sum)
	}
	return hex.AppendEncode(dst, sum[:n])
}
