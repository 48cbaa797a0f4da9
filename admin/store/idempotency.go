package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// A Repeatable is a call with an Idempotency-Key, which the caller may send again.
type Repeatable struct {
	Org, Caller string // organisation and caller
	Key         string // Idempotency-Key
	Route       string
	BodyHash    []byte // HMAC of the request, with a key that is not stored
}

// Answered is the answer to a call that was carried out before.
type Answered struct {
	Same   bool // route and body are the same
	Status int  // of the answer; 0 if it was not stored
	Answer []byte
}

// repeatable is the key of a call among the values of a context.
type repeatable struct{}

// Claim returns a context whose first transaction also stores that the call was carried
// out. If it was carried out before, the transaction ends with a Repeated conflict.
func Claim(ctx context.Context, call *Repeatable) context.Context {
	return context.WithValue(ctx, repeatable{}, &claim{call: call})
}

// A claim is used by the one goroutine that answers the call.
type claim struct {
	call *Repeatable
	made bool // a transaction has stored it
}

// Claimed reports whether a transaction has stored the call of ctx.
func Claimed(ctx context.Context) bool {
	c, _ := ctx.Value(repeatable{}).(*claim)
	return c != nil && c.made
}

// claimed runs work after the claim that ctx may hold.
func claimed(ctx context.Context, work func(*db.Queries) error) (func(*db.Queries) error, func()) {
	c, _ := ctx.Value(repeatable{}).(*claim)
	if c == nil || c.made {
		return work, func() {}
	}
	noted := func(q *db.Queries) error {
		err := q.InsertRepeatableCall(ctx, db.InsertRepeatableCallParams{
			OrgID: c.call.Org, Caller: c.call.Caller, Key: c.call.Key, Route: c.call.Route, BodyHash: c.call.BodyHash,
		})
		if err != nil {
			return err
		}
		return work(q)
	}
	return noted, func() { c.made = true }
}

// Answered returns the answer to an earlier call, or ErrNotFound.
func (s *Store) Answered(ctx context.Context, call *Repeatable) (Answered, error) {
	row, err := s.queries.RepeatableCall(ctx, db.RepeatableCallParams{OrgID: call.Org, Caller: call.Caller, Key: call.Key})
	if err != nil {
		return Answered{}, translate(err)
	}
	return Answered{
		Same:   row.Route == call.Route && bytes.Equal(row.BodyHash, call.BodyHash),
		Status: int(row.Status), Answer: row.Answer,
	}, nil
}

// KeepAnswer stores the answer to a call that a transaction has stored, for
// repetitions.
func (s *Store) KeepAnswer(ctx context.Context, call *Repeatable, status int, answer []byte) error {
	return translate(s.queries.KeepAnswer(ctx, db.KeepAnswerParams{
		OrgID: call.Org, Caller: call.Caller, Key: call.Key, Status: int32(status), Answer: answer,
	}))
}

// Unclaim deletes a call that failed after one of its transactions, so that it can be
// made again.
func (s *Store) Unclaim(ctx context.Context, call *Repeatable) error {
	return translate(s.queries.ForgetRepeatableCall(ctx, db.ForgetRepeatableCallParams{
		OrgID: call.Org, Caller: call.Caller, Key: call.Key,
	}))
}

// ForgetCalls deletes calls that were carried out before a time.
func (s *Store) ForgetCalls(ctx context.Context, before time.Time) error {
	_, err := s.queries.ForgetRepeatableCalls(ctx, before)
	return translate(err)
}

// WasCarriedOut reports whether a call ended because it was carried out before.
func WasCarriedOut(err error) bool {
	conflict, ok := errors.AsType[*ConflictError](err)
	return ok && conflict.Kind == Repeated
}
