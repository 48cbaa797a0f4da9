package delivery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/admin/store"
)

// A Receiver is a webhook of a developer.
type Receiver struct{ Webhook, Developer string }

// An Event is a message of a stream for many webhooks. It is queued once for each of them,
// however often it is put.
type Event struct {
	Org     string
	Type    string
	Source  string // tells it from all other events
	Payload []byte
	To      []Receiver // each webhook once
}

// PutEvent queues an event as part of a transaction. Webhooks for which there is no room do
// not get it; they are returned. After ErrTooLarge nothing was queued.
func (q *Queue) PutEvent(ctx context.Context, tx *store.Tx, e Event) (store.QueuedEvent, error) {
	if len(e.Payload) > MaxPayload {
		return store.QueuedEvent{}, ErrTooLarge
	}
	type delivery struct {
		id string
		to Receiver
	}
	all := make([]delivery, 0, len(e.To))
	for _, to := range e.To {
		all = append(all, delivery{eventID(e.Source, to.Webhook), to})
	}
	// Transactions that repeat one another take the rows in one order.
	slices.SortFunc(all, func(a, b delivery) int { return cmp.Compare(a.id, b.id) })
	n := store.NewEvent{OrgID: e.Org, Event: e.Type, Payload: e.Payload, Bound: maxEvents, Bytes: maxEventBytes}
	for _, one := range all {
		n.IDs, n.Targets, n.Developers = append(n.IDs, one.id), append(n.Targets, one.to.Webhook), append(n.Developers, one.to.Developer)
	}
	done, err := tx.PutEvent(ctx, n)
	if err != nil {
		return done, fmt.Errorf("queueing an event: %w", err)
	}
	q.meters.refused.WithLabelValues(Webhook).Add(float64(len(done.FullTargets)))
	return done, nil
}

// eventID returns the id of the delivery of an event to a webhook.
func eventID(source, webhook string) string {
	hash := sha256.Sum256([]byte(webhook + "\n" + source))
	return "msg_" + hex.EncodeToString(hash[:16])
}
