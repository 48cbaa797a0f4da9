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
	"github.com/sluicegate/sluice/admin/store/deliveries"
)

// deliver makes one attempt, whose lease began at begun or later, and notes what
// came of it.
func (l *lane) deliver(ctx context.Context, r *deliveries.Row, begun time.Time) {
	sending, cancel := context.WithDeadline(ctx, begun.Add(l.queue.opts.Timeout))
	started := time.Now()
	out := l.attempt(sending, r)
	took := time.Since(started)
	pause := missedPause
	if ctx.Err() != nil && out.Result == Again {
		out.Result, pause = Missed, 0 // it ended because the queue does, which is no fault of the target
	}
	cancel()
	l.queue.meters.seconds.WithLabelValues(l.kind).Observe(took.Seconds())
	l.queue.note(context.WithoutCancel(ctx), r, out, stretch{begun.Add(l.queue.lease()), took, pause})
	l.end(r.Target, out.Result != Again)
}

// attempt is one call of the sender.
func (l *lane) attempt(ctx context.Context, r *deliveries.Row) (out Outcome) {
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

// missedPause is before a message comes again that was not attempted.
const missedPause = 5 * time.Second

// stretch is how long an attempt took, and what there is beyond it.
type stretch struct {
	leased time.Time // until when the message is ours
	took   time.Duration
	pause  time.Duration // before another attempt, where this one was none
}

// noteWithin bounds one try to note an outcome, and notePause is before the next.
const (
	noteWithin = 5 * time.Second
	notePause  = 100 * time.Millisecond
)

// note writes down what came of an attempt. While the database is away it tries
// again, until the lease runs out: from then on the message is anybody's, and will
// be sent once more.
func (q *Queue) note(ctx context.Context, r *deliveries.Row, out Outcome, s stretch) {
	ctx, cancel := context.WithDeadline(ctx, s.leased)
	defer cancel()
	for pause := notePause; ; pause = min(2*pause, noteWithin) {
		err := q.noteOnce(ctx, r, out, s)
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) && out.Note != nil {
			// What else there was to note must not have the message sent for ever.
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

func (q *Queue) noteOnce(ctx context.Context, r *deliveries.Row, out Outcome, s stretch) error {
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	if out.Result == Missed {
		return deliveries.Return(ctx, q.opts.Store, r, s.pause)
	}
	res := deliveries.Result{State: deliveries.Pending, Status: out.Status, Error: shorten(out.Error), Took: s.took}
	switch {
	case out.Result == Done:
		res.State = deliveries.Done
	case out.Result == Kept:
		res.State = deliveries.Kept
	case out.Result == Never || int(r.Attempts) > len(q.opts.Pauses):
		res.State = deliveries.Failed
	default:
		res.Again = max(vary(q.opts.Pauses[max(r.Attempts, 1)-1]), min(out.After, maxAfter))
	}
	return q.opts.Store.InTx(ctx, func(tx *store.Tx) error { return q.settle(ctx, tx, r, out, res) })
}

// maxAfter bounds how long a target can have itself left alone.
const maxAfter = 24 * time.Hour

func (q *Queue) settle(ctx context.Context, tx *store.Tx, r *deliveries.Row, out Outcome, res deliveries.Result) error {
	ours, err := deliveries.Settle(ctx, tx, r, res)
	if err != nil {
		return err
	}
	if !ours {
		q.count(r.Kind, "late")
		return nil
	}
	if out.After > 0 {
		if err := deliveries.Hold(ctx, tx, r.Kind, r.Target, min(out.After, maxAfter)); err != nil {
			return err
		}
	}
	if out.Note != nil {
		if err := out.Note(ctx, tx, res.State != deliveries.Pending); err != nil {
			return err
		}
	}
	q.count(r.Kind, res.State)
	return nil
}

// count counts one attempt by what came of it.
func (q *Queue) count(kind, state string) {
	if state == deliveries.Pending {
		state = "again"
	}
	q.meters.attempts.WithLabelValues(kind, state).Inc()
}

// vary returns a pause a tenth longer or shorter, so that what failed together
// does not come back together.
func vary(pause time.Duration) time.Duration {
	return pause - pause/10 + rand.N(pause/5+1)
}

// maxError bounds what is kept of what went wrong, in bytes.
const maxError = 500

// shorten makes a text one that can be stored and shown.
func shorten(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "")
	return rest.Truncate(text, maxError)
}
