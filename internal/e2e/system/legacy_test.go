package system

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// Two tokens with the same murmur32: the second one was computed from the hash.
const (
	legacyToken = "hello"
	forgedToken = "FacFYb3r"
	legacyHash  = "248bfa47"
)

func TestALegacyHashOpensItsKeyUntilTheKeyIsUsed(t *testing.T) {
	t.Parallel()
	up := rig.NewUp(t, rig.DataDir(t), settings{"keys.legacy_hashes": "murmur32"}).StartReady()
	admin := up.Rest()
	admin.Do(http.MethodPost, "/api/apis", rig.APIDef("one", "http://"+testenv.Origin(t, rig.Echo), false))
	key := object{"key_hash": legacyHash, "session": object{"alias": "old", "quota_max": 1_000_000, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("one")}}
	admin.Do(http.MethodPost, "/api/config/apply", object{"keys": []object{key}})
	up.AwaitUse("/one/x", legacyToken)
	up.Await("the legacy hash to be replaced", func() error {
		return refused("auth_expired")(rig.Call(t, http.MethodGet, up.Traffic+"/one/x", nil, "Authorization", forgedToken))
	})
	if got := rig.Call(t, http.MethodGet, up.Traffic+"/one/x", nil, "Authorization", legacyToken); got.Status != 200 {
		t.Errorf("the key itself: %s", got)
	}
	if got := admin.Do(http.MethodGet, "/api/keys/legacy_hashes", nil); !strings.Contains(got.Body, `"keys":0`) {
		t.Errorf("counted: %s", got)
	}
	if got := admin.Do(http.MethodGet, "/api/keys/detailed", nil); strings.Contains(got.Body, legacyHash) {
		t.Errorf("the hash is shown: %s", got)
	}
}

func TestATokenCannotNameAnInvertibleHash(t *testing.T) {
	t.Parallel()
	up := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	admin := up.Rest()
	admin.Do(http.MethodPost, "/api/apis", rig.APIDef("one", "http://"+testenv.Origin(t, rig.Echo), false))
	key := object{"key_hash": legacyHash, "session": object{"access_rights": rig.AccessTo("one")}}
	if got, err := admin.Try(http.MethodPost, "/api/config/apply", object{"keys": []object{key}}); err != nil || got.Status != 400 || !strings.Contains(got.Body, "keys.legacy_hashes") {
		t.Errorf("%s, %v", got, err)
	}
	named := "eyJpZCI6Im1lIiwiaCI6Im11cm11cjMyIn0=" // {"id":"me","h":"murmur32"}
	if got, err := admin.Try(http.MethodPost, "/api/keys/"+named, object{"access_rights": rig.AccessTo("one")}); err != nil || got.Status != 400 || !strings.Contains(got.Body, "names murmur32 as its hash") {
		t.Errorf("%s, %v", got, err)
	}
}
