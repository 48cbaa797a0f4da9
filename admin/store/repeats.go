package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// A Repeatable is a call that its caller may send again, because it did not see
// the answer.
type Repeatable struct {
	Org, Caller string // who makes it
	Key         string // that the caller chose for it
	Route       string
	BodyHash    []byte // of what was sent, under a key that is not stored
}

// Answered is what came of a call that was carried out before.
type Answered struct {
	Same   bool // it was the same call: route and body
	Status int  // of the answer; 0 when that was not kept
	Answer []byte
}

// repeatable is the key of a call among the values of a context.
type repeatable struct{}

// Claim returns a context whose first transaction notes that the call was carried
// out: it happens with that, or not at all. When it was carried out before, the
// transaction ends in a Repeated conflict.
func Claim(ctx context.Context, call *Repeatable) context.Context {
	return context.WithValue(ctx, repeatable{}, &claim{call: call})
}

// A claim is used by the one goroutine that answers the call.
type claim struct {
	call *Repeatable
	made bool // a transaction has noted it
}

// Claimed tells whether a transaction has noted the call that Claim put into ctx.
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

// Answered returns what came of a call before, or ErrNotFound.
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

// KeepAnswer keeps the answer to a call that a transaction has noted, for whoever
// sends it again. It does nothing when none has.
func (s *Store) KeepAnswer(ctx context.Context, call *Repeatable, status int, answer []byte) error {
	return translate(s.queries.KeepAnswer(ctx, db.KeepAnswerParams{
		OrgID: call.Org, Caller: call.Caller, Key: call.Key, Status: int32(status), Answer: answer,
	}))
}

// Unclaim forgets a call that came to nothing although a transaction of it did
// happen, so that it can be made again.
func (s *Store) Unclaim(ctx context.Context, call *Repeatable) error {
	return translate(s.queries.ForgetRepeatableCall(ctx, db.ForgetRepeatableCallParams{
		OrgID: call.Org, Caller: call.Caller, Key: call.Key,
	}))
}

// ForgetCalls forgets calls that were carried out before a time.
func (s *Store) ForgetCalls(ctx context.Context, before time.Time) error {
	_, err := s.queries.ForgetRepeatableCalls(ctx, before)
	return translate(err)
}

// IsRepeated tells whether a call ended because it was carried out before.
func IsRepeated(err error) bool {
	conflict, ok := errors.AsType[*ConflictError](err)
	return ok && conflict.Kind == Repeated
}
