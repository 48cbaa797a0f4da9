package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// ErrFilling reports that deliveries wait until the key store is filled.
var ErrFilling = errors.New("the key store is being filled")

// Delivery is a key whose copy in the key store is out of date.
type Delivery struct {
	Hash    string
	Session *definition.Session // new copy; nil: delete it
	Reset   []string            // counters to forget

	then string // hash of the key to be delivered after this one; "" for none
}

// Deliver passes up to most waiting deliveries to deliver, which returns an error for
// each, and deletes those without an error; the others are delivered later. It returns
// how many it took and how many failed.
//
// The keys are locked until it returns, so that a copy is never overwritten by an older
// one. The sessions are the latest ones, so that a late delivery does no harm.
func (s *Store) Deliver(ctx context.Context, most int, deliver func([]Delivery) []error) (taken, failed int, err error) {
	for taken < most {
		one, missed, err := s.deliverFollowed(ctx, deliver)
		taken, failed = taken+one, failed+missed
		if err != nil {
			return taken, failed, err
		}
		if one == 0 || missed > 0 {
			break
		}
	}
	if taken >= most {
		return taken, failed, nil
	}
	more, missed, err := s.deliver(ctx, deliver, func(q *db.Queries) ([]db.TakeOutboxRow, error) {
		return q.TakeOutbox(ctx, Page{Max: most - taken}.bounded())
	})
	return taken + more, failed + missed, err
}

// deliverFollowed delivers one key that another is to follow, if one is due. Each has a
// transaction of its own: the following key may be locked by a transaction that deletes
// many keys and waits for those that are locked here.
func (s *Store) deliverFollowed(ctx context.Context, deliver func([]Delivery) []error) (taken, failed int, err error) {
	return s.deliver(ctx, deliver, func(q *db.Queries) ([]db.TakeOutboxRow, error) {
		rows, err := q.TakeOutboxFollowed(ctx)
		taken := make([]db.TakeOutboxRow, 0, len(rows))
		for _, row := range rows {
			taken = append(taken, db.TakeOutboxRow(row))
		}
		return taken, err
	})
}

// DeliverKey is Deliver for one key. It waits while another process delivers it.
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
		free, err := q.TryDeliverLock(ctx)
		if err != nil {
			return err
		}
		if !free {
			return ErrFilling
		}
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
		if err := q.DelayOutbox(ctx, again); err != nil {
			return err
		}
		return putFollowing(ctx, q, deliveries, done)
	})
	return taken, failed, err
}

// putFollowing adds the keys that follow delivered ones to the outbox.
func putFollowing(ctx context.Context, q *db.Queries, deliveries []Delivery, done []string) error {
	for _, d := range deliveries {
		if d.then == "" || !slices.Contains(done, d.Hash) {
			continue
		}
		if err := q.PutOutbox(ctx, db.PutOutboxParams{ID: d.then, Reset: []string{}}); err != nil {
			return err
		}
	}
	return nil
}

// split returns the hashes of delivered and of failed keys.
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

// deliveries reads what the copies should be. The rows are locked, so a
// later change of a key waits to be noted until we are done.
func (s *Store) deliveries(ctx context.Context, q *db.Queries, rows []db.TakeOutboxRow) ([]Delivery, error) {
	list := make([]Delivery, 0, len(rows))
	for _, row := range rows {
		d := Delivery{Hash: row.ID}
		var payload struct {
			Reset []string
			Then  string
		}
		if err := json.Unmarshal(row.Payload, &payload); err != nil {
			return nil, fmt.Errorf("reading the outbox row of key %.12s: %w", row.ID, err)
		}
		d.Reset, d.then = payload.Reset, payload.Then
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

// fillBatch is how many keys are read at once.
const fillBatch = 1000

// FillKeys passes all keys of all organisations to fill, in order. Nothing is delivered
// until it returns: keys that change in the meantime are delivered afterwards, so that
// fill may write older ones. Ran is false if another process fills or delivers.
func (s *Store) FillKeys(ctx context.Context, fill func(iter.Seq2[Delivery, error]) error) (ran bool, err error) {
	err = s.inTx(ctx, func(q *db.Queries) error {
		if ran, err = q.TryFillLock(ctx); err != nil || !ran {
			return err
		}
		if err := q.AllowIdleTransaction(ctx); err != nil {
			return err
		}
		return fill(walk(ctx, q))
	})
	return ran, err
}

// walk yields all keys; after an error it ends.
func walk(ctx context.Context, q *db.Queries) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		for after := ""; ; {
			rows, err := q.WalkKeys(ctx, db.WalkKeysParams{After: after, Max: fillBatch})
			if err != nil {
				yield(Delivery{}, translate(err))
				return
			}
			for _, row := range rows {
				session, err := decodeSession(row.KeyHash, row.Body)
				if !yield(Delivery{Hash: row.KeyHash, Session: session}, err) || err != nil {
					return
				}
				after = row.KeyHash
			}
			if len(rows) < fillBatch {
				return
			}
		}
	}
}

// Backlog returns how many keys wait for delivery, and for how many seconds the
// first of them has.
func (s *Store) Backlog(ctx context.Context) (waiting int64, seconds float64, err error) {
	row, err := s.queries.OutboxBacklog(ctx)
	return row.Waiting, row.Seconds, translate(err)
}
