package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
)

// State tells one configuration from another.
type State struct {
	Revision   int64 // counts changes; 0 before the first
	Generation int64 // counts reloads that were asked for without a change
}

// State returns the current state.
func (s *Store) State(ctx context.Context) (State, error) { return stateOf(ctx, s.queries) }

func stateOf(ctx context.Context, q *db.Queries) (State, error) {
	row, err := q.ConfigState(ctx)
	return State{Revision: row.Revision, Generation: row.Generation}, translate(err)
}

// Configuration is everything that gateways serve.
type Configuration struct {
	State
	APIs     [][]byte // definitions as JSON, by id
	Policies [][]byte // likewise

	// Cleared says that there are no APIs because they were deleted, and not
	// because this is a database in which there never were any.
	Cleared bool
}

// Configuration returns the configuration of all organisations, at one moment.
func (s *Store) Configuration(ctx context.Context) (*Configuration, error) {
	c := new(Configuration)
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error {
		q := s.queries.WithTx(tx)
		var err error
		if c.State, err = stateOf(ctx, q); err != nil {
			return err
		}
		if c.APIs, err = q.BundleAPIs(ctx); err != nil {
			return err
		}
		if c.Policies, err = q.BundlePolicies(ctx); err != nil {
			return err
		}
		if len(c.APIs) == 0 {
			c.Cleared, err = q.AnyAPIEver(ctx)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", translate(err))
	}
	return c, nil
}

// Reload announces the current revision again, for gateways to take anew.
func (s *Store) Reload(ctx context.Context, by Author) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		if _, err := q.BumpGeneration(ctx); err != nil {
			return err
		}
		return audit(ctx, q, by, Deed{Action: "reloaded", Kind: "gateways"})
	})
}
