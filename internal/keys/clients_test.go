package keys_test

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

func TestAClientIsNoKeyAndStaysAClient(t *testing.T) {
	w := open(t)
	session := parse[definition.Session](t, `{"access_rights": {"a": {"api_id": "a"}}}`)
	issued, err := w.CreateClient(t.Context(), "client-1", session)
	if err != nil || issued.Key != "" || issued.Hash == "" {
		t.Fatalf("%+v, %v", issued, err)
	}
	ref := keys.Ref{ID: issued.Hash, Hashed: true}
	if _, err := w.Rotate(t.Context(), ref, 0); err == nil || !strings.Contains(err.Error(), "OAuth client") {
		t.Errorf("rotating it: %v", err)
	}
	if _, err := w.Update(t.Context(), ref, session, true); err != nil {
		t.Fatal(err)
	}
	kept, _, err := w.Get(t.Context(), ref)
	if err != nil || kept.OAuthClient() != "client-1" {
		t.Errorf("after an update it is %+v, %v", kept.Extra, err)
	}
	other := session.Clone()
	other.Extra = &definition.Extra{OAuthClientID: "client-2"}
	if _, err := w.Update(t.Context(), ref, other, true); err == nil || !strings.Contains(err.Error(), "oauth_client_id") {
		t.Errorf("another client's id: %v", err)
	}
	if _, err := w.Create(t.Context(), "", other, false); err == nil || !strings.Contains(err.Error(), "oauth_client_id") {
		t.Errorf("a key that says it is a client: %v", err)
	}
	user := session.Clone()
	user.BasicAuth = &definition.BasicAuth{Password: "long enough"}
	if _, err := w.CreateClient(t.Context(), "client-3", user); err == nil {
		t.Error("a client with a password was made")
	}
}

// TestAClientIsNotReplacedByAKeyOfItsName: where keys are stored in clear, whoever
// lists them knows what the session of a client is stored under.
func TestAClientIsNotReplacedByAKeyOfItsName(t *testing.T) {
	w := open(t)
	w.Options.Hasher = &credential.Hasher{Prefix: credential.DefaultPrefix, Algorithm: credential.None}
	session := parse[definition.Session](t, `{"access_rights": {"a": {"api_id": "a"}}}`)
	if _, err := w.CreateClient(t.Context(), "client-1", session); err != nil {
		t.Fatal(err)
	}
	all, _, err := w.List(t.Context(), "", 10)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if _, err := w.Create(t.Context(), all[0], session, false); err == nil || !strings.Contains(err.Error(), "OAuth client") {
		t.Errorf("%v", err)
	}
}
