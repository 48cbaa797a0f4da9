package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluicegate/sluice/internal/keys"
)

// legacyKey is a key that was used while it is stored under a legacy hash.
type legacyKey struct {
	identity string
	hashes   []string // SHA-256
}

// legacyKeys replaces the legacy hashes of keys that are used by SHA-256.
type legacyKeys struct {
	log   *slog.Logger
	found chan legacyKey

	// strengthen replaces one hash, and reports whether it had to.
	strengthen func(ctx context.Context, identity string, hashes []string) (bool, error)
}

// Limits of the work on legacy hashes. What does not fit is found again: a key under a
// legacy hash is reported each time that it is looked up.
const (
	legacyQueued = 256
	legacyWithin = 10 * time.Second
)

func newLegacyKeys(log *slog.Logger) *legacyKeys {
	return &legacyKeys{log: log, found: make(chan legacyKey, legacyQueued)}
}

// noter returns note, or nil if l is nil.
func (l *legacyKeys) noter() func(identity string, hashes []string) {
	if l == nil {
		return nil
	}
	return l.note
}

// note records a key that was found under a legacy hash. It does not block.
func (l *legacyKeys) note(identity string, hashes []string) {
	select {
	case l.found <- legacyKey{identity, hashes}:
	default:
	}
}

// run replaces hashes until ctx ends.
func (l *legacyKeys) run(ctx context.Context) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case k := <-l.found:
			if err := l.replace(ctx, k); err == nil {
				failing = false
			} else if !failing && ctx.Err() == nil {
				failing = true
				l.log.Warn("legacy hashes of keys could not be replaced by SHA-256; they are tried again when the keys are used", "err", err)
			}
		}
	}
}

func (l *legacyKeys) replace(ctx context.Context, k legacyKey) error {
	ctx, cancel := context.WithTimeout(ctx, legacyWithin)
	defer cancel()
	_, err := l.strengthen(ctx, k.identity, k.hashes)
	if errors.Is(err, keys.ErrNotFound) || errors.Is(err, keys.ErrExists) || errors.Is(err, keys.ErrChanged) {
		return nil // deleted, or replaced at the same time
	}
	return err
}
