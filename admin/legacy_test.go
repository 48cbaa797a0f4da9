package admin

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/credential"
)

// legacyHash is the murmur32 of hello.
const legacyHash = "248bfa47"

func withLegacyKey(t *testing.T) *bench {
	b := start(t, func(d *Deps) {
		d.KeyOptions.Hasher = &credential.Hasher{Prefix: "slk_", Legacy: []credential.Algorithm{credential.Murmur32}}
	})
	b.createAPI(b.editor, "a", "/a")
	b.Call("POST", "/api/config/apply", b.editor, `{"keys":[{"key_hash":"`+legacyHash+`","session":{"alias":"old","quota_max":10,"access_rights":{"a":{"api_id":"a"}}}}]}`).Want(200)
	return b
}

func TestLegacyHashesAreNeverShown(t *testing.T) {
	b := withLegacyKey(t)
	shown := credential.Masked(legacyHash)
	for _, path := range []string{
		"/api/keys", "/api/keys/detailed", "/api/keys?q=old", "/api/apis/a/keys", "/api/keys/" + shown, "/api/keys/" + shown + "?hashed=true", "/api/apis/a/keys/" + shown,
	} {
		b.Call("GET", path, b.viewer, "").Want(200).Says(shown).Hides(legacyHash)
	}
	b.Call("PUT", "/api/keys/"+shown, b.editor, `{"alias":"renamed","quota_max":10,"access_rights":{"a":{"api_id":"a"}}}`).Want(200).Says("renamed", shown).Hides(legacyHash)
	b.Call("POST", "/api/config/apply", b.editor, `{"keys":[{"key_hash":"`+shown+`","session":{"alias":"applied","quota_max":10,"access_rights":{"a":{"api_id":"a"}}}}]}`).Want(200)
	if n := b.Count("select count(*) from keys"); n != 1 {
		t.Errorf("what is shown of a key named another one when it was applied: %d keys", n)
	}
	b.Call("POST", "/api/keys/"+shown+"/rotate", b.editor, `{"grace":"1h"}`).Want(200).Says(shown).Hides(legacyHash)
	b.Call("GET", "/api/audit", b.admin, "").Want(200).Says(shown).Hides(legacyHash)
	b.Call("GET", "/api/keys/legacy_hashes", b.viewer, "").Want(200).Says(`"keys":1`, `"by_hash":{"murmur32":1}`, `"legacy_hashes":["murmur32"]`)
	b.Call("DELETE", "/api/keys/"+shown+"/rotate", b.editor, "").Want(200)
	b.Call("GET", "/api/keys/legacy_hashes", b.viewer, "").Want(200).Says(`"keys":0`, `"by_hash":{}`)
	b.Call("DELETE", "/api/keys/"+shown, b.editor, "").Want(200)
	if n := b.Count("select count(*) from keys"); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestALegacyHashThatIsNotListedIsNotAdopted(t *testing.T) {
	b := withAPI(t)
	b.Call("POST", "/api/config/apply", b.editor, `{"keys":[{"key_hash":"`+legacyHash+`","session":{"access_rights":{"a":{"api_id":"a"}}}}]}`).
		Want(400).Says("is a murmur32 hash, which opens nothing here", "keys.legacy_hashes")
	b.Call("GET", "/api/keys/legacy_hashes", b.viewer, "").Want(200).Says(`"keys":0`, `"legacy_hashes":[]`)
}

func TestGatewaysReplaceLegacyHashesOfKeysThatAreUsed(t *testing.T) {
	b := withLegacyKey(t)
	strong := (&credential.Hasher{}).Hash("hello")
	const path = "/api/gateway/keys/strengthen"
	body := `{"key_hash":"` + legacyHash + `","sha256":["` + strong + `"]}`
	b.Call("POST", path, b.editor, body).Want(403)
	for body, says := range map[string]string{
		`{"key_hash":"` + strong + `","sha256":["` + strong + `"]}`:         "key_hash: must be a legacy hash",
		`{"key_hash":"` + legacyHash + `","sha256":[]}`:                     "sha256: must be one or two hashes",
		`{"key_hash":"` + legacyHash + `","sha256":["` + strong[1:] + `"]}`: "sha256: must be",
	} {
		b.Call("POST", path, gatewayToken, body).Want(400).Says(says)
	}
	b.Call("POST", path, gatewayToken, strings.Replace(body, legacyHash, "00000000", 1)).Want(404)
	b.Call("POST", path, gatewayToken, body).Want(200).Says(`"changed":true`)
	b.Call("POST", path, gatewayToken, body).Want(200).Says(`"changed":false`)
	b.Call("GET", "/api/keys/legacy_hashes", b.viewer, "").Want(200).Says(`"keys":0`)
	b.Call("GET", "/api/keys/hello", b.viewer, "").Want(200).Says(`"alias":"old"`)
	if s, err := b.keys.Get(t.Context(), strong); err != nil || s.SuccessorOf() != legacyHash {
		t.Errorf("the key store has %+v under SHA-256: %v", s, err)
	}
}
