package jwt

import (
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// maxSecret is how long a key's secret may be, in bytes: a chain of PEM has room.
const maxSecret = 16 << 10

// Key is what a session has for the tokens that name it, where the API has no
// jwt_source.
type Key struct {
	// Secret of at least 32 bytes that is shared with the client, or the client's public key in PEM; never returned.
	// Example: "a secret of at least 32 bytes, shared with the client"
	Secret  string         `json:"secret"`
	Unknown object.Unknown `json:"-"`
}

// Value returns the secret, "" for a key that has none. k may be nil.
func (k *Key) Value() string {
	if k == nil {
		return ""
	}
	return k.Secret
}

// Check returns what is wrong with the secret. k may be nil. user: the session has
// a password.
func (k *Key) Check(user bool) []object.Fault {
	var f object.Faults
	const path = "secret"
	secret := k.Value()
	switch {
	case secret == "":
	case user:
		f.Add(path, "must be left out where there is a password: a user has no tokens")
	case len(secret) > maxSecret:
		f.Add(path, fmt.Sprintf("has %d bytes; at most %d are allowed", len(secret), maxSecret))
	case isPEM(secret):
		if _, err := publicKey(secret); err != nil {
			f.Add(path, err.Error())
		}
	case len(secret) < leastHMAC:
		f.Add(path, fmt.Sprintf("must have %d bytes at least, or be a public key in PEM", leastHMAC))
	}
	return f
}

var errOtherKind = errors.New("is a secret of another kind than jwt_signing_method asks for")

// Public returns what verifies the tokens of a session, of the method that the
// definition names: a public key is never taken for a shared secret, as everybody
// could sign with it then.
func Public(secret, method string) (any, error) {
	if method == HMAC {
		if isPEM(secret) || len(secret) < leastHMAC {
			return nil, errOtherKind
		}
		return []byte(secret), nil
	}
	if !isPEM(secret) {
		return nil, errOtherKind
	}
	key, err := publicKey(secret)
	if err == nil && !fits(key, method) {
		err = errOtherKind
	}
	return key, err
}
