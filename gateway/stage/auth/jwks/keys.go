package jwks

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/internal/definition/jwt"
)

// A Key verifies signatures.
type Key struct {
	ID        string // "" if it has none
	Algorithm string // the only one that it may be used with; "": any of its kind
	Public    any    // *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey, or a secret as []byte
}

// Keys are an immutable set of keys.
type Keys struct {
	all  []Key
	byID map[string][]Key
}

// maxKeys is how many keys a set may have. Issuers have a handful.
const maxKeys = 100

// NewKeys returns a set of keys.
func NewKeys(all ...Key) *Keys {
	k := &Keys{all: all, byID: make(map[string][]Key)}
	for _, key := range all {
		k.byID[key.ID] = append(k.byID[key.ID], key)
	}
	return k
}

// Of returns the keys to try for a token with a key id: those with the id, or all if it
// is "". Keys without an id are tried if no key has the id.
func (k *Keys) Of(id string) []Key {
	if id == "" {
		return k.all
	}
	if named := k.byID[id]; len(named) > 0 {
		return named
	}
	return k.byID[""]
}

// Parse reads a JSON Web Key Set (RFC 7517). Keys that cannot verify signatures are
// ignored, as section 5 requires: encryption keys, secrets, unknown kinds and curves, and
// RSA keys below 2,048 bits. A set without any other key is an error that says why.
func Parse(set []byte) (*Keys, error) {
	var s struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(set, &s); err != nil {
		return nil, fmt.Errorf("reading a key set: %w", err)
	}
	if s.Keys == nil {
		return nil, errors.New(`reading a key set: it has no "keys"`)
	}
	if len(s.Keys) > maxKeys {
		return nil, fmt.Errorf("reading a key set: it has %d keys, and at most %d are read", len(s.Keys), maxKeys)
	}
	var usable []Key
	var problems []error
	for i, raw := range s.Keys {
		key, err := parseKey(raw)
		if err != nil {
			problems = append(problems, fmt.Errorf("keys[%d]: %w", i, err))
			continue
		}
		usable = append(usable, key)
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("reading a key set: no key of it verifies signatures: %w", errors.Join(problems...))
	}
	return NewKeys(usable...), nil
}

func parseKey(raw []byte) (Key, error) {
	var k jose.JSONWebKey
	if err := k.UnmarshalJSON(raw); err != nil {
		return Key{}, err
	}
	if k.Use == "enc" {
		return Key{}, errors.New("it is for encryption")
	}
	public := k.Public().Key
	if err := jwt.CheckKey(public); err != nil {
		return Key{}, err
	}
	return Key{ID: k.KeyID, Algorithm: k.Algorithm, Public: public}, nil
}

// equal reports whether two sets have the same keys in the same order.
func (k *Keys) equal(other *Keys) bool {
	if other == nil || len(k.all) != len(other.all) {
		return false
	}
	for i := range k.all {
		a, b := &k.all[i], &other.all[i]
		if a.ID != b.ID || a.Algorithm != b.Algorithm || !samePublic(a.Public, b.Public) {
			return false
		}
	}
	return true
}

func samePublic(a, b any) bool {
	switch x := a.(type) {
	case *rsa.PublicKey:
		y, ok := b.(*rsa.PublicKey)
		return ok && x.Equal(y)
	case *ecdsa.PublicKey:
		y, ok := b.(*ecdsa.PublicKey)
		return ok && x.Equal(y)
	case ed25519.PublicKey:
		y, ok := b.(ed25519.PublicKey)
		return ok && x.Equal(y)
	}
	return false
}
