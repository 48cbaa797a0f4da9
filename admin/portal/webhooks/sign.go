package webhooks

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/webhooksign"
)

// secretPrefix begins the text of every secret.
const secretPrefix = webhooksign.Prefix

// Lengths of a secret, in bytes.
const (
	minSecret  = 24
	maxSecret  = 64
	newSecrets = 32
)

// newSecret generates a secret.
func newSecret() []byte {
	made := make([]byte, newSecrets)
	_, _ = rand.Read(made) // documented never to fail
	return made
}

// shown returns the text of a secret.
func shown(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// parseSecret parses the text of a secret.
func parseSecret(text string) ([]byte, error) {
	wrong := fmt.Errorf("must be %s followed by %d to %d bytes in base64, as %s$(openssl rand -base64 32) writes it", secretPrefix, minSecret, maxSecret, secretPrefix)
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found || len(encoded) > base64.StdEncoding.EncodedLen(maxSecret) {
		return nil, wrong
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") || len(secret) < minSecret || len(secret) > maxSecret {
		return nil, wrong
	}
	return secret, nil
}
