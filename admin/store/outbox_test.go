package store

import (
	"sync"
	"testing"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// TestADeliveryAndADeletionOfManyKeysDoNotWaitForEachOther has a client of whom a
// token was ended be deleted, and another key with it, while that token and that key
// are delivered.
func TestADeliveryAndADeletionOfManyKeysDoNotWaitForEachOther(t *testing.T) {
	s, url := fresh(t)
	ctx := t.Context()
	for _, hash := range []string{"client", "token", "other"} {
		newKey(t, s, "one", hash)
	}
	drop(t, s)
	err := s.InTx(ctx, func(tx *Tx) error {
		for _, c := range []KeyChange{{Hash: "token"}, {Hash: "other", Session: rotated()}} {
			if err := tx.CommitKey(ctx, by("one"), &c); err != nil {
				return err
			}
		}
		return tx.PutOutboxAfter(ctx, db.PutOutboxAfterParams{ID: "token", Following: "client"})
	})
	if err != nil {
		t.Fatal(err)
	}

	deleted := make(chan error, 1)
	remove := func() {
		go func() {
			deleted <- s.InTx(ctx, func(tx *Tx) error {
				if err := tx.CommitKey(ctx, by("one"), &KeyChange{Hash: "client"}); err != nil {
					return err
				}
				return tx.CommitKey(ctx, by("one"), &KeyChange{Hash: "other"})
			})
		}()
		wait.Until(t, "the deletion waits or is done", func() bool {
			return len(deleted) > 0 || one[int](t, url, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") > 0
		})
	}
	var once sync.Once
	for range 2 {
		_, failed, err := s.Deliver(ctx, 10, func(all []Delivery) []error {
			once.Do(remove)
			return make([]error, len(all))
		})
		if err != nil || failed > 0 {
			t.Errorf("delivering: %d failed, %v", failed, err)
		}
	}
	if err := <-deleted; err != nil {
		t.Errorf("deleting: %v", err)
	}
	drop(t, s)
	if waiting, _, err := s.Backlog(ctx); err != nil || waiting != 0 {
		t.Errorf("%d keys wait, %v", waiting, err)
	}
}

// TestKeysThatOthersFollowAreDeliveredHoweverManyWait has more keys wait than one
// delivery takes.
func TestKeysThatOthersFollowAreDeliveredHoweverManyWait(t *testing.T) {
	s, _ := fresh(t)
	ctx := t.Context()
	for _, hash := range []string{"client", "token", "a", "b", "c"} {
		newKey(t, s, "one", hash)
	}
	drop(t, s)
	err := s.InTx(ctx, func(tx *Tx) error {
		for _, hash := range []string{"a", "b", "c", "token"} {
			if err := tx.CommitKey(ctx, by("one"), &KeyChange{Hash: hash}); err != nil {
				return err
			}
		}
		return tx.PutOutboxAfter(ctx, db.PutOutboxAfterParams{ID: "token", Following: "client"})
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	note := func(all []Delivery) []error {
		for _, d := range all {
			got = append(got, d.Hash)
		}
		return make([]error, len(all))
	}
	if taken, failed, err := s.Deliver(ctx, 2, note); err != nil || failed != 0 || taken != 2 || len(got) != 2 || got[0] != "token" {
		t.Errorf("delivered %q: %d taken, %d failed, %v", got, taken, failed, err)
	}
	if taken, _, err := s.Deliver(ctx, 10, note); err != nil || taken != 3 || len(got) != 5 {
		t.Errorf("delivered %q: %d taken, %v", got, taken, err)
	}
}
