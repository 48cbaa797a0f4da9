package keystore

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"
)

// A Seal authenticates the sessions in a shared store: whoever can write to the store,
// but does not have the secret, can make no session that a gateway accepts. A seal is
// bound to the key's hash, so that a session cannot be moved to another key. It does not
// prevent that a session which was valid once is written again.
//
// The seal is the first member of the session's JSON, which releases without seals ignore.
type Seal struct {
	own      []byte                   // the key that seals; nil: this process only reads
	accepted atomic.Pointer[[][]byte] // keys of sessions that are accepted
}

const (
	sealKeySize = sha256.Size
	sealPrefix  = `{"sluice_seal":"`
	sealChars   = 43 // base64 digits of a SHA-256
)

// maxSealKeys bounds the keys that a Seal accepts.
const maxSealKeys = 8

// NewSeal returns a Seal whose key is derived from a secret, such as gateway.token.
func NewSeal(secret string) (*Seal, error) {
	if secret == "" {
		return nil, errors.New("sealing sessions: the secret is empty")
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "sessions in the key store", sealKeySize)
	if err != nil {
		return nil, err
	}
	s := &Seal{own: key}
	s.accepted.Store(&[][]byte{key})
	return s, nil
}

// Keys returns the keys of sessions that are accepted, which are secret.
func (s *Seal) Keys() [][]byte { return *s.accepted.Load() }

// name returns what distinguishes the seal from others, "" for none.
func (s *Seal) name() string {
	if s == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(sealOf(s.own, "name", "")[:12])
}

// Accept makes sessions acceptable that were sealed with other keys, in place of those
// that were accepted so far beside the seal's own.
func (s *Seal) Accept(keys [][]byte) {
	all := [][]byte{s.own}
	for _, key := range keys {
		if len(key) == sealKeySize && !hmac.Equal(key, s.own) && len(all) < maxSealKeys {
			all = append(all, key)
		}
	}
	s.accepted.Store(&all)
}

// errNotSealed is an ErrUnreadable, as the admin may know the session.
var errNotSealed = errors.New("it was not written by an admin of this installation")

// seal returns a session's JSON with its seal.
func (s *Seal) seal(keyHash, text string) string {
	if s == nil {
		return text
	}
	rest := strings.TrimPrefix(text, "{")
	if rest != "}" {
		rest = "," + rest
	}
	return sealPrefix + base64.RawURLEncoding.EncodeToString(sealOf(s.own, keyHash, text)) + `"` + rest
}

// open returns a session's JSON without its seal.
func (s *Seal) open(keyHash, text string) (string, error) {
	rest, sealed := strings.CutPrefix(text, sealPrefix)
	if !sealed || len(rest) < sealChars+2 || rest[sealChars] != '"' {
		if s == nil && !sealed {
			return text, nil
		}
		return "", errNotSealed
	}
	shown, rest := rest[:sealChars], rest[sealChars+1:]
	text = "{" + strings.TrimPrefix(rest, ",")
	if s == nil {
		return text, nil
	}
	sum, err := base64.RawURLEncoding.DecodeString(shown)
	if err != nil {
		return "", errNotSealed
	}
	for _, key := range s.Keys() {
		if hmac.Equal(sum, sealOf(key, keyHash, text)) {
			return text, nil
		}
	}
	return "", errNotSealed
}

// sealOf returns the MAC of a session.
func sealOf(key []byte, keyHash, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(keyHash))
	mac.Write([]byte{0}) // in no hash
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
