package credentials

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/secret"
)

// FuzzRecords has what anybody sends stored and shown: it must come back as JSON
// that can be sent again, say what the portal knows, and never show a secret.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"by_user":"d","for_plan":"p","version":"v2","fields":{"a":1.50},"later":[1]}`,
		`{"key":"raw","jwt_secret":"a secret of 32 bytes and some more","approved":false,"state":"approved","decided_by":"me"}`,
		`{"portal_developer":{"id":"x","password":"p"},"catalogues":[{"name":"n"}],"oauth_info":{"redirect_uri":"u","more":{}}}`,
		`{"id":"other","org_id":"other","key_id":"k","certificate":"-----BEGIN CERTIFICATE-----"}`,
	} {
		f.Add([]byte(seed))
	}
	s := NewRequests(RequestDeps{
		Keys: NewKeys(KeyDeps{Options: keys.Options{Hasher: new(credential.Hasher)}}), MasterKey: secret.NewKey(),
	})
	f.Fuzz(func(t *testing.T, sent []byte) {
		r, err := model.Parse[model.KeyRequest](sent)
		if err != nil || checkTexts(r) != nil {
			return
		}
		row, err := s.row("id", "org", &resolved{record: r, policies: []string{"p"}, kind: Token})
		if err != nil {
			return
		}
		if opened, err := s.open(row); err != nil || opened != r.JWTSecret {
			t.Fatalf("the secret is %q, was %q: %v", opened, r.JWTSecret, err)
		}
		row.State, row.DeveloperID = string(Pending), "dev"
		shown := show(t, s, row)
		again, err := model.Parse[model.KeyRequest](shown)
		if err != nil {
			t.Fatalf("%s: %v", shown, err)
		}
		if again.ID != "id" || again.OrgID != "org" || again.ByUser != "dev" || again.State != "pending" || again.Approved || again.JWTSecret != "" || again.Key != "" || again.DecidedBy != "" {
			t.Fatalf("shown %s", shown)
		}
		twice, err := s.row("id", "org", &resolved{record: again, policies: []string{"p"}, kind: Token})
		if err != nil {
			t.Fatal(err)
		}
		twice.State, twice.DeveloperID = row.State, row.DeveloperID
		if second := show(t, s, twice); !bytes.Equal(shown, second) {
			t.Fatalf("shown %s\nthen  %s", shown, second)
		}
	})
}

func show(t *testing.T, s *Requests, row *store.KeyRequest) json.RawMessage {
	t.Helper()
	r, err := s.recordOf(row)
	if err != nil {
		t.Fatal(err)
	}
	body, err := model.Write(r)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
