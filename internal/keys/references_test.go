package keys_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/password"
)

func TestKeysNameWhatExists(t *testing.T) {
	d := open(t)
	d.apis = map[string]*definition.API{"a": {OrgID: "o"}, "theirs": {OrgID: "p"}}
	d.Orgs = func() []string { return []string{"o", "p"} }
	d.policy(`{"id": "p", "org_id": "o", "access_rights": {"a": {}}}`)
	for session, want := range map[string]string{
		`{"org_id": "o", "access_rights": {"gone": {}}}`:               `access_rights["gone"]: names an API that does not exist`,
		`{"org_id": "o", "access_rights": {"theirs": {}}}`:             `access_rights["theirs"]: names an API that does not exist`,
		`{"org_id": "q", "access_rights": {"a": {}}}`:                  "org_id: names an organisation that has no API here",
		`{"org_id": "o", "apply_policies": ["p", "gone"]}`:             `policy not found: "gone"`,
		`{"org_id": "o", "access_rights": {"a": {}}, "rate": -2}`:      "rate: must not be negative",
		`{"org_id": "o", "access_rights": {"a": {}}, "quota_max": -2}`: "quota_max: must not be negative",
	} {
		if _, err := d.Create(t.Context(), "", parse[definition.Session](t, session), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", session, err, want)
		}
	}
	d.create("", `{"org_id": "o", "apply_policies": ["p"], "access_rights": {"a": {}}}`)
}

// TestAKeyMayKeepWhatIsGone: what the stored session names already may have been deleted
// since.
func TestAKeyMayKeepWhatIsGone(t *testing.T) {
	d := open(t)
	issued := d.create("", `{"org_id": "o", "access_rights": {"a": {}, "b": {}}}`)
	d.apis = map[string]*definition.API{"a": {}}
	d.update(issued.Key, `{"org_id": "o", "alias": "new", "access_rights": {"a": {}, "b": {}}}`, false)
	_, err := d.Update(t.Context(), keys.Ref{ID: issued.Key}, parse[definition.Session](t, `{"org_id": "o", "access_rights": {"c": {}}}`), false)
	if err == nil || !strings.Contains(err.Error(), `access_rights["c"]`) {
		t.Errorf("%v", err)
	}
}

// TestAnAPIThatCannotBeReadIsNotUnknown: the cause is returned in place of a refusal.
func TestAnAPIThatCannotBeReadIsNotUnknown(t *testing.T) {
	d := open(t)
	away := errors.New("away")
	d.apis, d.Failed = map[string]*definition.API{}, func() error { return away }
	if _, err := d.Create(t.Context(), "", parse[definition.Session](t, quotaOf10), false); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
}

// TestOwnKeysHaveALeastLength: a short one could be guessed.
func TestOwnKeysHaveALeastLength(t *testing.T) {
	d := open(t)
	d.Options.MinLength = 16
	if _, err := d.Create(t.Context(), "fifteen-letters", parse[definition.Session](t, quotaOf10), false); err == nil || err.Error() != "key id must have 16 characters at least" {
		t.Errorf("%v", err)
	}
	d.create("sixteen-letters!", quotaOf10)
	d.Options.Passwords = password.NewHasher(1, 1, time.Minute)
	d.create("ann", strings.Replace(quotaOf10, "{", `{"basic_auth_data": {"password": "long enough"}, `, 1)) // the name of a user
}
