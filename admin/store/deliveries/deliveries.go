// Package deliveries keeps what is to leave the admin: the messages that wait, and
// what became of those before.
package deliveries

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Channel is where new messages are announced, see store.Store.Heed.
const Channel = "sluice_deliveries"

// States of a message.
const (
	Pending = "pending" // it waits, or is on its way
	Done    = "done"    // its target took it
	Failed  = "failed"  // given up
	Kept    = "kept"    // a letter in the local mailbox
)

// ErrFull says that as many messages wait for a target as may.
var ErrFull = errors.New("too many messages wait for this target")

// Row is a stored message.
type Row = db.Delivery

// New is a message that is to be stored.
type New = db.PutDeliveryParams

// Put stores a message, which is announced with the transaction's commit, or
// returns ErrFull.
func Put(ctx context.Context, tx *store.Tx, n New) error {
	stored, err := tx.PutDelivery(ctx, n)
	if err == nil && stored == 0 {
		return ErrFull
	}
	return err
}

// Want says which messages somebody can send now.
type Want struct {
	Kind  string
	Busy  []string      // targets that get no more for now
	Max   int           // messages
	Lease time.Duration // until when nobody else takes them
}

// Take leases messages that are due, one for each target at most.
func Take(ctx context.Context, st *store.Store, w Want) ([]Row, error) {
	var rows []Row
	err := st.InTx(ctx, func(tx *store.Tx) (err error) {
		rows, err = tx.TakeDeliveries(ctx, db.TakeDeliveriesParams{
			LeaseSeconds: w.Lease.Seconds(), Kind: w.Kind, Busy: w.Busy, Max: store.Page{Max: w.Max}.Limit(),
		})
		return err
	})
	return rows, err
}

// Result is what became of an attempt.
type Result struct {
	State  string
	Again  time.Duration // until the next attempt, where the state is Pending
	Status int           // of the answer; 0: none
	Error  string
	Took   time.Duration
}

// Settle notes what became of an attempt. It returns false when the lease ran out
// and the message is somebody else's.
func Settle(ctx context.Context, tx *store.Tx, r *Row, res Result) (bool, error) {
	n, err := tx.SettleDelivery(ctx, db.SettleDeliveryParams{
		ID: r.ID, LeasedUntil: r.LeasedUntil, State: res.State, AgainSeconds: res.Again.Seconds(),
		Status: int32(res.Status), Error: res.Error, Milliseconds: res.Took.Milliseconds(),
	})
	return n > 0, err
}

// Return ends the lease of a message of which no attempt came to an end. It can be
// taken again after a pause.
func Return(ctx context.Context, st *store.Store, r *Row, pause time.Duration) error {
	return st.InTx(ctx, func(tx *store.Tx) error {
		err := tx.ReturnDelivery(ctx, db.ReturnDeliveryParams{ID: r.ID, LeasedUntil: r.LeasedUntil, AgainSeconds: pause.Seconds()})
		if err != nil {
			return err
		}
		return tx.AnnounceDeliveries(ctx) // another admin may take it at once
	})
}

// Hold puts off everything that waits for a target.
func Hold(ctx context.Context, tx *store.Tx, kind, target string, hold time.Duration) error {
	return tx.HoldDeliveries(ctx, db.HoldDeliveriesParams{Kind: kind, Target: target, HoldSeconds: hold.Seconds()})
}

// Drop gives up everything that waits for a target and is not on its way.
func Drop(ctx context.Context, tx *store.Tx, kind, target, why string) error {
	return tx.DropDeliveries(ctx, db.DropDeliveriesParams{Kind: kind, Target: target, Error: why})
}

// Get returns a message of an organisation, or store.ErrNotFound.
func Get(ctx context.Context, st *store.Store, org, id string) (Row, error) {
	row, err := st.Read().DeliveryByID(ctx, db.DeliveryByIDParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Lock is Get, and keeps others from the message until the transaction ends.
func Lock(ctx context.Context, tx *store.Tx, org, id string) (Row, error) {
	row, err := tx.LockDelivery(ctx, db.LockDeliveryParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Replay puts a message back into the queue, as if it were new.
func Replay(ctx context.Context, tx *store.Tx, id string) error {
	if err := tx.ReplayDelivery(ctx, id); err != nil {
		return err
	}
	return tx.AnnounceDeliveries(ctx)
}

// Filter says which messages a list holds. Empty members do not restrict; Target
// goes before Developer.
type Filter struct{ Target, Developer, State string }

// List returns one page of an organisation's messages, newest first, and how many
// there are in all.
func List(ctx context.Context, st *store.Store, org string, f Filter, page store.Page) ([]Row, int64, error) {
	total, err := count(ctx, st.Read(), org, f)
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	rows, err := list(ctx, st.Read(), org, f, page)
	return rows, total, store.Translate(err)
}

func count(ctx context.Context, q *db.Queries, org string, f Filter) (int64, error) {
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

func list(ctx context.Context, q *db.Queries, org string, f Filter, page store.Page) ([]Row, error) {
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

// Sweep forgets up to most messages that were finished longer ago than keep, and
// returns how many.
func Sweep(ctx context.Context, st *store.Store, keep time.Duration, most int) (gone int64, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) (err error) {
		gone, err = tx.SweepDeliveries(ctx, db.SweepDeliveriesParams{KeepSeconds: keep.Seconds(), Max: store.Page{Max: most}.Limit()})
		return err
	})
	return gone, err
}

// Backlog is what waits of one kind; Oldest and Late are seconds.
type Backlog = db.DeliveryBacklogRow

// Backlogs returns what waits, by kind.
func Backlogs(ctx context.Context, st *store.Store) ([]Backlog, error) {
	rows, err := st.Read().DeliveryBacklog(ctx)
	return rows, store.Translate(err)
}
