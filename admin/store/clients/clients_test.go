package clients_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/clients"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// made is a client of a developer, on a database of its own.
func made(t *testing.T) (*store.Store, *clients.Row) {
	t.Helper()
	dsn := testenv.Database(t, func(ctx context.Context, dsn string) error {
		_, err := store.Migrate(ctx, dsn)
		return err
	}, "clients")
	st, err := store.Open(t.Context(), store.Options{URL: dsn, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if _, err := st.Bootstrap(t.Context(), "one", store.User{OrgID: "one", ID: "u", Email: "u@example.com", Role: "admin", Active: true, AccessKeyHash: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	by := store.Author{Org: "one", Name: "test", Kind: "user"}
	row := &clients.Row{ClientID: "c", OrgID: "one", DeveloperID: "d", PolicyID: "gold", KeyHash: "identity", SecretHash: []byte("s")}
	err = st.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertDeveloper(t.Context(), db.InsertDeveloperParams{ID: "d", OrgID: "one", Email: "d@example.com", PasswordHistory: []string{}, Fields: []byte("{}"), Extra: []byte("{}")})
		if err != nil {
			return err
		}
		session := &definition.Session{Extra: &definition.Extra{OAuthClientID: "c"}}
		if err := tx.CommitKey(t.Context(), by, &store.KeyChange{Hash: "identity", Session: session, New: true}); err != nil {
			return err
		}
		return clients.Insert(t.Context(), tx, row)
	})
	if err != nil {
		t.Fatal(err)
	}
	return st, row
}

// delivered returns what one delivery brings to the gateways, in that order, and
// whether it is gone.
func delivered(t *testing.T, st *store.Store, result error) (hashes []string) {
	t.Helper()
	_, _, err := st.Deliver(t.Context(), 50, func(all []store.Delivery) []error {
		results := make([]error, len(all))
		for i, d := range all {
			if d.Session == nil {
				d.Hash += " gone"
			}
			hashes = append(hashes, d.Hash)
			results[i] = result
		}
		return results
	})
	if err != nil {
		t.Fatal(err)
	}
	return hashes
}

// TestARevokedTokenIsGoneBeforeItsClientIsLookedUpAgain: a gateway that looked the
// client up again while the token was still there would take the token for as long
// as it keeps sessions.
func TestARevokedTokenIsGoneBeforeItsClientIsLookedUpAgain(t *testing.T) {
	st, row := made(t)
	issue := func(hash string) {
		t.Helper()
		if full, err := clients.Issue(t.Context(), st, row, clients.Token{Hash: hash, Ends: time.Now().Add(time.Hour)}, 10); err != nil || full {
			t.Fatal(full, err)
		}
	}
	revoke := func(hash string) {
		t.Helper()
		if revoked, err := clients.Revoke(t.Context(), st, row, clients.Token{Hash: hash}); err != nil || !revoked {
			t.Fatal(revoked, err)
		}
	}
	issue("t1")
	if got := delivered(t, st, nil); !slices.Equal(got, []string{"identity", "t1"}) {
		t.Fatalf("delivered %q", got)
	}
	revoke("t1")
	if got := delivered(t, st, nil); !slices.Equal(got, []string{"t1 gone", "identity"}) {
		t.Errorf("delivered %q", got)
	}
	issue("t2") // which was not delivered yet
	revoke("t2")
	if got := delivered(t, st, context.DeadlineExceeded); !slices.Equal(got, []string{"t2 gone"}) {
		t.Errorf("delivered first %q", got)
	}
	if err := st.DeliverKey(t.Context(), "identity", func([]store.Delivery) []error {
		t.Error("the client comes although the token could not be deleted")
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := st.DeliverKey(t.Context(), "t2", func(all []store.Delivery) []error { return make([]error, len(all)) }); err != nil {
		t.Error(err)
	}
	if got := delivered(t, st, nil); !slices.Equal(got, []string{"identity"}) {
		t.Errorf("delivered then %q", got)
	}
}
