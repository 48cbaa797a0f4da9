// Package delivery sends messages to webhooks, and letters. They wait in the database,
// where the transaction put them that they report: none is sent of what did not
// happen, and none is lost. Each is sent at least once, and never by two admins at the
// same time.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// Kinds of messages.
const (
	Webhook = "webhook" // to a webhook, whose id is the target
	Hook    = "hook"    // to a URL of the portal's configuration, which is the target
	Letter  = "letter"  // to an address, which is the target
)

// MaxPayload bounds a message, in bytes.
const MaxPayload = 256 << 10

// Bounds of what waits for one target.
const (
	maxWaiting = 1000 // messages, beside events of streams

	maxEvents     = 10_000   // events of streams
	maxEventBytes = 64 << 20 // of what waits for a webhook, when an event of a stream is to be added
)

// bound returns how many messages may wait for a target of a kind. Events of streams leave
// room for others.
func bound(kind string) int32 {
	if kind == Webhook {
		return maxEvents + maxWaiting
	}
	return maxWaiting
}

// ErrFull reports that as many messages wait for a target as may.
var ErrFull = store.ErrQueueFull

// ErrTooLarge reports a message longer than MaxPayload.
var ErrTooLarge = errors.New("the message is too large")

// A Message is sent once the transaction that queues it is committed.
type Message struct {
	Org       string
	Kind      string
	Target    string
	Developer string // whom it concerns, and who may see it; "" for nobody
	Event     string // type of the event, or which letter
	Payload   []byte
	Secret    bool // Payload holds a secret: it is stored sealed, and deleted when the message is finished
}

// A Delivery is one attempt to send a message.
type Delivery struct {
	ID        string // the same in every attempt
	Org       string
	Kind      string
	Target    string
	Developer string
	Event     string
	Payload   []byte
	Attempt   int // from 1 on
	Created   time.Time
}

// A Sender sends messages of one kind. Send returns when ctx ends, and may be called
// concurrently.
type Sender interface {
	Send(ctx context.Context, d Delivery) Outcome
}

// Result is how an attempt ended.
type Result uint8

// The results.
const (
	Again  Result = iota // it failed, and may succeed later
	Done                 // the target accepted the message
	Never                // it failed for good
	Kept                 // it stays in the database, such as a letter in the mailbox
	Missed               // no attempt was made, for a reason of the admin; it is not counted
)

// An Outcome is the result of an attempt.
type Outcome struct {
	Result Result
	Status int    // of the answer; 0: none
	Error  string // shown to users and to the developer; "" without a failure

	// After is the pause that the target asks for: no message is sent to it before.
	// 0: none.
	After time.Duration

	// Note is called in the transaction that records the outcome, if it is not nil.
	// Final reports that there is no further attempt.
	Note func(ctx context.Context, tx *store.Tx, final bool) error
}

// fullError is ErrFull as it is answered.
type fullError struct{}

func (fullError) Error() string { return "queueing a message: " + ErrFull.Error() }

func (fullError) Unwrap() error { return ErrFull }

// Refused implements rest.Refusal.
func (fullError) Refused() (status int, message string, problems []string) {
	return 503, "Too many messages wait for the receiver already; try again later", nil
}

// noMasterKey refuses messages that cannot be sealed.
type noMasterKey struct{ cause error }

func (e *noMasterKey) Error() string { return "sealing a message: " + e.cause.Error() }

func (e *noMasterKey) Unwrap() error { return e.cause }

// Refused implements rest.Refusal.
func (e *noMasterKey) Refused() (status int, message string, problems []string) {
	return 503, "admin.master_key is not set: what holds a secret cannot be kept without it", nil
}

// Put queues a message as part of a transaction, and returns the id that its receiver
// gets. The first attempt follows the commit at once. After ErrFull and ErrTooLarge
// nothing was queued, and the transaction can go on.
func (q *Queue) Put(ctx context.Context, tx *store.Tx, m Message) (id string, err error) {
	if len(m.Payload) > MaxPayload {
		return "", ErrTooLarge
	}
	n := store.NewMessage{
		ID: "msg_" + rest.NewID(), OrgID: m.Org, Kind: m.Kind, Target: m.Target, DeveloperID: m.Developer,
		Event: m.Event, Payload: m.Payload, Sealed: m.Secret, Bound: bound(m.Kind),
	}
	if m.Secret {
		if n.Payload, err = q.opts.MasterKey.Seal(m.Payload, place(n.ID)); err != nil {
			return "", &noMasterKey{err}
		}
	}
	if err := tx.PutMessage(ctx, n); err != nil {
		if errors.Is(err, ErrFull) {
			q.meters.refused.WithLabelValues(m.Kind).Inc()
			return "", fullError{}
		}
		return "", fmt.Errorf("queueing a message: %w", err)
	}
	return n.ID, nil
}

// CanSeal returns the error of Put for every message with a secret, or nil.
func (q *Queue) CanSeal() error {
	if _, err := q.opts.MasterKey.Seal(nil, place("")); err != nil {
		return &noMasterKey{err}
	}
	return nil
}

// Open returns the payload of a stored message.
func (q *Queue) Open(r *store.Message) ([]byte, error) {
	if !r.Sealed || len(r.Payload) == 0 {
		return r.Payload, nil
	}
	return q.opts.MasterKey.Open(r.Payload, place(r.ID))
}

// place is the additional data that a payload is sealed with.
func place(id string) []byte { return []byte("deliveries " + id + " payload") }
