// Package delivery sends what the admin has to tell others: messages to webhooks,
// and letters. They wait in the database, put there by the transaction that they
// tell of, so that none is sent of what did not happen and none is lost of what
// did. Each is sent at least once, and never by two at the same time.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/deliveries"
)

// Kinds of messages.
const (
	Webhook = "webhook" // to a webhook, whose id is the target
	Hook    = "hook"    // to a URL of the portal's configuration, which is the target
	Letter  = "letter"  // to an address, which is the target
)

// MaxPayload bounds a message, in bytes.
const MaxPayload = 256 << 10

// maxWaiting is how many messages may wait for one target.
const maxWaiting = 1000

// ErrFull says that as many messages wait for a target as may.
var ErrFull = deliveries.ErrFull

// ErrTooLarge says that a message is longer than MaxPayload.
var ErrTooLarge = errors.New("the message is too large")

// A Message is to be sent once what it tells of is committed.
type Message struct {
	Org       string
	Kind      string
	Target    string
	Developer string // whom it concerns, and who may see it; "" for nobody
	Event     string // type of the event, or which letter
	Payload   []byte
	Secret    bool // Payload holds a secret: it is sealed, and gone once the message is
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

// A Sender sends messages of one kind. Send ends with ctx, and may be called by
// many at once.
type Sender interface {
	Send(ctx context.Context, d Delivery) Outcome
}

// Result says how an attempt ended.
type Result uint8

// The results.
const (
	Again  Result = iota // it did not work, and may later
	Done                 // the message is taken
	Never                // it did not work, and never will
	Kept                 // it stays here, as a letter in the local mailbox does
	Missed               // it was not attempted, for a reason of our own: it counts as no attempt
)

// An Outcome is what came of an attempt.
type Outcome struct {
	Result Result
	Status int    // of the answer; 0: none
	Error  string // what those whom the message concerns are told; "" when it worked

	// After is how long the target asks to be left alone: no message goes there
	// before. 0: it does not ask.
	After time.Duration

	// Note is called in the transaction that notes the outcome, if it is not nil.
	// final tells that there will be no further attempt.
	Note func(ctx context.Context, tx *store.Tx, final bool) error
}

// fullError is ErrFull for callers who have nothing better to do than to say so.
type fullError struct{}

func (fullError) Error() string { return "queueing a message: " + ErrFull.Error() }

func (fullError) Unwrap() error { return ErrFull }

// Refused says that it is to be tried later.
func (fullError) Refused() (status int, message string, problems []string) {
	return 503, "Too many messages wait for the receiver already; try again later", nil
}

// noMasterKey refuses what cannot be sealed.
type noMasterKey struct{ cause error }

func (e *noMasterKey) Error() string { return "sealing a message: " + e.cause.Error() }

func (e *noMasterKey) Unwrap() error { return e.cause }

// Refused says what has to be configured.
func (e *noMasterKey) Refused() (status int, message string, problems []string) {
	return 503, "admin.master_key is not set: what holds a secret cannot be kept without it", nil
}

// Put queues a message as a part of a transaction, and returns the id that its
// receiver knows it by. The first attempt follows the commit at once. The error
// may be ErrFull or ErrTooLarge, with which nothing was queued and the transaction
// can go on.
func (q *Queue) Put(ctx context.Context, tx *store.Tx, m Message) (id string, err error) {
	if len(m.Payload) > MaxPayload {
		return "", ErrTooLarge
	}
	n := deliveries.New{
		ID: "msg_" + rest.NewID(), OrgID: m.Org, Kind: m.Kind, Target: m.Target, DeveloperID: m.Developer,
		Event: m.Event, Payload: m.Payload, Sealed: m.Secret, Bound: maxWaiting,
	}
	if m.Secret {
		if n.Payload, err = q.opts.MasterKey.Seal(m.Payload, place(n.ID)); err != nil {
			return "", &noMasterKey{err}
		}
	}
	if err := deliveries.Put(ctx, tx, n); err != nil {
		if errors.Is(err, ErrFull) {
			q.meters.refused.WithLabelValues(m.Kind).Inc()
			return "", fullError{}
		}
		return "", fmt.Errorf("queueing a message: %w", err)
	}
	return n.ID, nil
}

// CanSeal returns the error of Put that no message with a secret gets past, or nil.
func (q *Queue) CanSeal() error {
	if _, err := q.opts.MasterKey.Seal(nil, place("")); err != nil {
		return &noMasterKey{err}
	}
	return nil
}

// Open returns the payload of a stored message, for who shows it.
func (q *Queue) Open(r *deliveries.Row) ([]byte, error) {
	if !r.Sealed || len(r.Payload) == 0 {
		return r.Payload, nil
	}
	return q.opts.MasterKey.Open(r.Payload, place(r.ID))
}

// place is what a sealed payload belongs to.
func place(id string) []byte { return []byte("deliveries " + id + " payload") }
