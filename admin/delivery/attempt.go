package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// deliver makes one attempt, whose lease began at begun or later, and records its
// outcome.
func (l *worker) deliver(ctx context.Context, r *store.Message, begun time.Time) {
	sending, cancel := context.WithDeadline(ctx, begun.Add(l.queue.opts.Timeout))
	started := time.Now()
	out := l.attempt(sending, r)
	took := time.Since(started)
	pause := missedPause
	if ctx.Err() != nil && out.Result == Again {
		out.Result, pause = Missed, 0 // it ended because the queue stops; the target did not fail
	}
	cancel()
	l.queue.meters.seconds.WithLabelValues(l.kind).Observe(took.Seconds())
	l.queue.record(context.WithoutCancel(ctx), r, out, timing{begun.Add(l.queue.lease()), took, pause})
	l.end(r.Target, out.Result != Again)
}

// attempt calls the sender once.
func (l *worker) attempt(ctx context.Context, r *store.Message) (out Outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			l.queue.opts.Log.Error("sending a message panicked", "kind", l.kind, "delivery", r.ID, "err", fmt.Sprint(cause), "stack", string(debug.Stack()))
			out = Outcome{Error: "internal error; the log of the admin has the cause"}
		}
	}()
	payload, err := l.queue.Open(r)
	if err != nil {
		l.queue.opts.Log.Error("a message cannot be opened; admin.master_key is not what it was sealed with", "kind", l.kind, "delivery", r.ID, "err", err)
		return Outcome{Error: "the message cannot be opened; the log of the admin has the cause"}
	}
	return l.sender.Send(ctx, Delivery{
		ID: r.ID, Org: r.OrgID, Kind: r.Kind, Target: r.Target, Developer: r.DeveloperID, Event: r.Event,
		Payload: payload, Attempt: int(r.Attempts), Created: r.CreatedAt,
	})
}

// missedPause is the pause before a message that was not attempted is due again.
const missedPause = 5 * time.Second

// timing is how long an attempt took, and the times around it.
type timing struct {
	leased time.Time // end of the lease
	took   time.Duration
	pause  time.Duration // before the next attempt, if this one did not take place
}

// noteWithin bounds one try to record an outcome; notePause is the pause before the
// next.
const (
	noteWithin = 5 * time.Second
	notePause  = 100 * time.Millisecond
)

// record stores the outcome of an attempt. While the database is unavailable it tries
// again until the lease ends. After that another admin may take the message, and it is
// sent once more.
func (q *Queue) record(ctx context.Context, r *store.Message, out Outcome, s timing) {
	ctx, cancel := context.WithDeadline(ctx, s.leased)
	defer cancel()
	for pause := notePause; ; pause = min(2*pause, noteWithin) {
		err := q.recordOnce(ctx, r, out, s)
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) && out.Note != nil {
			// A failing Note must not make the message be sent for ever.
			q.opts.Log.Error("what follows from a delivery could not be noted", "kind", r.Kind, "delivery", r.ID, "err", err)
			out.Note = nil
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			q.opts.Log.Warn("what came of a delivery could not be noted; it will be sent again", "kind", r.Kind, "delivery", r.ID, "err", err)
			return
		case <-timer.C:
		}
	}
}

func (q *Queue) recordOnce(ctx context.Context, r *store.Message, out Outcome, s timing) error {
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	if out.Result == Missed {
		return q.opts.Store.ReturnMessage(ctx, r, s.pause)
	}
	res := store.AttemptResult{State: store.MessagePending, Status: out.Status, Error: shorten(out.Error), Took: s.took}
	switch {
	case out.Result == Done:
		res.State = store.MessageDone
	case out.Result == Kept:
		res.State = store.MessageKept
	case out.Result == Never || int(r.Attempts) > len(q.opts.Pauses):
		res.State = store.MessageFailed
	default:
		res.Again = max(jitter(q.opts.Pauses[max(r.Attempts, 1)-1]), min(out.After, maxAfter))
	}
	return q.opts.Store.InTx(ctx, func(tx *store.Tx) error { return q.finish(ctx, tx, r, out, res) })
}

// maxAfter bounds the pause that a target can ask for.
const maxAfter = 24 * time.Hour

func (q *Queue) finish(ctx context.Context, tx *store.Tx, r *store.Message, out Outcome, res store.AttemptResult) error {
	ours, err := tx.FinishAttempt(ctx, r, res)
	if err != nil {
		return err
	}
	if !ours {
		q.count(r.Kind, "late")
		return nil
	}
	if out.After > 0 {
		if err := tx.HoldMessages(ctx, r.Kind, r.Target, min(out.After, maxAfter)); err != nil {
			return err
		}
	}
	if out.Note != nil {
		if err := out.Note(ctx, tx, res.State != store.MessagePending); err != nil {
			return err
		}
	}
	q.count(r.Kind, res.State)
	return nil
}

// count counts one attempt by its outcome.
func (q *Queue) count(kind, state string) {
	if state == store.MessagePending {
		state = "again"
	}
	q.meters.attempts.WithLabelValues(kind, state).Inc()
}

// jitter returns a pause that is up to a fifth longer or shorter, so that messages that
// failed together are not retried together.
func jitter(pause time.Duration) time.Duration {
	return pause - pause/5 + rand.N(2*pause/5+1)
}

// maxError bounds a stored error, in bytes.
const maxError = 500

// shorten makes a text fit to be stored and shown.
func shorten(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "")
	return rest.Truncate(text, maxError)
}
