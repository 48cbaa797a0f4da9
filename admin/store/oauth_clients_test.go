package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// aClient is a client of a developer, on a database of its own.
func aClient(t *testing.T) (*Store, *OAuthClient) {
	t.Helper()
	st, _ := fresh(t)
	row := &OAuthClient{ClientID: "c", OrgID: "one", DeveloperID: "d", PolicyID: "gold", KeyHash: "identity", SecretHash: []byte("s")}
	err := st.InTx(t.Context(), func(tx *Tx) error {
		_, err := tx.InsertDeveloper(t.Context(), db.InsertDeveloperParams{ID: "d", OrgID: "one", Email: "d@example.com", PasswordHistory: []string{}, Fields: []byte("{}"), Extra: []byte("{}")})
		if err != nil {
			return err
		}
		session := &definition.Session{Extra: &definition.Extra{OAuthClientID: "c"}}
		if err := tx.CommitKey(t.Context(), by("one"), &KeyChange{Hash: "identity", Session: session, New: true}); err != nil {
			return err
		}
		return tx.CreateOAuthClient(t.Context(), row)
	})
	if err != nil {
		t.Fatal(err)
	}
	return st, row
}

// deliverSome returns what one delivery brings to the gateways, in that order, and
// whether it is gone.
func deliverSome(t *testing.T, st *Store, result error) (hashes []string) {
	t.Helper()
	_, _, err := st.Deliver(t.Context(), 50, func(all []Delivery) []error {
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
	st, row := aClient(t)
	issue := func(hash string) {
		t.Helper()
		if full, err := st.IssueOAuthToken(t.Context(), row, OAuthToken{Hash: hash, Ends: time.Now().Add(time.Hour)}, 10); err != nil || full {
			t.Fatal(full, err)
		}
	}
	revoke := func(hash string) {
		t.Helper()
		if revoked, err := st.RevokeOAuthToken(t.Context(), row, OAuthToken{Hash: hash}); err != nil || !revoked {
			t.Fatal(revoked, err)
		}
	}
	issue("t1")
	if got := deliverSome(t, st, nil); !slices.Equal(got, []string{"identity", "t1"}) {
		t.Fatalf("delivered %q", got)
	}
	revoke("t1")
	if got := deliverSome(t, st, nil); !slices.Equal(got, []string{"t1 gone", "identity"}) {
		t.Errorf("delivered %q", got)
	}
	issue("t2") // which was not delivered yet
	revoke("t2")
	if got := deliverSome(t, st, context.DeadlineExceeded); !slices.Equal(got, []string{"t2 gone"}) {
		t.Errorf("delivered first %q", got)
	}
	if err := st.DeliverKey(t.Context(), "identity", func([]Delivery) []error {
		t.Error("the client comes although the token could not be deleted")
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := st.DeliverKey(t.Context(), "t2", func(all []Delivery) []error { return make([]error, len(all)) }); err != nil {
		t.Error(err)
	}
	if got := deliverSome(t, st, nil); !slices.Equal(got, []string{"identity"}) {
		t.Errorf("delivered then %q", got)
	}
}
