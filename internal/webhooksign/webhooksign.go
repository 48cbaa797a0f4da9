// Package webhooksign signs messages and checks their signatures by the Standard Webhooks
// specification (https://www.standardwebhooks.com), version 1: HMAC-SHA256 of the id, the
// timestamp and the body.
package webhooksign

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Headers of a signed message.
const (
	IDHeader        = "webhook-id"
	TimestampHeader = "webhook-timestamp" // seconds since 1970
	SignatureHeader = "webhook-signature"
)

// Prefix begins the text of a secret that is written in base64.
const Prefix = "whsec_"

const (
	version   = "v1,"
	maxHeader = 4 << 10 // bytes of signatures
)

// Key returns the key of a secret: what follows Prefix, decoded; or the text as it is, if
// it has another form.
func Key(secret string) []byte {
	if encoded, ok := strings.CutPrefix(secret, Prefix); ok {
		if key, err := base64.StdEncoding.Strict().DecodeString(encoded); err == nil && len(key) > 0 {
			return key
		}
	}
	return []byte(secret)
}

// Sign returns the value of SignatureHeader: one signature by each of the keys.
func Sign(keys [][]byte, id, timestamp string, body []byte) string {
	signatures := make([]string, 0, len(keys))
	for _, key := range keys {
		signatures = append(signatures, version+base64.StdEncoding.EncodeToString(sum(key, id, timestamp, body)))
	}
	return strings.Join(signatures, " ")
}

func sum(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Signatures are those of version 1 that a message has.
type Signatures [][sha256.Size]byte

// Parse reads a value of SignatureHeader: signatures with a space between them. Those of
// versions that are not known are left out; one of version 1 must be there.
func Parse(header string) (Signatures, error) {
	if len(header) > maxHeader {
		return nil, fmt.Errorf("has more than %d bytes", maxHeader)
	}
	var all Signatures
	for text := range strings.FieldsSeq(header) {
		encoded, ok := strings.CutPrefix(text, version)
		if !ok {
			continue
		}
		raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil || len(raw) != sha256.Size {
			return nil, errors.New("must have v1, followed by a SHA-256 HMAC in base64")
		}
		all = append(all, [sha256.Size]byte(raw))
	}
	if len(all) == 0 {
		return nil, errors.New("has no signature of version v1")
	}
	return all, nil
}

// Match reports whether one of the signatures was made with one of the keys. How long it
// takes does not depend on the bytes of a signature.
func (s Signatures) Match(keys [][]byte, id, timestamp string, body []byte) bool {
	matches := false
	for _, key := range keys {
		want := sum(key, id, timestamp, body)
		for i := range s {
			matches = hmac.Equal(s[i][:], want) || matches
		}
	}
	return matches
}
