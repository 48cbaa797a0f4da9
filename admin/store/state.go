package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
)

// State identifies a configuration.
type State struct {
	Revision   int64 // counts changes; 0 before the first
	Generation int64 // counts reloads that were asked for without a change
	Clears     int64 // counts times that kept answers were to be forgotten
	Secrets    int64 // counts changes of secrets that definitions refer to
}

// State returns the current state.
func (s *Store) State(ctx context.Context) (State, error) { return stateOf(ctx, s.queries) }

func stateOf(ctx context.Context, q *db.Queries) (State, error) {
	row, err := q.ConfigState(ctx)
	return State{Revision: row.Revision, Generation: row.Generation, Clears: row.Clears, Secrets: row.Secrets}, translate(err)
}

// An Entry is an API or a policy as gateways get it.
type Entry struct {
	ID   string
	JSON []byte
}

// Configuration is everything that gateways serve.
type Configuration struct {
	State
	APIs     []Entry               // by the bytes of their ids
	Policies []Entry               // likewise
	Caches   map[string]int64      // by API: which of State.Clears was its last
	Secrets  map[SecretName][]byte // sealed

	// Cleared reports that there are no APIs because they were deleted, and not
	// because the database is new.
	Cleared bool
}

// Configuration returns the configuration of all organisations, at one moment.
func (s *Store) Configuration(ctx context.Context) (*Configuration, error) {
	c := new(Configuration)
	err := s.atOneMoment(ctx, func(q *db.Queries) (err error) {
		if c.State, err = stateOf(ctx, q); err != nil {
			return err
		}
		apis, err := q.BundleAPIs(ctx)
		if err != nil {
			return err
		}
		policies, err := q.BundlePolicies(ctx)
		if err != nil {
			return err
		}
		hooks, err := readHooks(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range apis {
			c.APIs = append(c.APIs, Entry{row.ID, hooks.filled(row.Definition)})
		}
		for _, row := range policies {
			c.Policies = append(c.Policies, Entry{row.ID, row.Body})
		}
		if len(apis) == 0 {
			if c.Cleared, err = q.AnyAPIEver(ctx); err != nil {
				return err
			}
		}
		if c.Secrets, err = allSecrets(ctx, q); err != nil {
			return err
		}
		c.Caches, err = clearsOf(ctx, q, c.State)
		return err
	})
	return c, err
}

// Changes is what a configuration differs by from an earlier one.
type Changes struct {
	State
	APIs     map[string][]byte // by id; nil: it is gone
	Policies map[string][]byte // likewise
	Caches   map[string]int64  // as in Configuration, all of them

	// Secrets are as in Configuration, all of them; nil: they are those of the earlier
	// configuration.
	Secrets map[SecretName][]byte
}

// ChangesSince returns what happened to the configuration since a state, at one moment,
// and nil when that is not known: where its revision lies ahead, the database is not the
// one that it was.
func (s *Store) ChangesSince(ctx context.Context, state State) (*Changes, error) {
	revision := state.Revision
	c := &Changes{APIs: make(map[string][]byte), Policies: make(map[string][]byte)}
	err := s.atOneMoment(ctx, func(q *db.Queries) (err error) {
		if c.State, err = stateOf(ctx, q); err != nil {
			return err
		}
		if c.Caches, err = clearsOf(ctx, q, c.State); err != nil || c.Revision <= revision {
			return err
		}
		if c.State.Secrets != state.Secrets {
			if c.Secrets, err = allSecrets(ctx, q); err != nil {
				return err
			}
		}
		return c.read(ctx, q, revision)
	})
	if err != nil || c.Revision < revision {
		return nil, err
	}
	return c, nil
}

func (c *Changes) read(ctx context.Context, q *db.Queries, revision int64) error {
	changed, err := q.ChangedSince(ctx, revision)
	if err != nil {
		return err
	}
	var apiIDs, policyIDs []string
	for _, one := range changed {
		if one.Kind == kindAPI {
			apiIDs, c.APIs[one.ID] = append(apiIDs, one.ID), nil
		} else {
			policyIDs, c.Policies[one.ID] = append(policyIDs, one.ID), nil
		}
	}
	apis, err := q.BundleAPIsByID(ctx, apiIDs)
	if err != nil {
		return err
	}
	policies, err := q.BundlePoliciesByID(ctx, policyIDs)
	if err != nil {
		return err
	}
	hooks, err := readHooks(ctx, q)
	if err != nil {
		return err
	}
	for _, row := range apis {
		c.APIs[row.ID] = hooks.filled(row.Definition)
	}
	for _, row := range policies {
		c.Policies[row.ID] = row.Body
	}
	return nil
}

// atOneMoment reads with queries that all see the same.
func (s *Store) atOneMoment(ctx context.Context, read func(*db.Queries) error) error {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error { return read(s.queries.WithTx(tx)) })
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", translate(err))
	}
	return nil
}

// clearsOf returns when the answers kept for APIs were last to be forgotten, nil
// when they never were.
func clearsOf(ctx context.Context, q *db.Queries, at State) (map[string]int64, error) {
	if at.Clears == 0 {
		return nil, nil
	}
	rows, err := q.ListClears(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	all := make(map[string]int64, len(rows))
	for _, row := range rows {
		all[row.APIID] = row.Clear
	}
	return all, nil
}

// ForgetAnswers has all gateways forget the answers that they keep for an API of
// the author's organisation. It returns ErrNotFound when there is no such API.
func (s *Store) ForgetAnswers(ctx context.Context, by Author, api string) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		row, err := q.APIByID(ctx, db.APIByIDParams{OrgID: by.Org, ID: api})
		if err != nil {
			return err
		}
		clear, err := q.BumpClears(ctx)
		if err != nil {
			return err
		}
		if err := q.PutClear(ctx, db.PutClearParams{APIID: row.ID, Clear: clear}); err != nil {
			return err
		}
		return audit(ctx, q, by, AuditEntry{Action: "emptied", Kind: "cache", ID: row.ID})
	})
}

// Reload announces the current revision again, for gateways to take anew.
func (s *Store) Reload(ctx context.Context, by Author) error {
	return s.inTx(ctx, func(q *db.Queries) error {
		if _, err := q.BumpGeneration(ctx); err != nil {
			return err
		}
		return audit(ctx, q, by, AuditEntry{Action: "reloaded", Kind: "gateways"})
	})
}
