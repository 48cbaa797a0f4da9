package keys_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

const shared = "a secret of two and thirty bytes"

func signer(secret string) string {
	return `{"org_id": "o", "access_rights": {"a": {}}, "jwt_data": {"secret": "` + secret + `", "more": 1}}`
}

func TestASecretIsKeptAndToldToNobody(t *testing.T) {
	d := openUsers(t)
	issued := d.create("app", signer(shared))
	secret := func() string {
		t.Helper()
		s, err := d.store.Get(t.Context(), issued.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return s.TokenSecret()
	}
	if secret() != shared {
		t.Errorf("stored %q", secret())
	}
	shown, err := json.Marshal(d.get(issued.Key))
	if err != nil || strings.Contains(string(shown), shared) || !strings.Contains(string(shown), `"jwt_data":{"secret":"","more":1}`) {
		t.Errorf("shown: %s, %v", shown, err)
	}
	preview, err := d.Preview(parse[definition.Session](t, signer(shared)))
	if err != nil || preview.TokenSecret() != "" {
		t.Errorf("a preview shows %+v, %v", preview, err)
	}
	for _, body := range []string{quotaOf10, signer(""), string(shown)} {
		d.update(issued.Key, body, false)
		if secret() != shared {
			t.Errorf("lost by %s", body)
		}
	}
	if _, err := d.SetPolicies(t.Context(), keys.Ref{ID: "app", Org: "o"}, nil); err != nil || secret() != shared {
		t.Errorf("lost by new policies: %v", err)
	}
	if _, err := d.Rotate(t.Context(), keys.Ref{ID: "app", Org: "o"}, 0); err != nil || secret() != shared {
		t.Errorf("lost by a successor: %v", err)
	}
	d.update(issued.Key, signer(shared+" and one"), false)
	if secret() != shared+" and one" {
		t.Errorf("after a change: %q", secret())
	}
}

func TestAUserHasNoSecret(t *testing.T) {
	d := openUsers(t)
	const both = `{"org_id": "o", "access_rights": {"a": {}}, "basic_auth_data": {"password": "x"}, "jwt_data": {"secret": "` + shared + `"}}`
	refuses := func(err error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), "jwt_data.secret: ") || strings.Contains(err.Error(), shared) {
			t.Error(err)
		}
	}
	_, err := d.Create(t.Context(), "bob", parse[definition.Session](t, both), false)
	refuses(err)
	d.create("bob", user(`{"password": "x"}`))
	d.create("app", signer(shared))
	for id, body := range map[string]string{"bob": signer(shared), "app": user(`{"password": "x"}`)} {
		_, err := d.Update(t.Context(), keys.Ref{ID: id, Org: "o"}, parse[definition.Session](t, body), false)
		refuses(err)
	}
	_, err = d.Create(t.Context(), "", parse[definition.Session](t, signer("too short")), false)
	refuses(err)
}
