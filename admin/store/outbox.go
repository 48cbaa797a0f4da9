package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// Delivery is a key whose copy in the key store is behind.
type Delivery struct {
	Hash    string
	Session *definition.Session // what the copy should be; nil: none
	Reset   []string            // counters to forget
}

// Deliver hands up to most waiting deliveries to deliver, which returns an error
// for each, and forgets those without one; the others come again later. It
// returns how many there were and how many of them failed.
//
// Until it returns, nobody else delivers or changes the same keys: a copy is
// never overwritten by an older one. The session is the latest, so that a
// delivery that came late does no harm.
func (s *Store) Deliver(ctx context.Context, most int, deliver func([]Delivery) []error) (taken, failed int, err error) {
	return s.deliver(ctx, deliver, func(q *db.Queries) ([]db.TakeOutboxRow, error) {
		return q.TakeOutbox(ctx, Page{Max: most}.bounded())
	})
}

// DeliverKey is Deliver for one key, which it waits for when another delivers
// it just now.
func (s *Store) DeliverKey(ctx context.Context, hash string, deliver func([]Delivery) []error) error {
	_, failed, err := s.deliver(ctx, deliver, func(q *db.Queries) ([]db.TakeOutboxRow, error) {
		rows, err := q.TakeOutboxOf(ctx, hash)
		taken := make([]db.TakeOutboxRow, 0, len(rows))
		for _, row := range rows {
			taken = append(taken, db.TakeOutboxRow(row))
		}
		return taken, err
	})
	if err == nil && failed > 0 {
		err = errors.New("the key store did not take the key")
	}
	return err
}

func (s *Store) deliver(ctx context.Context, deliver func([]Delivery) []error,
	take func(*db.Queries) ([]db.TakeOutboxRow, error),
) (taken, failed int, err error) {
	err = s.inTx(ctx, func(q *db.Queries) error {
		rows, err := take(q)
		if err != nil || len(rows) == 0 {
			return err
		}
		deliveries, err := s.deliveries(ctx, q, rows)
		if err != nil {
			return err
		}
		done, again := split(deliveries, deliver(deliveries))
		taken, failed = len(deliveries), len(again)
		if err := q.DeleteOutbox(ctx, done); err != nil {
			return err
		}
		return q.DelayOutbox(ctx, again)
	})
	return taken, failed, err
}

// split sorts deliveries by what became of them.
func split(deliveries []Delivery, results []error) (done, again []string) {
	done, again = []string{}, []string{}
	for i, d := range deliveries {
		if results[i] == nil {
			done = append(done, d.Hash)
		} else {
			again = append(again, d.Hash)
		}
	}
	return done, again
}

// deliveries reads what the copies should be. The rows are locked, so whoever
// changes a key after this look waits to note it until we are done.
func (s *Store) deliveries(ctx context.Context, q *db.Queries, rows []db.TakeOutboxRow) ([]Delivery, error) {
	list := make([]Delivery, 0, len(rows))
	for _, row := range rows {
		d := Delivery{Hash: row.ID}
		var payload struct{ Reset []string }
		if err := json.Unmarshal(row.Payload, &payload); err != nil {
			return nil, fmt.Errorf("reading the outbox row of key %.12s: %w", row.ID, err)
		}
		d.Reset = payload.Reset
		body, err := q.KeyAnywhere(ctx, row.ID)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return nil, err
		default:
			if d.Session, err = decodeSession(row.ID, body); err != nil {
				return nil, err
			}
		}
		list = append(list, d)
	}
	return list, nil
}

// Refill hands all keys of all organisations to put, in batches of at most
// 1,000 and in order, from the first after another hash on. Nobody changes the
// keys of a batch until put returned. It stops at the first error and returns
// the last hash that put took.
func (s *Store) Refill(ctx context.Context, after string, put func([]Delivery) error) (last string, err error) {
	for {
		next := ""
		err = s.inTx(ctx, func(q *db.Queries) error {
			rows, err := q.ShareKeys(ctx, db.ShareKeysParams{After: after, Max: 1000})
			if err != nil || len(rows) == 0 {
				return err
			}
			batch := make([]Delivery, 0, len(rows))
			for _, row := range rows {
				session, err := decodeSession(row.KeyHash, row.Body)
				if err != nil {
					return err
				}
				batch = append(batch, Delivery{Hash: row.KeyHash, Session: session})
			}
			next = rows[len(rows)-1].KeyHash
			return put(batch)
		})
		if err != nil || next == "" {
			return after, err
		}
		after = next
	}
}

// Backlog returns how many keys wait for delivery, and for how many seconds the
// first of them has.
func (s *Store) Backlog(ctx context.Context) (waiting int64, seconds float64, err error) {
	row, err := s.queries.OutboxBacklog(ctx)
	return row.Waiting, row.Seconds, translate(err)
}
