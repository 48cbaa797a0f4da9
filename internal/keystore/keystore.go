// Package keystore holds sessions by hashed key, for all gateways together:
// in process, in a file, or in Valkey.
package keystore

import (
	"context"
	"errors"

	"github.com/sluicegate/sluice/internal/definition"
)

// The errors that callers branch on.
var (
	ErrNotFound    = errors.New("no such key")
	ErrUnavailable = errors.New("key store unavailable")
)

// A Store holds sessions by key hash. Sessions are shared: neither the store
// nor its callers change one after Put or Get. It is safe for concurrent use.
type Store interface {
	// Get returns the session of a key. ErrNotFound is proof of absence;
	// ErrUnavailable (wrapped) says that nothing is known.
	Get(ctx context.Context, keyHash string) (*definition.Session, error)

	// Put stores a session; once it returned nil, the write survives a crash
	// as far as the store promises.
	Put(ctx context.Context, keyHash string, s *definition.Session) error

	// Delete removes a session, or returns ErrNotFound.
	Delete(ctx context.Context, keyHash string) error

	// List returns up to count hashes, in no order, and the cursor to go on
	// from; "" starts, and "" returned ends.
	List(ctx context.Context, cursor string, count int) (hashes []string, next string, err error)

	// Watch calls changed with the hash of every session that anyone writes or
	// deletes, and with "" when some may have been missed, until ctx ends.
	Watch(ctx context.Context, changed func(keyHash string)) error
}
