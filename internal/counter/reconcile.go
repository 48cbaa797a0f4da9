package counter

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/sluicegate/sluice/internal/counter/script"
)

// adjustBatch is how many keys one command adjusts: one of unknown outcome is not
// repeated, so this bounds what may be lost.
const adjustBatch = 256

// reconcile makes sure that the store has what it counted before, and adds what was
// admitted without it.
func (l *lane) reconcile(ctx context.Context) error {
	client := l.v.client.Load()
	epoch, err := l.probe(ctx, *client)
	if err != nil {
		return err
	}
	if l.lastEpoch != "" && l.lastEpoch != epoch {
		if err := l.pushFloors(ctx, *client); err != nil {
			return err
		}
	}
	l.lastEpoch = epoch
	return l.pushDebts(ctx, *client)
}

func newEpoch() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// pushFloors restores what a store that lost its data last reported about each open
// quota. A floor is a minimum: it does no harm to send one twice, or from several
// gateways.
func (l *lane) pushFloors(ctx context.Context, c valkey.Client) error {
	var floors []script.Adjustment
	for key, s := range l.quotas.open(time.Now().UnixMilli()) {
		floors = append(floors, script.Adjustment{What: script.Floor, Key: key, Calls: s.used, Reset: s.reset})
	}
	for some := range slices.Chunk(floors, adjustBatch) {
		if _, _, err := l.v.adjust(ctx, c, some); err != nil {
			return err
		}
		l.v.stats.Floors.Add(int64(len(some)))
	}
	return nil
}

// pushDebts adds the quota calls that were admitted without the store, where their
// period is still open. Adjustments of unknown outcome are dropped; those that
// were certainly not made are kept for the next time.
func (l *lane) pushDebts(ctx context.Context, c valkey.Client) error {
	now := time.Now().UnixMilli()
	var debts []script.Adjustment
	for key, d := range l.standby.takeDebts() {
		if d.calls <= 0 || d.reset != 0 && d.reset <= now {
			continue // refunded, or its period is over
		}
		a := script.Adjustment{What: script.Debt, Key: key, Calls: d.calls, Reset: d.reset}
		if d.opened {
			a.What = script.DebtOpened
		}
		debts = append(debts, a)
	}
	var failed error
	for some := range slices.Chunk(debts, adjustBatch) {
		if failed == nil {
			failed = l.pushBatch(ctx, c, some)
		} else {
			l.standby.keepDebts(some)
		}
	}
	return failed
}

func (l *lane) pushBatch(ctx context.Context, c valkey.Client, batch []script.Adjustment) error {
	done, unsent, err := l.v.adjust(ctx, c, batch)
	l.standby.keepDebts(unsent)
	sent := batch[:len(batch)-len(unsent)]
	for _, a := range sent {
		l.quotas.add(a.Key, a.Calls, a.Reset)
	}
	l.v.stats.DebtsPaid.Add(int64(done))
	l.v.stats.DebtsDropped.Add(int64(len(sent) - done))
	return err
}

// keepDebts puts back debts that did not reach the store.
func (s *standby) keepDebts(batch []script.Adjustment) {
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

// adjust sends adjustments, once. It returns how many were made, and which were
// certainly not: those are also moved behind the others of batch.
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
		done = script.Adjusted(reply)
	case !outageOf(err).unknown:
		unsent = batch
	}
	return done, unsent, err
}

// adjustEach is adjust in a cluster, where every key needs a command of its own as
// their hash slots differ.
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
