package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// A key of another organisation is to nobody any other than one that is not there.
func TestExplanationsNameKeysOfTheOrganisationAlone(t *testing.T) {
	url := testenv.Database(t, func(ctx context.Context, url string) error {
		_, err := store.Migrate(ctx, url)
		return err
	}, "admin")
	s, err := store.Open(t.Context(), store.Options{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.Bootstrap(t.Context(), "one", store.User{ID: "u", OrgID: "one", Email: "a@example.org", Role: "admin", AccessKeyHash: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	hash := strings.Repeat("ab", 32)
	change := store.KeyChange{Hash: hash, Session: &definition.Session{OrgID: "one", Alias: "secret"}, New: true}
	if err := s.CommitKey(t.Context(), store.Author{Org: "one", Name: "test", Kind: "system", Source: "api"}, change); err != nil {
		t.Fatal(err)
	}
	e := &adminExplainer{store: s, current: func() (string, []byte) { return "", nil }}
	ask := func(org, hash string) string {
		_, err := e.Explain(t.Context(), org, []byte(`{"url":"/x","key_hash":"`+hash+`"}`))
		if !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return err.Error()
	}
	if said := ask("one", hash); !strings.Contains(said, "configuration") {
		t.Errorf("a key of the organisation: %s", said)
	}
	foreign, absent := ask("two", hash), ask("one", strings.Repeat("cd", 32))
	if foreign != absent || !strings.Contains(foreign, "key_hash") {
		t.Errorf("%q, but without any such key %q", foreign, absent)
	}
}
