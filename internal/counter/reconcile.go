package counter

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/sluicegate/sluice/internal/counter/script"
)

// adjustBatch is how many keys one adjustment call carries: a call of unknown
// outcome is not repeated, so this bounds what it may lose.
const adjustBatch = 256

func newEpoch() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// pushFloors tells a store that lost its data what was last known of each open
// quota. Floors are a maximum: sending one twice, or by several gateways, is
// harmless.
func (l *lane) pushFloors(ctx context.Context, c valkey.Client) error {
	open := l.recall.Open(time.Now().UnixMilli())
	batch := make([]script.Adjustment, 0, adjustBatch)
	for i := range open {
		e := &open[i]
		batch = append(batch, script.Adjustment{What: script.Floor, Key: e.Key, Calls: e.Used, Reset: e.Reset})
		if len(batch) == adjustBatch || i == len(open)-1 {
			if _, _, err := l.v.adjust(ctx, c, batch); err != nil {
				return err
			}
			l.v.stats.Floors.Add(int64(len(batch)))
			batch = batch[:0]
		}
	}
	return nil
}

// pushDebts tells the store of the quota calls that were admitted without it,
// where the period they belong to is still open. A batch of unknown outcome is
// dropped; one that surely was not counted is kept for the next time.
func (l *lane) pushDebts(ctx context.Context, c valkey.Client) error {
	debts := l.standby.settle()
	if len(debts) == 0 {
		return nil
	}
	now := time.Now().UnixMilli()
	batch := make([]script.Adjustment, 0, adjustBatch)
	var failed error
	send := func() {
		if len(batch) == 0 {
			return
		}
		if failed == nil {
			failed = l.pushBatch(ctx, c, batch)
		} else {
			l.standby.keep(batch)
		}
		batch = batch[:0]
	}
	for key, d := range debts {
		if d.calls <= 0 || d.reset != 0 && d.reset <= now {
			continue // given back, or its period is over
		}
		a := script.Adjustment{What: script.Debt, Key: key, Calls: d.calls, Reset: d.reset}
		if d.opened {
			a.What = script.DebtOpened
		}
		if batch = append(batch, a); len(batch) == adjustBatch {
			send()
		}
	}
	send()
	return failed
}

func (l *lane) pushBatch(ctx context.Context, c valkey.Client, batch []script.Adjustment) error {
	done, unsent, err := l.v.adjust(ctx, c, batch)
	l.standby.keep(unsent)
	sent := batch[:len(batch)-len(unsent)]
	for _, a := range sent {
		l.recall.Add(a.Key, a.Calls, a.Reset)
	}
	l.v.stats.DebtsPaid.Add(int64(done))
	l.v.stats.DebtsDropped.Add(int64(len(sent) - done))
	return err
}

// keep puts debts back that did not reach the store.
func (s *standby) keep(batch []script.Adjustment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range batch {
		d := s.debts[a.Key]
		if d.calls == 0 || d.reset == a.Reset {
			d.calls += a.Calls
			d.reset, d.opened = a.Reset, a.What == script.DebtOpened
			s.debts[a.Key] = d
		}
	}
}

// adjust sends adjustments, once, and tells how many were done, and which the
// store surely did not get to: those are also moved behind the others of batch.
func (v *Valkey) adjust(ctx context.Context, c valkey.Client, batch []script.Adjustment) (done int, unsent []script.Adjustment, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	if v.clustered {
		return v.adjustEach(ctx, c, batch)
	}
	keys, packed := script.PackAdjustments(batch)
	reply, err := v.adjusting.Run(ctx, c, keys, packed)
	switch {
	case err == nil:
		done = script.Adjusted(reply) // with an error, reply is its text
	case !outageOf(err).unknown:
		unsent = batch
	}
	return done, unsent, err
}

// adjustEach is adjust in a cluster, where every key has its own command: they
// lie in different slots.
func (v *Valkey) adjustEach(ctx context.Context, c valkey.Client, batch []script.Adjustment) (done int, unsent []script.Adjustment, failed error) {
	commands := make([]valkey.Completed, len(batch))
	for i := range batch {
		keys, packed := script.PackAdjustments(batch[i : i+1])
		commands[i] = v.adjusting.Command(c, keys, packed)
	}
	sent := 0
	for i, result := range c.DoMulti(ctx, commands...) {
		reply, err := result.ToString()
		if script.Missing(err) {
			keys, packed := script.PackAdjustments(batch[i : i+1])
			reply, err = v.adjusting.Send(ctx, c, keys, packed)
		}
		switch {
		case err == nil:
			done += script.Adjusted(reply)
		case outageOf(err).unknown:
			failed = err
		default:
			failed, unsent = err, append(unsent, batch[i])
			continue
		}
		batch[sent] = batch[i]
		sent++
	}
	copy(batch[sent:], unsent)
	return done, unsent, failed
}
