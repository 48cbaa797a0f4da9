package store

import (
	"context"
	"sync"
	"testing"
	"time"
)

// What runs in a transaction may read outside of it, through a room that knows
// nothing of it. Were every connection held by a transaction, all would wait for
// each other.
func TestReadsBesideTransactionsFindAConnection(t *testing.T) {
	s, _ := fresh(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var writing sync.WaitGroup
	for range 100 {
		writing.Go(func() {
			err := s.InTx(ctx, func(*Tx) error {
				_, err := s.State(ctx)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
}
