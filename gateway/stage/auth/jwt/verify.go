package jwt

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwks"
)

// maxTried is how many keys are tried for a token that does not name one.
const maxTried = 8

// verify checks a token's signature and reads its claims. The generation is that of the
// keys that it was checked with.
func (v *Verifier) verify(text string) (*Identity, uint64, *pipeline.Rejection) {
	jws, refused := parse(text, v.allowed)
	if refused != nil {
		return nil, 0, refused
	}
	head := &jws.Signatures[0].Header
	generation := v.generation() // before the keys are looked up, so that a change in between invalidates the entry
	sets, refused := v.setsFor(jws)
	if refused != nil {
		return nil, 0, refused
	}
	keys, refused := v.keysFor(head.KeyID, sets)
	if refused != nil {
		return nil, 0, refused
	}
	if len(keys) > maxTried {
		keys = keys[:maxTried]
	}
	v.tokens.known.verified.Add(1)
	for _, key := range keys {
		if key.Algorithm != "" && key.Algorithm != head.Algorithm {
			continue
		}
		if payload, err := jws.Verify(key.Public); err == nil {
			id, refused := v.read(slices.Clone(payload))
			return id, generation, refused
		}
	}
	return nil, 0, badSignature
}

// parse reads a token that is signed with an allowed algorithm.
func parse(text string, allowed []jose.SignatureAlgorithm) (*jose.JSONWebSignature, *pipeline.Rejection) {
	jws, err := jose.ParseSignedCompact(text, allowed)
	if err != nil {
		if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
			return nil, wrongAlgorithm
		}
		return nil, malformed
	}
	if _, plain := jws.Signatures[0].Header.ExtraHeaders["b64"]; plain { // RFC 7797 section 7 forbids it for tokens
		return nil, malformed
	}
	return jws, nil
}

// setsFor returns the key sets that may verify a token: those of the issuer that it names.
// Its claims are not trustworthy yet, but a key of these sets has to verify them.
func (v *Verifier) setsFor(jws *jose.JSONWebSignature) ([]keySet, *pipeline.Rejection) {
	if !v.bound {
		return v.sets, nil
	}
	var c claims
	if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), &c); err != nil || c == nil {
		return nil, malformed
	}
	issuer := c.text("iss")
	sets := slices.DeleteFunc(slices.Clone(v.sets), func(s keySet) bool { return s.issuer != "" && s.issuer != issuer })
	if len(sets) == 0 {
		return nil, wrongIssuer
	}
	return sets, nil
}

// keysFor returns the keys to try for a key id.
func (v *Verifier) keysFor(id string, sets []keySet) ([]jwks.Key, *pipeline.Rejection) {
	if v.static != nil {
		return v.static.Of(id), nil
	}
	var found []jwks.Key
	away := false
	for _, set := range sets {
		keys, err := set.Find(id)
		found = append(found, keys...)
		away = away || errors.Is(err, jwks.ErrUnavailable)
	}
	switch {
	case len(found) > 0:
		return found, nil
	case away:
		return nil, unavailable
	}
	return nil, unknownKey
}
