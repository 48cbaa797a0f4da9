package store

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// DeliveryChannel is the channel on which new messages are announced, see
// Store.Subscribe.
const DeliveryChannel = "sluice_deliveries"

// States of a message.
const (
	MessagePending = "pending" // it waits or is being sent
	MessageDone    = "done"    // the target accepted it
	MessageFailed  = "failed"  // given up
	MessageKept    = "kept"    // a letter in the local mailbox
)

// ErrQueueFull reports that as many messages wait for a target as may.
var ErrQueueFull = errors.New("too many messages wait for this target")

// Message is a stored message.
type Message = db.Delivery

// NewMessage is a message that is to be stored.
type NewMessage = db.PutDeliveryParams

// PutMessage stores a message, which is announced with the transaction's commit, or
// returns ErrQueueFull.
func (tx *Tx) PutMessage(ctx context.Context, n NewMessage) error {
	stored, err := tx.Queries.PutDelivery(ctx, n)
	if err == nil && stored == 0 {
		return ErrQueueFull
	}
	return err
}

// MessageQuery selects messages to be sent.
type MessageQuery struct {
	Kind  string
	Busy  []string      // targets that get no messages for now
	Max   int           // messages
	Lease time.Duration // how long the messages are leased
}

// LeaseMessages leases messages that are due, at most one for each target.
func (s *Store) LeaseMessages(ctx context.Context, w MessageQuery) ([]Message, error) {
	var rows []Message
	err := s.InTx(ctx, func(tx *Tx) (err error) {
		rows, err = tx.Queries.TakeDeliveries(ctx, db.TakeDeliveriesParams{
			LeaseSeconds: w.Lease.Seconds(), Kind: w.Kind, Busy: w.Busy, Max: Page{Max: w.Max}.Limit(),
		})
		return err
	})
	return rows, err
}

// AttemptResult is the result of an attempt.
type AttemptResult struct {
	State  string
	Again  time.Duration // until the next attempt, where the state is MessagePending
	Status int           // of the answer; 0: none
	Error  string
	Took   time.Duration
}

// FinishAttempt records the result of an attempt. It returns false if the lease has
// ended and another admin may have the message.
func (tx *Tx) FinishAttempt(ctx context.Context, r *Message, res AttemptResult) (bool, error) {
	n, err := tx.Queries.SettleDelivery(ctx, db.SettleDeliveryParams{
		ID: r.ID, LeasedUntil: r.LeasedUntil, State: res.State, AgainSeconds: res.Again.Seconds(),
		Status: int32(res.Status), Error: res.Error, Milliseconds: res.Took.Milliseconds(),
	})
	return n > 0, err
}

// ReturnMessage ends the lease of a message that was not attempted. It is due again
// after a pause.
func (s *Store) ReturnMessage(ctx context.Context, r *Message, pause time.Duration) error {
	return s.InTx(ctx, func(tx *Tx) error {
		err := tx.Queries.ReturnDelivery(ctx, db.ReturnDeliveryParams{ID: r.ID, LeasedUntil: r.LeasedUntil, AgainSeconds: pause.Seconds()})
		if err != nil {
			return err
		}
		return tx.Queries.AnnounceDeliveries(ctx) // another admin may take it at once
	})
}

// HoldMessages delays all waiting messages for a target.
func (tx *Tx) HoldMessages(ctx context.Context, kind, target string, hold time.Duration) error {
	return tx.Queries.HoldDeliveries(ctx, db.HoldDeliveriesParams{Kind: kind, Target: target, HoldSeconds: hold.Seconds()})
}

// DropMessages gives up all messages that wait for a target and are not being sent.
func (tx *Tx) DropMessages(ctx context.Context, kind, target, why string) error {
	return tx.Queries.DropDeliveries(ctx, db.DropDeliveriesParams{Kind: kind, Target: target, Error: why})
}

// MessageByID returns a message of an organisation, or ErrNotFound.
func (s *Store) MessageByID(ctx context.Context, org, id string) (Message, error) {
	row, err := s.queries.DeliveryByID(ctx, db.DeliveryByIDParams{OrgID: org, ID: id})
	return row, translate(err)
}

// LockMessage is MessageByID, with the message locked until the transaction ends.
func (tx *Tx) LockMessage(ctx context.Context, org, id string) (Message, error) {
	row, err := tx.Queries.LockDelivery(ctx, db.LockDeliveryParams{OrgID: org, ID: id})
	return row, translate(err)
}

// ReplayMessage puts a message back into the queue, as if it were new.
func (tx *Tx) ReplayMessage(ctx context.Context, id string) error {
	if err := tx.Queries.ReplayDelivery(ctx, id); err != nil {
		return err
	}
	return tx.Queries.AnnounceDeliveries(ctx)
}

// MessageFilter filters a list of messages. Empty members do not filter; Target takes
// precedence over Developer.
type MessageFilter struct{ Target, Developer, State string }

// ListMessages returns one page of an organisation's messages, newest first, and their
// total number.
func (s *Store) ListMessages(ctx context.Context, org string, f MessageFilter, page Page) ([]Message, int64, error) {
	total, err := countMessages(ctx, s.queries, org, f)
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := listMessages(ctx, s.queries, org, f, page)
	return rows, total, translate(err)
}

func countMessages(ctx context.Context, q *db.Queries, org string, f MessageFilter) (int64, error) {
	switch {
	case f.Target != "":
		return q.CountDeliveriesTo(ctx, db.CountDeliveriesToParams{OrgID: org, Target: f.Target, State: f.State})
	case f.Developer != "":
		return q.CountDeliveriesFor(ctx, db.CountDeliveriesForParams{OrgID: org, DeveloperID: f.Developer, State: f.State})
	case f.State != "":
		return q.CountDeliveriesInState(ctx, db.CountDeliveriesInStateParams{OrgID: org, State: f.State})
	}
	return q.CountDeliveries(ctx, org)
}

func listMessages(ctx context.Context, q *db.Queries, org string, f MessageFilter, page Page) ([]Message, error) {
	skip, limit := page.Offset(), page.Limit()
	switch {
	case f.Target != "":
		return q.ListDeliveriesTo(ctx, db.ListDeliveriesToParams{OrgID: org, Target: f.Target, State: f.State, Skip: skip, Max: limit})
	case f.Developer != "":
		return q.ListDeliveriesFor(ctx, db.ListDeliveriesForParams{OrgID: org, DeveloperID: f.Developer, State: f.State, Skip: skip, Max: limit})
	case f.State != "":
		return q.ListDeliveriesInState(ctx, db.ListDeliveriesInStateParams{OrgID: org, State: f.State, Skip: skip, Max: limit})
	}
	return q.ListDeliveries(ctx, db.ListDeliveriesParams{OrgID: org, Skip: skip, Max: limit})
}

// SweepMessages deletes up to most messages that were finished longer ago than keep,
// and returns how many.
func (s *Store) SweepMessages(ctx context.Context, keep time.Duration, most int) (gone int64, err error) {
	err = s.InTx(ctx, func(tx *Tx) (err error) {
		gone, err = tx.Queries.SweepDeliveries(ctx, db.SweepDeliveriesParams{KeepSeconds: keep.Seconds(), Max: Page{Max: most}.Limit()})
		return err
	})
	return gone, err
}

// MessageBacklog is the number and age of waiting messages of one kind; Oldest and Late
// are in seconds.
type MessageBacklog = db.DeliveryBacklogRow

// MessageBacklogs returns the waiting messages by kind.
func (s *Store) MessageBacklogs(ctx context.Context) ([]MessageBacklog, error) {
	rows, err := s.queries.DeliveryBacklog(ctx)
	return rows, translate(err)
}
