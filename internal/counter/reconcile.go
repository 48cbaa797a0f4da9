package counter

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/sluicegate/sluice/internal/counter/script"
)

// What adjust.lua can do to a quota.
const (
	adjustRefund = iota
	adjustDebt
	adjustDebtOpened
	adjustFloor
)

// adjustBatch is how many keys one adjustment call carries: a call of unknown
// outcome is not repeated, so this bounds what it may lose.
const adjustBatch = 256

// An adjustment corrects one quota in the store.
type adjustment struct {
	what  byte
	key   string
	calls int64
	reset int64 // unix milliseconds of the period's end; 0 never
}

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
	batch := make([]adjustment, 0, adjustBatch)
	for i := range open {
		e := &open[i]
		batch = append(batch, adjustment{what: adjustFloor, key: e.Key, calls: e.Used, reset: e.Reset})
		if len(batch) == adjustBatch || i == len(open)-1 {
			if _, err := l.v.adjust(ctx, c, batch); err != nil {
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
	batch := make([]adjustment, 0, adjustBatch)
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
		a := adjustment{what: adjustDebt, key: key, calls: d.calls, reset: d.reset}
		if d.opened {
			a.what = adjustDebtOpened
		}
		if batch = append(batch, a); len(batch) == adjustBatch {
			send()
		}
	}
	send()
	return failed
}

func (l *lane) pushBatch(ctx context.Context, c valkey.Client, batch []adjustment) error {
	done, err := l.v.adjust(ctx, c, batch)
	if err == nil || outageOf(err).unknown {
		for _, a := range batch {
			l.recall.Add(a.key, a.calls, a.reset)
		}
	}
	switch {
	case err == nil:
		l.v.stats.DebtsPaid.Add(int64(done))
		l.v.stats.DebtsDropped.Add(int64(len(batch) - done))
	case outageOf(err).unknown:
		l.v.stats.DebtsDropped.Add(int64(len(batch)))
	default:
		l.standby.keep(batch)
	}
	return err
}

// keep puts debts back that did not reach the store.
func (s *standby) keep(batch []adjustment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range batch {
		d := s.debts[a.key]
		if d.calls == 0 || d.reset == a.reset {
			d.calls += a.calls
			d.reset, d.opened = a.reset, a.what == adjustDebtOpened
			s.debts[a.key] = d
		}
	}
}

// adjust sends adjustments, once, and tells how many were done. In a cluster
// every key has its own command: they lie in different slots.
func (v *Valkey) adjust(ctx context.Context, c valkey.Client, batch []adjustment) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	if !v.clustered {
		keys, packed := packAdjustments(batch)
		reply, err := v.adjusting.Run(ctx, c, keys, packed)
		return countDone(reply), err
	}
	commands := make([]valkey.Completed, len(batch))
	for i := range batch {
		keys, packed := packAdjustments(batch[i : i+1])
		commands[i] = v.adjusting.Command(c, keys, packed)
	}
	done := 0
	var failed error
	for i, result := range c.DoMulti(ctx, commands...) {
		reply, err := result.ToString()
		if script.Missing(err) {
			keys, packed := packAdjustments(batch[i : i+1])
			reply, err = v.adjusting.Send(ctx, c, keys, packed)
		}
		done += countDone(reply)
		if err != nil && (failed == nil || outageOf(err).unknown) {
			failed = err // one of unknown outcome decides: nothing of the batch is sent again
		}
	}
	return done, failed
}

func packAdjustments(batch []adjustment) ([]string, string) {
	now := time.Now().UnixMilli()
	keys := make([]string, len(batch))
	packed := make([]byte, 0, 25*len(batch))
	for i, a := range batch {
		keys[i] = a.key
		packed = append(packed, a.what)
		packed = script.AppendNumber(packed, a.calls)
		packed = script.AppendNumber(packed, a.reset)
		packed = script.AppendNumber(packed, max(a.reset-now, 1))
	}
	return keys, string(packed)
}

func countDone(reply string) int {
	n := 0
	for i := range len(reply) {
		n += int(reply[i])
	}
	return n
}
