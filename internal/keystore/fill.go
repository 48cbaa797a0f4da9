package keystore

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/sluicegate/sluice/internal/definition"
)

// An Entry is a session and the hash of its key.
type Entry struct {
	Hash    string
	Session *definition.Session
}

const (
	fillBatch  = 1000             // sessions in one round trip
	fillWithin = 10 * time.Second // for each batch, as a store that is being filled is busy
)

// Filled reports whether the store has all keys: whether Fill has completed since it
// last lost some.
func (v *Valkey) Filled(ctx context.Context) (bool, error) {
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return false, err
	}
	defer cancel()
	var ask valkey.Commands
	for _, epoch := range v.epochs() {
		ask = append(ask, c.B().Exists().Key(epoch).Build())
	}
	for _, answer := range c.DoMulti(ctx, ask...) {
		n, err := answer.AsInt64()
		if err != nil {
			return false, unavailable("reading epochs", err)
		}
		if n == 0 {
			return false, nil
		}
	}
	return true, nil
}

// Fill writes all entries, and then marks the store as complete. It returns how many it
// wrote, also with an error, after which the store is not complete. It deletes no key.
// The caller must not write other keys while it runs: a write between the reading of an
// entry and its writing would be undone.
func (v *Valkey) Fill(ctx context.Context, entries iter.Seq2[Entry, error]) (int, error) {
	c := v.client.Load()
	if c == nil {
		return 0, fmt.Errorf("%w: it has not been reached yet", ErrUnavailable)
	}
	if err := v.doAll(ctx, *c, v.epochDeletions(*c)); err != nil {
		return 0, err
	}
	written := 0
	var batch valkey.Commands
	for e, err := range entries {
		if err != nil {
			return written, fmt.Errorf("filling the key store: %w", err)
		}
		text, err := v.encode(e.Hash, e.Session)
		if err != nil {
			return written, fmt.Errorf("filling the key store: %w", err)
		}
		key, _ := v.names(e.Hash)
		batch = append(batch, (*c).B().Set().Key(key).Value(text).Build())
		if len(batch) < fillBatch {
			continue
		}
		if err := v.doAll(ctx, *c, batch); err != nil {
			return written, err
		}
		written, batch = written+len(batch), batch[:0]
	}
	if err := v.doAll(ctx, *c, batch); err != nil {
		return written, err
	}
	written += len(batch)
	marks := append(v.epochMarks(*c), (*c).B().Set().Key(sealName).Value(v.options.Seal.name()).Build())
	return written, v.doAll(ctx, *c, marks)
}

// doAll runs commands in one round trip.
func (v *Valkey) doAll(ctx context.Context, c valkey.Client, commands valkey.Commands) error {
	if len(commands) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(v.timeout, fillWithin))
	defer cancel()
	for _, answer := range c.DoMulti(ctx, commands...) {
		if err := answer.Error(); err != nil {
			return unavailable("filling", err)
		}
	}
	return nil
}

func (v *Valkey) epochDeletions(c valkey.Client) valkey.Commands {
	var all valkey.Commands
	for _, epoch := range v.epochs() {
		all = append(all, c.B().Del().Key(epoch).Build())
	}
	return all
}

// epochMarks returns the commands that mark the store as complete. The value says when
// it was filled.
func (v *Valkey) epochMarks(c valkey.Client) valkey.Commands {
	mark := time.Now().UTC().Format(time.RFC3339) + " " + rand.Text()[:8]
	var all valkey.Commands
	for _, epoch := range v.epochs() {
		all = append(all, c.B().Set().Key(epoch).Value(mark).Build())
	}
	return all
}
