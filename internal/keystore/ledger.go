package keystore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/valkey-io/valkey-go"
)

// positionName is the name of the position up to which an admin has written the store.
const positionName = "sluice:keys:position"

// sealName is the name of what the seal of the sessions was when all were written.
const sealName = "sluice:keys:seal"

// raise sets a position unless the number of the one that is there is higher.
var raise = valkey.NewLuaScript(`
local old = redis.call('GET', KEYS[1])
local number = old and tonumber(string.match(old, '^%d+'))
if number and number > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`)

// Mark raises the position of the store to a number, of which position is the text that
// Marked returns. It does nothing if the position is higher already.
func (v *Valkey) Mark(ctx context.Context, seq int64, position string) error {
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := raise.Exec(ctx, c, []string{positionName}, []string{strconv.FormatInt(seq, 10), position}).Error(); err != nil {
		return unavailable("writing the position", err)
	}
	return nil
}

// Marked returns the position of the store, "" for none.
func (v *Valkey) Marked(ctx context.Context) (string, error) {
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return "", err
	}
	defer cancel()
	text, err := c.Do(ctx, c.B().Get().Key(positionName).Build()).ToString()
	switch {
	case valkey.IsValkeyNil(err):
		return "", nil
	case err != nil:
		return "", unavailable("reading the position", err)
	}
	return text, nil
}

// A Truth is what a store is compared with.
type Truth struct {
	Entries iter.Seq2[Entry, error] // all keys

	// Exist returns those of the hashes that name a key by now.
	Exist func(ctx context.Context, hashes []string) ([]string, error)

	Position string // of the store afterwards
}

// A Difference counts the keys in which a store differed from its truth.
type Difference struct {
	// Number of keys that the store lacked or had otherwise.
	Written int `json:"written"`
	// Number of keys in the store that the database does not have.
	Deleted int `json:"deleted"`
	// Number of keys that the store had as they are.
	Unchanged int `json:"unchanged"`
}

// Reconcile writes the entries that the store lacks, has otherwise or has without a valid
// seal, deletes the keys that do not exist, and then sets the position. The caller must
// not write other keys while it runs. It returns what it did, also with an error.
func (v *Valkey) Reconcile(ctx context.Context, truth Truth) (Difference, error) {
	var did Difference
	c := v.client.Load()
	if c == nil {
		return did, fmt.Errorf("%w: it has not been reached yet", ErrUnavailable)
	}
	var batch []Entry
	for e, err := range truth.Entries {
		if err != nil {
			return did, fmt.Errorf("comparing the key store: %w", err)
		}
		if batch = append(batch, e); len(batch) < fillBatch {
			continue
		}
		if err := v.correct(ctx, *c, batch, &did); err != nil {
			return did, err
		}
		batch = batch[:0]
	}
	if err := v.correct(ctx, *c, batch, &did); err != nil {
		return did, err
	}
	if err := v.deleteOthers(ctx, truth, &did); err != nil {
		return did, err
	}
	return did, v.doAll(ctx, *c, valkey.Commands{
		(*c).B().Set().Key(positionName).Value(truth.Position).Build(),
		(*c).B().Set().Key(sealName).Value(v.options.Seal.name()).Build(),
	})
}

// Sealed reports whether all sessions were written with the seal of this process, by Fill
// or Reconcile.
func (v *Valkey) Sealed(ctx context.Context) (bool, error) {
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return false, err
	}
	defer cancel()
	text, err := c.Do(ctx, c.B().Get().Key(sealName).Build()).ToString()
	if err != nil && !valkey.IsValkeyNil(err) {
		return false, unavailable("reading the name of the seal", err)
	}
	return text == v.options.Seal.name(), nil
}

// correct writes those of the entries that the store has otherwise.
func (v *Valkey) correct(ctx context.Context, c valkey.Client, batch []Entry, did *Difference) error {
	if len(batch) == 0 {
		return nil
	}
	var reads, writes valkey.Commands
	for _, e := range batch {
		key, _ := v.names(e.Hash)
		reads = append(reads, c.B().Get().Key(key).Build())
	}
	within, cancel := context.WithTimeout(ctx, max(v.timeout, fillWithin))
	defer cancel()
	for i, answer := range c.DoMulti(within, reads...) {
		has, err := answer.ToString()
		if err != nil && !valkey.IsValkeyNil(err) {
			return unavailable("comparing", err)
		}
		want, failed := v.encode(batch[i].Hash, batch[i].Session)
		if failed != nil {
			return failed
		}
		if err == nil && has == want {
			did.Unchanged++
			continue
		}
		key, _ := v.names(batch[i].Hash)
		writes = append(writes, c.B().Set().Key(key).Value(want).Build())
	}
	if err := v.doAll(ctx, c, writes); err != nil {
		return err
	}
	did.Written += len(writes)
	return nil
}

// deleteOthers deletes the keys that do not exist.
func (v *Valkey) deleteOthers(ctx context.Context, truth Truth, did *Difference) error {
	for cursor := ""; ; {
		listed, cancel := context.WithTimeout(ctx, max(v.timeout, fillWithin))
		hashes, next, err := v.List(listed, cursor, fillBatch)
		cancel()
		if err != nil {
			return err
		}
		exist, err := truth.Exist(ctx, hashes)
		if err != nil {
			return fmt.Errorf("comparing the key store: %w", err)
		}
		slices.Sort(exist)
		for _, hash := range hashes {
			if _, found := slices.BinarySearch(exist, hash); found {
				continue
			}
			err := v.Delete(ctx, hash)
			if err != nil && !errors.Is(err, ErrNotFound) { // a key may be listed twice
				return err
			}
			if err == nil {
				did.Deleted++
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
